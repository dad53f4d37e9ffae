package addonsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render/load"
)

// TestStatuses_AfterAnyKillACommitEndsAsTheFleetRanIt: an operator is killed between any two of its writes, while
// commits follow each other. Every commit of which a status was stored ends. It is a success only if the fleet ran its
// content and its policy, and not superseded if the fleet runs both and no other commit came between.
func TestStatuses_AfterAnyKillACommitEndsAsTheFleetRanIt(t *testing.T) {
	kinds := []string{"content", "pace", "placement", "readme", "invalid", "revert", "remove"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		s := newStory(t)
		s.posts = random.IntN(2) == 0
		for range 3 {
			s.push(kinds[random.IntN(len(kinds))])
			s.killedAfter(random.IntN(7))
			switch random.IntN(6) {
			case 0, 1:
				s.end()
				s.rest()
			case 2: // the next commit is there before the source sees it
				s.end()
			}
		}
		s.rest()
		s.end()
		s.rest()
		s.judge()
	}
}

// TestStatuses_TellWhatWasNotApplied has one story for each mistake.
func TestStatuses_TellWhatWasNotApplied(t *testing.T) {
	for name, c := range map[string]struct {
		kinds []string
		kills []int
		want  string
	}{
		"PolicyOnly":                 {[]string{"pace", "invalid"}, []int{1, 9}, "error"},
		"PlacementOnly":              {[]string{"placement", "invalid"}, []int{1, 9}, "error"},
		"PolicyInPart":               {[]string{"pace", "invalid"}, []int{2, 9}, "error"},
		"ContentInPart":              {[]string{"content", "invalid"}, []int{2, 9}, "error"},
		"Policy":                     {[]string{"pace", "invalid"}, []int{3, 9}, "success"},
		"Removal":                    {[]string{"remove", "invalid"}, []int{2, 9}, "success"},
		"PolicyThatTheNextHas":       {[]string{"pace", "readme"}, []int{1, 9}, "success"},
		"PlacementThatTheNextHas":    {[]string{"placement", "readme"}, []int{3, 9}, "success"},
		"ReplacedByOneThatWasKilled": {[]string{"content", "content", "invalid"}, []int{9, 3, 9}, "error"},
		"EndedUnseen":                {[]string{"content", "end", "content", "invalid"}, []int{9, 0, 2, 9}, "success"},
		"EndedUnseenBeforePlacement": {[]string{"content", "end", "placement", "invalid"}, []int{9, 0, 2, 9}, "success"},
		"EndedUnseenBeforeRemoval":   {[]string{"content", "end", "remove", "invalid"}, []int{9, 0, 2, 9}, "success"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			for i, kind := range c.kinds {
				if kind == "end" {
					s.end() // and the source does not see it before the next commit
					continue
				}
				s.push(kind)
				s.killedAfter(c.kills[i])
			}
			s.rest()
			s.end()
			s.rest()
			s.judge()
			if got := s.said(s.commits[1].sha); got == nil || got.State != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

// declared is what a commit declares, each part by number; gone add-ons are not declared.
type declared struct{ content, pace, placement, gone int }

type pushedCommit struct {
	sha   string
	valid bool
	// replaced: another declaration followed, or an invalid commit while the rollouts had another one.
	replaced bool
	// succeeded: all rollouts ended while it was applied.
	succeeded bool
	declared
}

// story is a source with two add-ons, and its hub.
type story struct {
	client.Client
	t        *testing.T
	source   *v1alpha1.AddOnSource
	rollouts map[string]*v1alpha1.AddOnRollout
	// placement is on the hub.
	placement int
	// left are the writes until the operator is killed; below 0: it is not.
	left   int
	memory *memory
	// posts: the forge accepts what it gets.
	posts bool
	forge map[string]commitstatus.Statement

	commits []pushedCommit
	text    string
	// ran are the declarations that all rollouts had at a time, and verified the contents with which they ended.
	ran      map[declared]bool
	verified map[int]bool
}

var errKilled = errors.New("the operator was killed")

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{
		t: t, source: &v1alpha1.AddOnSource{}, rollouts: map[string]*v1alpha1.AddOnRollout{}, memory: &memory{}, left: -1,
		forge: map[string]commitstatus.Statement{}, ran: map[declared]bool{}, verified: map[int]bool{},
	}
	s.source.Namespace, s.source.Name = "team", "fleet"
	s.source.Spec.CommitStatus = &v1alpha1.CommitStatusSpec{Provider: "gitea", Address: "https://gitea.example/fleet/addons"}
	s.push("content")
	s.rest()
	s.end()
	s.rest()
	return s
}

func (s *story) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.AddOnRolloutList:
		for _, ro := range s.rollouts {
			list.Items = append(list.Items, *ro.DeepCopy())
		}
	case *v1alpha1.AddOnSourceList:
		list.Items = append(list.Items, *s.source.DeepCopy())
	}
	return nil
}

func (s *story) Status() client.SubResourceWriter { return statusOf{story: s} }

