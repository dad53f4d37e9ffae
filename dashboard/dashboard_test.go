package dashboard

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/show"
)

var update = flag.Bool("update", false, "write the golden files")

// html writes a view.
func html(tb testing.TB, view any) string {
	tb.Helper()
	pages, err := NewPages()
	if err != nil {
		tb.Fatal(err)
	}
	var b bytes.Buffer
	if err := pages.Write(&b, view); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// golden compares a text with a file, or writes the file.
func golden(tb testing.TB, file, got string) {
	tb.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("-want +got:\n%s", diff)
	}
}

// TestPages compares whole pages with files: go test ./dashboard -update writes them.
func TestPages(t *testing.T) {
	s, refused := subject(t), refusedSource()
	for name, view := range map[string]any{
		"rollout": NewRollout(frame(RolloutPath("default", "hello", sha("2"))), s),
		"past":    NewPast(frame(RolloutPath("default", "hello", sha("1"))), s, 1),
		"fleet":   NewFleet(frame(""), []v1alpha1.AddOnRollout{*failed()}, []v1alpha1.AddOnSource{*fleetSource()}, nil, at()),
		"source":  NewSource(frame(SourcePath("default", "fleet", "")), refused),
		"cluster": NewCluster(frame(clusterPath("eu-01")), "eu-01", []On{{failed(), planOf().Clusters[1]}}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, filepath.Join("testdata", name+".html"), html(t, view))
		})
	}
}

// TestPageShowsNoValueOfASecret: neither before nor after.
func TestPageShowsNoValueOfASecret(t *testing.T) {
	page := html(t, NewRollout(frame(""), subject(t)))
	if strings.Contains(page, "hunter") {
		t.Error("a value is on the page")
	}
	if !strings.Contains(page, "password: &#39;*** (after)&#39;") {
		t.Error("that the value changes is not on the page")
	}
}

// A page is about the commit that it is asked for, whatever the fleet runs instead.
func TestPageOfACommit_IsAboutThatCommit(t *testing.T) {
	fixed, finishing := rolledBack().Rollout, progressing().Rollout
	fixed.Spec.Target, fixed.Status.Target, fixed.Status.Override = targetOf("3"), targetOf("3"), nil
	fixed.Status.Phase = v1alpha1.PhaseProgressing
	fixed.Status.History = append([]v1alpha1.HistoryEntry{{Target: *targetOf("3"), Phase: v1alpha1.PhaseProgressing}}, fixed.Status.History...)
	finishing.Spec.Target = targetOf("3")
	finishing.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideFinish, Declared: *targetOf("3")}
	takenBack := finishing.DeepCopy()
	takenBack.Status.Phase, takenBack.Status.Target, takenBack.Status.History = v1alpha1.PhaseRollingBack, targetOf("1"), rolledBack().Rollout.Status.History
	takenBack.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *targetOf("3"), From: targetOf("2")}
	unseen := rolledBack().Rollout
	unseen.Spec.Target, unseen.Generation = targetOf("3"), 3
	onlyRollback := rolledBack().Rollout
	onlyRollback.Status.History = onlyRollback.Status.History[:2]
	policy := progressing().Rollout
	policy.Spec.PolicyCommit, policy.Spec.Target, policy.Status.Target = "main@sha1:"+sha("1"), targetOf("2"), targetOf("2")
	const waits = "Commit 3333333 waits until this rollout has ended. This page is about the commit that it waits for."
	for name, c := range map[string]struct {
		rollout              *v1alpha1.AddOnRollout
		asked, commit, state string
		note                 string
	}{
		"TakenBack":                    {rolledBack().Rollout, "2", "main@2222222", "RolledBack", ""},
		"TheFleetIsBackOnIt":           {rolledBack().Rollout, "1", "main@1111111", "Succeeded", "24 of 24 clusters run main@1111111, rolled back from main@2222222."},
		"ItsOwnRolloutIsNotKept":       {onlyRollback, "1", "main@1111111", "RolledBack", "24 of 24 clusters run main@1111111, rolled back from main@2222222."},
		"TheFleetWasBackOnIt":          {fixed, "1", "main@1111111", "Succeeded", "This commit is not rolled out any more."},
		"TheFixOfIt":                   {fixed, "3", "main@3333333", "Progressing", ""},
		"NotPlannedAfterARollback":     {unseen, "3", "main@3333333", "Pending", ""},
		"IsFinished":                   {finishing, "2", "main@2222222", "Progressing", ""},
		"WaitsForItsEnd":               {finishing, "3", "main@2222222", "Progressing", waits},
		"TakenBackAndNewerWaits":       {takenBack, "2", "main@2222222", "RollingBack", ""},
		"WaitsForTheRollback":          {takenBack, "3", "main@2222222", "RollingBack", waits},
		"AlsoDeclaredThePolicyOfToday": {policy, "1", "main@1111111", "Succeeded", "This commit is not rolled out any more."},
	} {
		t.Run(name, func(t *testing.T) {
			s := Subject{Rollout: c.rollout, Source: fleetSource(), Now: at(), Asked: sha(c.asked)}
			page := Rollout{}
			switch current, past := Concerns(s.Rollout, s.Source, s.Asked); {
			case past >= 0:
				page = NewPast(frame(""), s, past)
			case current:
				page = NewRollout(frame(""), s)
			}
			text := html(t, page)
			if page.Commit.Short != c.commit || page.Mark.Word != c.state || !strings.Contains(text, c.note) {
				t.Errorf("%s %s, want %s %s: %s", page.Commit.Short, page.Mark.Word, c.commit, c.state, text)
			}
			for _, wrong := range []string{"did not change the content", "waits until", "not rolled out any more"} {
				if strings.Contains(text, wrong) && !strings.Contains(c.note, wrong) {
					t.Errorf("the page says %q", wrong)
				}
			}
		})
	}
}

