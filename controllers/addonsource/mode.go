package addonsource

import "fmt"

// Mode says whether OCM's addon-manager runs on the hub.
type Mode string

const (
	// Coexist: it runs, for other add-ons. The ClusterManagementAddOns of AddonFlow are fenced
	// off from it.
	Coexist Mode = "coexist"
	// Replace: it does not run. ClusterManagementAddOns are applied as declared.
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
