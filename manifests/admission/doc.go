// Package admission holds the ValidatingAdmissionPolicy that proves the author of an AddOnApproval, and its binding.
// They are embedded, so that the operator can compare the objects on the hub with them.
package admission
