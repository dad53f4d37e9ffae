package registration

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// reservedPrefix begins the users and groups of Kubernetes and of OCM, such as system:masters,
// which has all rights wherever the signer is trusted.
const reservedPrefix = "system:"

// Reserved is a user or group in a template's subject that no agent gets.
type Reserved struct {
	Name string
	// Field is the path below registration, such as [0].customSigner.subject.groups[1].
	Field string
}

// ReservedSubjects lists the users and groups that registration blocks name and that begin with
// system:, in order. Two are allowed: the group of the add-on's agents on all clusters, which
// belongs to the add-on, and system:authenticated, which grants nothing. A name with a cluster
// in it is always listed, because on every other cluster it is the name of another agent.
func ReservedSubjects(specs []addonv1alpha1.RegistrationSpec, addOn string) []Reserved {
	var out []Reserved
	for i, spec := range specs {
		if spec.CustomSigner == nil || spec.CustomSigner.Subject == nil {
			continue
		}
		at := fmt.Sprintf("[%d].customSigner.subject", i)
		subject := spec.CustomSigner.Subject
		if strings.HasPrefix(subject.User, reservedPrefix) {
			out = append(out, Reserved{Name: subject.User, Field: at + ".user"})
		}
		own := []string{perAddOnGroup(addOn), authenticatedGroup}
		for j, group := range subject.Groups {
			if reserved(group, own) {
				out = append(out, Reserved{Name: group, Field: fmt.Sprintf("%s.groups[%d]", at, j)})
			}
		}
	}
	return out
}

// checkReserved refuses names of Kubernetes or OCM in a request, except for the agent's own
// default ones, whatever the template asks for.
func checkReserved(request *x509.CertificateRequest, addOn, cluster string) *Refusal {
	own := DefaultSubject(addOn, cluster)
	if user := request.Subject.CommonName; reserved(user, []string{own.User}) {
		return refused(ReasonWrongSubject, "has common name %q, which is never given to an agent", user)
	}
	groups := append([]string{authenticatedGroup}, own.Groups...)
	for _, group := range request.Subject.Organization {
		if reserved(group, groups) {
			return refused(ReasonWrongSubject, "has organization %q, which is never given to an agent", group)
		}
	}
	return nil
}

// reserved reports whether a name belongs to Kubernetes or OCM and is not in own.
func reserved(name string, own []string) bool {
	return strings.HasPrefix(name, reservedPrefix) && !slices.Contains(own, name)
}