type statusOf struct {
	client.SubResourceWriter
	*story
}

func (w statusOf) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	if err := w.write(); err != nil {
		return err
	}
	o.(*v1alpha1.AddOnSource).DeepCopyInto(w.source) //nolint:errcheck // only sources have marks
	return nil
}

// write counts a write.
func (s *story) write() error {
	if s.left == 0 {
		return errKilled
	}
	s.left--
	return nil
}

// push pushes a commit of a kind.
func (s *story) push(kind string) {
	next := pushedCommit{sha: fmt.Sprintf("%040x", len(s.commits)+1), valid: kind != "invalid"}
	if n := len(s.commits); n > 0 {
		next.declared = s.commits[n-1].declared
	}
	switch kind {
	case "content":
		next.content = len(s.commits) + 1
	case "pace":
		next.pace = len(s.commits) + 1
	case "remove": // the second add-on, or declare it again
		next.gone = 1 - next.gone
	case "placement":
		next.placement = len(s.commits) + 1
	case "revert":
		for _, c := range slices.Backward(s.commits) {
			if c.valid && c.declared != next.declared {
				next.declared = c.declared
				break
			}
		}
	}
	live := s.live()
	for i := range s.commits {
		c := &s.commits[i]
		c.replaced = c.replaced || next.valid && next.declared != c.declared || !next.valid && (len(live) != 1 || !live[c.declared])
	}
	s.commits = append(s.commits, next)
	s.text += fmt.Sprintf("; %s %d", kind, len(s.commits))
}

// killedAfter lets an operator run until it rests or has written so often; then another one starts.
func (s *story) killedAfter(writes int) {
	s.text += fmt.Sprintf(" killed after %d", writes)
	s.left = writes
	s.rest()
	s.memory, s.left = &memory{}, -1
}

// rest lets an operator run until it rests.
func (s *story) rest() {
	for range 4 {
		if err := s.pass(); err != nil {
			if !errors.Is(err, errKilled) {
				s.t.Fatalf("%v%s", err, s.text)
			}
			return
		}
	}
}

// end lets all rollouts succeed.
func (s *story) end() {
	s.text += " ended"
	for _, ro := range s.rollouts {
		if ro.Spec.Removal != nil {
			ro.Status.Phase, ro.Status.ObservedGeneration = v1alpha1.PhaseRemoved, ro.Generation
			continue
		}
		ro.Status.Outcome, ro.Status.Phase, ro.Status.Target, ro.Status.ObservedGeneration = "success", v1alpha1.PhaseSucceeded, ro.Spec.Target, ro.Generation
	}
	for d := range s.live() {
		s.verified[d.content] = true
	}
	for i := range s.commits {
		c := &s.commits[i]
		c.succeeded = c.succeeded || c.sha == v1alpha1.CommitOf(s.source.Status.LastAppliedRevision) && c.placement == s.placement && len(s.live()) == 1 && s.live()[c.declared]
	}
}

// live is what the rollouts declare.
func (s *story) live() map[declared]bool {
	live := map[declared]bool{}
	of := func(revision string) (d declared) {
		for _, c := range s.commits {
			if strings.HasSuffix(revision, c.sha) {
				d = c.declared
			}
		}
		return d
	}
	gone := 0
	for _, ro := range s.rollouts {
		if ro.Spec.Removal != nil {
			gone = 1
		}
	}
	for _, ro := range s.rollouts {
		if ro.Spec.Removal != nil {
			continue
		}
		policy := of(cmp.Or(ro.Spec.PolicyCommit, ro.Spec.Target.Commit))
		live[declared{of(ro.Spec.Target.Commit).content, policy.pace, policy.placement, gone}] = true
	}
	return live
}

// pass is what Reconcile does with the head, without Git and the objects of the add-ons.
func (s *story) pass() error {
	head := s.commits[len(s.commits)-1]
	p := &pass{
		Reconciler: &Reconciler{Config: Config{Client: s, Live: s, Desk: forge.NewDesk(forge.Options{Secrets: s, Sources: s, Now: time.Now}), Clock: time.Now}, writes: &writes{}},
		source:     s.source.DeepCopy(), before: s.source.DeepCopy(), memory: s.memory, spec: "spec",
		head: gitsource.Revision{Ref: "main", Commit: head.sha}, applied: map[objectKey]*unstructured.Unstructured{},
	}
	out, err := s.follow(p, head)
	h, err := haltOf(err)
	if err != nil {
		return err
	}
	if h != nil && errors.Is(h.cause, errKilled) {
		return errKilled
	}
	p.remember(out, h)
	p.mark(out, h)
	book, err := p.openBook(s.t.Context(), out, h)
	if err != nil {
		return err
	}
	p.source.Status.CommitStatuses = book.Stored()
	for i := range p.source.Status.CommitStatuses {
		if m := &p.source.Status.CommitStatuses[i]; s.posts && m.Owed != nil {
			m.Accepted, m.Owed = m.Owed, nil
			s.forge[m.SHA] = *m.Accepted
		}
	}
	return p.store(s.t.Context())
}

