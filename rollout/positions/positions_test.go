package positions_test

import (
	"slices"
	"testing"

	"github.com/addonflow/addonflow/rollout/positions"
)

// FuzzPositions: what is read as positions is written as the same positions.
func FuzzPositions(f *testing.F) {
	for _, text := range []string{"0", "0-3,7", "1-1", "", "5-", "00", "0,0", "3-1", "1000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var seen []int
		if err := positions.Each(text, 1000, func(i int) { seen = append(seen, i) }); err != nil {
			return
		}
		slices.Sort(seen)
		seen = slices.Compact(seen)
		var back []int
		if err := positions.Each(positions.Format(seen), 1000, func(i int) { back = append(back, i) }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(seen, back) {
			t.Errorf("%q: %v was written and %v read", text, seen, back)
		}
	})
}

func TestFormat(t *testing.T) {
	for want, in := range map[string][]int{"0-3,7": {0, 1, 2, 3, 7}, "0": {0}, "": nil, "1,3,5": {1, 3, 5}, "8-9": {8, 9}} {
		if got := positions.Format(in); got != want {
			t.Errorf("%v is %q, want %q", in, got, want)
		}
	}
}

func TestEach_RefusesInvalidPositions(t *testing.T) {
	for _, text := range []string{"", "5-", "-1", "00", "3-1", "10", "0-10", "a", "1,,2"} {
		if err := positions.Each(text, 10, func(int) {}); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
