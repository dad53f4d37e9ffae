package secret

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Reference is the Secret that a field names, as every message about it names it.
type Reference struct {
	Field string
	types.NamespacedName
}

// String returns the field and the Secret.
func (r Reference) String() string { return r.Field + ": Secret " + r.NamespacedName.String() }

// Unread says why the Secret could not be read.
func (r Reference) Unread(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s does not exist", r)
	}
	return fmt.Errorf("cannot read %s: %w", r, err)
}