func (s *story) follow(p *pass, head pushedCommit) (outcome, error) {
	status := s.source.Status
	switch attempted := status.LastAttemptedRevision == p.head.String(); {
	case !head.valid && attempted:
		return outcome{reached: kept}, nil
	case !head.valid:
		return outcome{reached: judged}, refuse(v1alpha1.ValidationFailedReason, nil)
	case attempted:
		return outcome{reached: steady}, nil
	}
	in := p.planInput(&attempt{commit: s.loaded(head)}, s.seen())
	todo, err := newPlan(in)
	if err != nil {
		return outcome{}, err
	}
	todo.rollouts = s.differing(todo.rollouts)
	edited := false
	for _, c := range todo.rollouts {
		var desired v1alpha1.AddOnRollout
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(c.desired.Object, &desired)
		live := s.rollouts[desired.Name]
		edited = edited || live != nil && live.Spec.PlacementDigest != desired.Spec.PlacementDigest
	}
	if err := todo.namePolicy(p.head.String()); err != nil {
		return outcome{}, err
	}
	out := outcome{reached: valid, content: declarationOf(todo.addOns)}
	if err := p.intend(s.t.Context(), todo, in.seen.rollouts); err != nil {
		return out, err
	}
	if s.placement != head.placement {
		if err := s.write(); err != nil {
			return out, err
		}
		s.placement = head.placement
	}
	if edited && s.memory.undecided != head.sha {
		s.memory.undecided = head.sha
		return out, wait(v1alpha1.PlacementUndecidedReason, time.Second, "waiting for OCM")
	}
	for _, c := range todo.rollouts {
		if err := s.write(); err != nil {
			return out, err
		}
		var next v1alpha1.AddOnRollout
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.desired.Object, &next); err != nil {
			return out, err
		}
		next.Generation = 1
		if live := s.rollouts[next.Name]; live != nil {
			next.Status, next.Generation = live.Status, live.Generation+1
		}
		s.rollouts[next.Name] = &next
		if live := s.live(); len(live) == 1 && len(s.rollouts) == 2 {
			for d := range live {
				s.ran[d] = true
			}
		}
	}
	out.replaced = p.lastVerdict(in.seen.rollouts)
	p.conclude(todo, in.seen)
	return outcome{reached: valid, replaced: out.replaced}, nil
}

// differing are the changes that a dry run would find.
func (s *story) differing(changes []change) []change {
	var out []change
	for _, c := range changes {
		var desired v1alpha1.AddOnRollout
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(c.desired.Object, &desired)
		if live := s.rollouts[desired.Name]; live == nil || !reflect.DeepEqual(live.Spec, desired.Spec) {
			out = append(out, c)
		}
	}
	return out
}

func (s *story) seen() *observation {
	seen := newObservation()
	for name, ro := range s.rollouts {
		seen.rollouts[name] = ro.DeepCopy()
	}
	return seen
}

// loaded is a commit with two add-ons.
func (s *story) loaded(c pushedCommit) load.Commit {
	all := v1alpha1.PlacementReference{Namespace: "team", Name: "all"}
	limit := int32(c.pace) //nolint:gosec // small
	var commit load.Commit
	for _, name := range []string{"hello", "world"}[:2-c.gone] {
		commit.AddOns = append(commit.AddOns, load.AddOn{
			Name: name, Digest: fmt.Sprintf("v1:sha256:%064x", c.content),
			Install: v1alpha1.Install{Placements: []v1alpha1.InstallPlacement{{PlacementReference: all}}},
			Rollout: &v1alpha1.AddOnRolloutSpec{RevisionHistoryLimit: &limit},
		})
	}
	commit.Objects = append(commit.Objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
		"metadata": map[string]any{"namespace": "team", "name": "all"}, "spec": map[string]any{"numberOfClusters": int64(c.placement)},
	}})
	return commit
}

// said is the last statement on a commit; nil if there is none.
func (s *story) said(sha string) *commitstatus.Statement {
	for _, m := range s.source.Status.CommitStatuses {
		if m.SHA == sha {
			return commitstatus.Last(m)
		}
	}
	if shown, ok := s.forge[sha]; ok {
		return &shown
	}
	return nil
}

// judge compares the last statements with the history.
func (s *story) judge() {
	s.t.Helper()
	live := s.live()
	for i, c := range s.commits {
		last := s.said(c.sha)
		if last == nil {
			continue
		}
		switch state := commitstatus.State(last.State); {
		case !state.Terminal(),
			c.succeeded && state != commitstatus.Success,
			state == commitstatus.Success && (!c.valid || !s.ran[c.declared] || !s.verified[c.content]),
			strings.HasPrefix(last.Description, "superseded") && c.valid && !c.replaced && len(live) == 1 && live[c.declared]:
			s.t.Errorf("commit %d %v is %s: %s%s; the rollouts declare %v", i+1, c.declared, last.State, last.Description, s.text, live)
		}
	}
}
