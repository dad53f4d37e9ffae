package strict

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// NewerNamesAnnotation on an AddOnTemplate or AddOnPackage lists names of fields and kinds that only a newer
// Kubernetes than AddonFlow's has: "workloadRef,PodGroup". AddonFlow delivers them as they are written. A listed name
// of a field is accepted anywhere in a manifest. All fields that AddonFlow knows are still checked.
const NewerNamesAnnotation = "addonflow.io/newer-names"

// NewerNamesHint is how NewerNamesAnnotation is written.
const NewerNamesHint = "write names of fields or kinds, with commas between"

// ParseNewerNames reads the value of NewerNamesAnnotation.
func ParseNewerNames(value string) ([]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	var names []string
	for entry := range strings.SplitSeq(value, ",") {
		name := strings.TrimSpace(entry)
		if len(validation.IsCIdentifier(name)) > 0 {
			return nil, fmt.Errorf("cannot read names: %q is the name of no field and no kind", name)
		}
		names = append(names, name)
	}
	return names, nil
}

// newerHint is the hint for a name that resembles no known name.
func newerHint(name string) string {
	return fmt.Sprintf("if a newer Kubernetes has it, annotate %s: %s", NewerNamesAnnotation, name)
}
