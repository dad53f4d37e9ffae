// Package admission is what proves the author of an AddOnApproval: a ValidatingAdmissionPolicy
// and its binding. They are embedded, so that the operator can compare what the hub has with
// what is shipped.
package admission