// A page from which rollouts are omitted does not say that there is none.
func TestFleet_WithoutTheRightToListSaysNothingOfTheRest(t *testing.T) {
	const none = "There is no rollout here yet."
	if page := html(t, NewFleet(frame(""), nil, nil, []string{"You may not list the rollouts of any namespace."}, at())); strings.Contains(page, none) {
		t.Error(page)
	}
	if page := html(t, NewFleet(frame(""), nil, nil, nil, at())); !strings.Contains(page, none) {
		t.Error(page)
	}
}

// TestHostileTextStaysText: names, reasons and messages come from Git, from clusters and from users
// of the hub.
func TestHostileTextStaysText(t *testing.T) {
	const evil = `</title></pre>"'><script>alert(1)</script><img src=x onerror=alert(1)>{{.Base}}` + "\u202e\x1b[31m"
	s := subject(t)
	r := s.Rollout
	r.Status.Message, r.Status.Failing[0].Reason, r.Status.Failing[0].Cluster = evil, evil, evil
	r.Status.Conditions[0].Message = evil
	r.Status.Journal[0].Reason, r.Status.Journal[0].Decision = evil, evil
	r.Status.History[1].Reason, r.Status.History[1].SupersededBy = evil, evil
	r.Status.Stages[1].Name, r.Spec.Stages[1].Name, r.Status.Stages[1].Message = evil, evil, evil
	r.Spec.Target.Commit, r.Spec.Target.Source = "javascript:alert(1)@sha1:"+evil, evil
	s.Source.Spec.CommitStatus.Address = "javascript:alert(1)//" + evil
	s.Plan.Clusters[1] = rollout.ClusterPlan{Name: evil, Stage: evil, State: rollout.Failed, Reason: evil}
	s.Change.After = append(s.Change.After, &unstructured.Unstructured{Object: map[string]any{"apiVersion": evil, "kind": evil, evil: evil}})
	s.Unplanned = evil
	source := fleetSource()
	source.Name, source.Spec.URL, source.Spec.Path = evil, "javascript:alert(1)", evil
	source.Status.AddOns[0].Name, source.Status.Conditions[0].Message = evil, evil
	s.Source.Status.AddOns[0].Author, s.Source.Status.AddOns[0].Subject = evil, evil
	for name, view := range map[string]any{
		"rollout":  NewRollout(frame(evil), s),
		"past":     NewPast(frame(""), s, 1),
		"fleet":    NewFleet(Frame{Viewer: evil}, []v1alpha1.AddOnRollout{*r}, []v1alpha1.AddOnSource{*source}, []string{evil}, at()),
		"source":   NewSource(frame(""), source),
		"cluster":  NewCluster(frame(""), evil, []On{{r, s.Plan.Clusters[1]}}, []string{evil}),
		"clusters": NewClusters(frame(""), s, ClustersOf{Stage: evil, State: "Failed"}),
		"login":    Login{To: evil, Refused: evil},
		"message":  Message{Text: evil, To: Link{evil, "javascript:alert(1)"}},
	} {
		page := strings.ToLower(html(t, view))
		if strings.Count(page, "<script") != 1 || strings.Contains(page, "<img") || strings.Contains(page, `href="javascript:`) {
			t.Errorf("%s: the text became code:\n%s", name, page)
		}
		if strings.ContainsFunc(page, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }) || strings.Contains(page, "alert(1)") && !strings.Contains(page, `\u202e`) {
			t.Errorf("%s: text can turn round what stands beside it", name)
		}
	}
}

