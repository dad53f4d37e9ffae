package registration

import (
	"crypto/rand"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// TestReservedSubjectsAreRefused: no agent gets a name that belongs to Kubernetes or OCM, even
// if its template asks for it: a commit with it is refused, and a request is neither approved
// nor signed.
func TestReservedSubjectsAreRefused(t *testing.T) {
	const user, group = "[0].customSigner.subject.user", "[0].customSigner.subject.groups[0]"
	named := func(user string, groups ...string) addonv1alpha1.Subject {
		return addonv1alpha1.Subject{User: user, Groups: groups}
	}
	cases := map[string]struct {
		reason  string
		subject addonv1alpha1.Subject
		// fields are refused in a commit; denied are the names refused in a request.
		fields []string
		denied bool
	}{
		"Own":              {reason: "names that are not reserved", subject: named("agent", "agents")},
		"Inside":           {reason: "only what begins so is reserved", subject: named("my-system:admin", "my-system:masters")},
		"OwnAddOn":         {reason: "the group of all agents of the add-on", subject: named("agent", perAddOn)},
		"Authenticated":    {reason: "every user is in it", subject: named("agent", "system:authenticated")},
		"Default":          {reason: "good on c1, and another's name elsewhere", subject: DefaultSubject("hello", "c1"), fields: []string{user, group}},
		"Masters":          {reason: "may everything", subject: named("agent", "system:masters"), fields: []string{group}, denied: true},
		"Admin":            {reason: "another subject", subject: named("system:admin"), fields: []string{user}, denied: true},
		"Both":             {reason: "each is said", subject: named("system:admin", "system:masters"), fields: []string{user, group}, denied: true},
		"OtherAddOn":       {reason: "another add-on's agents", subject: named("agent", perAddOn+"-2"), fields: []string{group}, denied: true},
		"OtherCluster":     {reason: "another cluster's agent", subject: named(DefaultSubject("hello", "c2").User), fields: []string{user}, denied: true},
		"Klusterlets":      {reason: "the klusterlets' group", subject: named("agent", "system:open-cluster-management:managed-clusters"), fields: []string{group}, denied: true},
		"GroupAsUser":      {reason: "a group is no user", subject: named(perAddOn), fields: []string{user}, denied: true},
		"Node":             {reason: "a kubelet", subject: named("system:node:n1", "system:nodes"), fields: []string{user, group}, denied: true},
		"AuthenticatedOne": {reason: "it is not the name of a user", subject: named("system:authenticated"), fields: []string{user}, denied: true},
	}
	authority := authorityUntil(t, signingTime.AddDate(1, 0, 0))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := goodAsk().custom()
			a.facts.Asked = a.facts.Asked[1:]
			a.facts.Asked[0].CustomSigner.Subject = &tc.subject
			a.request.Subject.CommonName, a.request.Subject.OrganizationalUnit = tc.subject.User, nil
			a.groups(tc.subject.Groups...)
			csr := a.seal(t)

			var fields []string
			for _, r := range ReservedSubjects(a.facts.Asked, "hello") {
				fields = append(fields, r.Field)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("%s: -want +refused in a commit\n%s", tc.reason, diff)
			}
			for what, refusal := range map[string]*Refusal{"approved": Check(csr, a.facts), "approved by hand": CheckContent(csr, a.facts)} {
				if (refusal != nil) != tc.denied || tc.denied && refusal.Reason != ReasonWrongSubject {
					t.Errorf("%s: %s: %v", tc.reason, what, refusal)
				}
			}
			_, err := authority.Sign(csr, signingTime, rand.Reader)
			var refusal *Refusal
			if errors.As(err, &refusal) != tc.denied || (err != nil) != tc.denied {
				t.Errorf("%s: signed: %v", tc.reason, err)
			}
		})
	}
}
