package addonsource

import "fmt"

// Mode says whether OCM's addon-manager runs on the hub.
type Mode string

const (
	// Coexist: it runs, for add-ons that are not ours. The live ClusterManagementAddOn
	// of ours is fenced off from it.
	Coexist Mode = "coexist"
	// Replace: it does not run. The ClusterManagementAddOn is applied as declared.
	Replace Mode = "replace"
)

// ParseMode reads the flag --addon-manager.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Coexist, Replace:
		return m, nil
	default:
		return "", fmt.Errorf("cannot use --addon-manager=%q: it is neither %s nor %s", s, Coexist, Replace)
	}
}