// TestCommitsOfARollout: the page of the current content is also that of a commit that carries it,
// a commit of the history has a summary, and another one is not kept.
func TestCommitsOfARollout(t *testing.T) {
	r, source := failed(), fleetSource()
	source.Status.LastAppliedRevision = "main@sha1:" + sha("4")
	for name, c := range map[string]struct {
		sha     string
		current bool
		past    int
	}{
		"Target":      {sha("2"), true, -1},
		"Short":       {sha("2")[:7], true, -1},
		"CarriesIt":   {sha("4"), true, -1},
		"History":     {sha("1"), false, 1},
		"NotKept":     {sha("9"), false, -1},
		"TooShort":    {"2", false, -1},
		"NothingSaid": {"", false, -1},
	} {
		t.Run(name, func(t *testing.T) {
			if current, past := Concerns(r, source, c.sha); current != c.current || past != c.past {
				t.Errorf("got %t, %d", current, past)
			}
		})
	}
}

// TestWhy_LinksToClustersInTheirState: the list behind the link is filtered by the state, so clusters that timed out are
// not in a list of those that failed.
func TestWhy_LinksToClustersInTheirState(t *testing.T) {
	s := subject(t)
	for i := range 12 {
		s.Plan.Clusters = append(s.Plan.Clusters, rollout.ClusterPlan{Name: fmt.Sprintf("x-%02d", i), Stage: "canary", State: rollout.TimedOut, Reason: "not verified in 30m"})
	}
	others := NewRollout(frame("x"), s).Why.Others
	if len(others) != 1 || others[0].Count != 12 || others[0].Word != "TimedOut" || !strings.HasSuffix(others[0].All, "clusters?state=TimedOut") {
		t.Fatalf("got %+v", others)
	}
}

