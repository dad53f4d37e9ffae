package forge

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// second returns a source of the same name in another namespace, created later by the given
// time, that declares the same statuses.
func (b *bench) second(namespace string, after time.Duration) *v1alpha1.AddOnSource {
	s := b.source.DeepCopy()
	s.Namespace, s.ResourceVersion = namespace, ""
	s.CreationTimestamp = metav1.NewTime(b.source.CreationTimestamp.Add(after))
	return s
}

// store creates sources on the hub.
func (b *bench) store(sources ...*v1alpha1.AddOnSource) {
	b.t.Helper()
	for _, s := range sources {
		if err := b.hub.Create(b.t.Context(), s); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestContextBelongsToTheOldestSource: the older source, by what both declare, owns the
// context; the other one reports the owner and posts nothing.
func TestContextBelongsToTheOldestSource(t *testing.T) {
	on := func(change func(*v1alpha1.CommitStatusSpec)) func(*v1alpha1.AddOnSource) {
		return func(s *v1alpha1.AddOnSource) { change(s.Spec.CommitStatus) }
	}
	cases := map[string]struct {
		reason string
		after  time.Duration
		change func(*v1alpha1.AddOnSource)
		owned  bool
	}{
		"Older":        {"the first one keeps it", -time.Hour, func(*v1alpha1.AddOnSource) {}, true},
		"Younger":      {"a later source takes nothing over", time.Hour, func(*v1alpha1.AddOnSource) {}, false},
		"SameSecond":   {"the name decides, on every operator alike", 0, func(*v1alpha1.AddOnSource) {}, true},
		"Suspended":    {"its rollouts go on", -time.Hour, func(s *v1alpha1.AddOnSource) { s.Spec.Suspend = true }, true},
		"Elsewhere":    {"another repository has contexts of its own", -time.Hour, on(func(s *v1alpha1.CommitStatusSpec) { s.Address += "2" }), false},
		"OwnContext":   {"which is the way out", -time.Hour, on(func(s *v1alpha1.CommitStatusSpec) { s.Context = "mine" }), false},
		"SameByName":   {"said or left to the default", -time.Hour, on(func(s *v1alpha1.CommitStatusSpec) { s.Context = "addonflow/team" }), true},
		"Below":        {"the context of an add-on hello of this source is the same", -time.Hour, on(func(s *v1alpha1.CommitStatusSpec) { s.Context = "addonflow/team/hello" }), true},
		"Beside":       {"which only begins alike", -time.Hour, on(func(s *v1alpha1.CommitStatusSpec) { s.Context = "addonflow/team-2" }), false},
		"OtherCase":    {"for Gitea these are two contexts", -time.Hour, on(func(s *v1alpha1.CommitStatusSpec) { s.Context = "AddonFlow/team" }), false},
		"DotGit":       {"one repository in another form", -time.Hour, on(func(s *v1alpha1.CommitStatusSpec) { s.Address += ".git/" }), true},
		"Unusable":     {"nothing can be written there", -time.Hour, on(func(s *v1alpha1.CommitStatusSpec) { s.Address += "?a=b" }), false},
		"NotReporting": {"a source that reports nothing needs no context", -time.Hour, func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus = nil }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, goodWord)
			b.source.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
			other := b.second("another", c.after)
			c.change(other)
			b.store(b.source.DeepCopy(), other)
			b.reconcile(want(commitstatus.Success, "applied"))
			status, message := b.condition()
			owned := status == metav1.ConditionFalse && strings.Contains(message, "belongs to source another/team,") &&
				strings.Contains(message, "spec.commitStatus.context")
			if owned != c.owned || owned != (len(b.source.Status.CommitStatuses) == 0) {
				t.Errorf("%s: %s %q, %d reports", c.reason, status, message, len(b.source.Status.CommitStatuses))
			}
			if !owned {
				b.awaitRequest()
			}
			if posted := len(b.forge.Log()) > 0; posted == owned {
				t.Errorf("%s: posted %t", c.reason, posted)
			}
		})
	}
}

// TestContextPassesOn: statements from the time when another source owned the context are not
// posted later. When the owner is deleted, or another context is declared, the current state is
// posted.
func TestContextPassesOn(t *testing.T) {
	for name, resolve := range map[string]func(*bench, *v1alpha1.AddOnSource){
		"OwnerGone": func(b *bench, owner *v1alpha1.AddOnSource) {
			if err := b.hub.Delete(b.t.Context(), owner); err != nil {
				b.t.Fatal(err)
			}
		},
		"OwnContext": func(b *bench, _ *v1alpha1.AddOnSource) { b.source.Spec.CommitStatus.Context = "mine" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, goodWord)
			owner := b.second("another", -time.Hour)
			b.store(b.source.DeepCopy(), owner)
			b.reconcile(want(commitstatus.Failure, "refused"))
			if got := b.desk.Sharing(t.Context(), owner); len(got) != 1 || got[0].NamespacedName != client.ObjectKeyFromObject(b.source) {
				t.Errorf("a deleted owner must wake the sources that waited for it, got %v", got)
			}
			resolve(b, owner)
			b.reconcile(func(l *Book) {
				l.Enter(commitstatus.Want{SHA: sha, Context: ContextName(b.source), State: commitstatus.Success})
			})
			b.awaitRequest()
			b.reconcile(nothing)
			log := b.forge.Log()
			if status, _ := b.condition(); status != metav1.ConditionTrue || len(log) != 1 || log[0].State != "success" || log[0].Context != ContextName(b.source) {
				t.Errorf("%s, the forge has %+v", status, log)
			}
		})
	}
}

// TestContextOfANamespace: with tenants, no context of one namespace reads as that of another.
func TestContextOfANamespace(t *testing.T) {
	for context, want := range map[string]bool{
		"addonflow/team-b/sa": true, "addonflow/team-b/sa..1": true,
		"addonflow/team-a/sa": false, "addonflow/team-b": false,
		"addonflow/team-b/../team-a/sa": false, "addonflow/team-b/./sa": false, "addonflow/team-b//sa": false,
	} {
		source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "sa"}}
		source.Spec.CommitStatus = &v1alpha1.CommitStatusSpec{Context: context}
		if got := OfNamespace(source); got != want {
			t.Errorf("%s: %t, want %t", context, got, want)
		}
	}
}
