package forge

import (
	"fmt"
	"math/rand/v2"

	"github.com/addonflow/addonflow/commitstatus"
)

// Next gives a commit what a rollout may make of it next: progress, a verdict, a failure after a success, or another
// attempt after a failure.
func Next(want commitstatus.Want, random *rand.Rand) commitstatus.Want {
	switch {
	case want.State == commitstatus.Success, want.State == commitstatus.Pending && random.IntN(3) == 0:
		want.State, want.Description = commitstatus.Failure, "halted"
	case random.IntN(3) == 0:
		want.State, want.Description = commitstatus.Success, "100/100"
	default:
		want.State, want.Progress = commitstatus.Pending, (want.Progress+10)%100
		want.Description = fmt.Sprintf("%d/100", want.Progress)
	}
	return want
}