// TestGeneratedNamesDoNotSplitReasons: clusters that fail alike are one group, though the names of
// their ReplicaSets and pods differ.
func TestGeneratedNamesDoNotSplitReasons(t *testing.T) {
	s := subject(t)
	const reason = `Deployment hello: ProgressDeadlineExceeded: ReplicaSet "hello-%s" has timed out progressing`
	s.Plan.Clusters[1].Reason = fmt.Sprintf(reason, "8f49968b7")
	s.Plan.Clusters[2].Reason = fmt.Sprintf(reason, "55c67bb467")
	view := NewRollout(frame(""), s)
	if view.Why.Reason != s.Plan.Clusters[1].Reason || view.Why.Same != "The same on 1 more." || len(view.Why.Others) > 0 {
		t.Errorf("%+v", view.Why)
	}
	if groups := view.Stages[0].Squares.Groups; len(groups) != 1 || groups[0].Reason != fmt.Sprintf(reason, "*") {
		t.Errorf("%+v", groups)
	}
	for text, want := range map[string]string{
		"pod hello-8f49968b7-x2x4z: OOMKilled":  "pod hello-*: OOMKilled",
		"DaemonSet node-exporter: 2 of 3 ready": "DaemonSet node-exporter: 2 of 3 ready",
		"cluster eu-01 of group-12345678":       "cluster eu-01 of group-12345678",
	} {
		if got := alike(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// A revert of content that was rolled back moves no cluster.
func TestPage_OfContentThatTheClustersRanBeforeShowsNoChange(t *testing.T) {
	s := subject(t)
	s.Change.From = targetOf("2")
	if page := html(t, NewRollout(frame(""), s)); !strings.Contains(page, ">eu-01</a>, which ran this content before.") || strings.Contains(page, "against") {
		t.Error(page)
	}
}

// TestFleetByNeed: what a user must look at comes first.
func TestFleetByNeed(t *testing.T) {
	named := func(name string, phase v1alpha1.Phase) v1alpha1.AddOnRollout {
		r := failed()
		r.Name, r.Status.Phase = name, phase
		if phase != v1alpha1.PhaseFailed {
			r.Status.Conditions = nil
		}
		return *r
	}
	page := NewFleet(frame(""), []v1alpha1.AddOnRollout{
		named("a", v1alpha1.PhaseSucceeded), named("b", v1alpha1.PhaseProgressing), named("c", v1alpha1.PhaseHeld),
		named("d", v1alpha1.PhaseRolledBack), named("f", v1alpha1.PhaseFailed), named("e", v1alpha1.PhaseFailed),
	}, nil, nil, at())
	var got []string
	for _, row := range page.Rollouts {
		got = append(got, strings.TrimPrefix(row.Rollout.Text, "default/"))
	}
	if want := []string{"e", "f", "d", "c", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if page.Standing != "6 rollouts, 4 need attention; 0 sources, 0 refused." {
		t.Error(page.Standing)
	}
}

// thousands is a rollout to ten thousand clusters in mixed states.
func thousands() Subject {
	s := Subject{Rollout: failed(), Source: fleetSource(), Plan: &rollout.Plan{}, Now: at()}
	states := []rollout.State{rollout.Done, rollout.Updating, rollout.Soaking, rollout.Failed, rollout.Waiting, rollout.Parked}
	for i := range 10000 {
		state := states[i*i%97%len(states)]
		s.Plan.Clusters = append(s.Plan.Clusters, rollout.ClusterPlan{
			Name: fmt.Sprintf("cluster-%05d", i), Stage: "everyone", State: state, Reason: fmt.Sprintf("reason %d of %s", i%40, state),
		})
	}
	return s
}

// TestReasonsOfManyClustersAreCut: with a long reason of its own on every cluster, a page of linked squares stays small.
func TestReasonsOfManyClustersAreCut(t *testing.T) {
	for _, fleet := range []struct{ clusters, name int }{{600, 13}, {400, 63}, {600, 63}, {1000, 13}} {
		s := Subject{Rollout: failed(), Source: fleetSource(), Plan: &rollout.Plan{}, Now: at()}
		for i := range fleet.clusters {
			s.Plan.Clusters = append(s.Plan.Clusters, rollout.ClusterPlan{
				Name: fmt.Sprintf("cluster-%0*d", fleet.name-8, i), Stage: "everyone", State: rollout.Failed,
				Reason: fmt.Sprintf("Deployment %d: \"%s\"", i, strings.Repeat("cannot pull the image <hello>, ", 20)),
			})
		}
		view := NewRollout(frame(""), s)
		page, squares := html(t, view), view.Stages[1].Squares
		if len(page) > 150<<10 {
			t.Errorf("%d clusters with names of %d bytes: %d bytes", fleet.clusters, fleet.name, len(page))
		}
		if linked := fleet.clusters == 400 || fleet.name == 13 && fleet.clusters == 600; (len(squares.Linked) > 0) != linked {
			t.Errorf("%d clusters with names of %d bytes: %d linked squares", fleet.clusters, fleet.name, len(squares.Linked))
		}
		for _, square := range squares.Linked {
			if !strings.HasPrefix(square.Title, square.Cluster+": Failed: Deployment ") {
				t.Fatal(square.Title)
			}
		}
		t.Logf("%d clusters with names of %d bytes: %d bytes", fleet.clusters, fleet.name, len(page))
	}
}

// TestTenThousandClusters: every cluster has a square, and the page stays small.
func TestTenThousandClusters(t *testing.T) {
	s := thousands()
	view := NewRollout(frame(""), s)
	squares, page := 0, html(t, view)
	for _, p := range view.Stages[1].Squares.Painted {
		for run := range strings.SplitSeq(p.D, "M") {
			var x, y, width int
			if n, _ := fmt.Sscanf(run, "%d %dh%d", &x, &y, &width); n == 3 {
				squares += (width + 1) / smallPlace
			}
		}
	}
	if squares != 10000 || len(page) > 150<<10 {
		t.Errorf("%d squares in %d bytes", squares, len(page))
	}
	t.Logf("%d bytes", len(page))
	seen, from := 0, ""
	for range 100 {
		list := NewClusters(frame(""), s, ClustersOf{Stage: "everyone", State: "Done", From: from})
		seen += len(list.Clusters)
		_, from, _ = strings.Cut(list.Next, "from=")
		from, _, _ = strings.Cut(from, "&")
		if list.Next == "" {
			if seen != list.Total || seen == 0 {
				t.Errorf("the pages have %d of %d", seen, list.Total)
			}
			return
		}
	}
	t.Error("the pages do not end")
}

func BenchmarkTenThousandClusters(b *testing.B) {
	s := thousands()
	pages, err := NewPages()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var out bytes.Buffer
		if err := pages.Write(&out, NewRollout(frame(""), s)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRolloutPage_NamesAnOrderWithoutAnAnswer(t *testing.T) {
	s := subject(t)
	s.Rollout = show.WithOrders(s.Rollout, []v1alpha1.AddOnOrder{{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Rollout.Namespace, Name: "hello-retry-1"},
		Spec:       v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderRetry, Author: "ann", Reason: "registry is back"},
	}})
	p := NewRollout(frame("/"), s)
	const want = "waits for the operator to answer the order of ann: retry (registry is back)"
	if p.Mark.Word != "Pending" || p.Standing != "The rollout "+want+"." || len(p.Next) != 1 || !strings.Contains(p.Next[0].Text, want) {
		t.Errorf("%s: %s %v", p.Mark.Word, p.Standing, p.Next)
	}
}
