package e2e

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
)

// receiver takes events over HTTP, as Flux's notification-controller does.
type receiver struct {
	server *httptest.Server

	mu     sync.Mutex
	events []eventv1.Event
}

func startReceiver() *receiver {
	r := &receiver{}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var e eventv1.Event
		if err := json.NewDecoder(request.Body).Decode(&e); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
		w.WriteHeader(http.StatusAccepted)
	}))
	return r
}

// of are the events about the rollout of an add-on, as "reason stage: message", of a commit.
func (r *receiver) of(addOn, sha string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.events {
		if e.InvolvedObject.Kind == v1alpha1.AddOnRolloutKind && e.InvolvedObject.Name == addOn && strings.HasSuffix(e.Metadata["event.toolkit.fluxcd.io/revision"], sha) {
			out = append(out, strings.TrimSpace(e.Severity+" "+e.Reason+" "+e.Metadata["addonflow.io/stage"])+": "+e.Message)
		}
	}
	return out
}

// line is one decision in the operator's log.
type line struct {
	Level                                                            string
	Msg, Rollout, Commit, Revision, Stage, Cluster, From, To, Reason string
	Clusters                                                         int
}

// story is what log and journal say about one commit.
type story struct {
	// admitted, moved, failed and done are clusters by the log, in order of their names.
	admitted, moved, failed, done []string
	// stages that were started, and the one that was halted with the reason, by the journal.
	stages      []string
	halted, why string
	// decisions of the journal, in their order.
	decisions []string
}

// storyOf reads a commit's story from the operator's log and from a journal only.
func (s *scene) storyOf(sha string, journal []v1alpha1.JournalEntry) story {
	GinkgoHelper()
	file, err := os.Open(filepath.Join(world.Dir, "operator.log"))
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(file.Close()).To(Succeed()) }()
	by := map[string]map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Rollout != demo.Namespace+"/"+s.addOn || !strings.HasSuffix(l.Commit, sha) || l.Cluster == "" {
			continue
		}
		Expect(l.Level).To(Equal("debug"), "a line per cluster")
		Expect([]string{l.Revision, l.Stage, l.To}).NotTo(ContainElement(""), "of %+v", l)
		if by[l.Msg] == nil {
			by[l.Msg] = map[string]bool{}
		}
		by[l.Msg][l.Cluster] = true
	}
	of := func(decision string) []string { return slices.Sorted(maps.Keys(by[decision])) }
	found := story{admitted: of("Admitted"), moved: of("Moved"), failed: of("Failed"), done: of("Verified")}
	for _, e := range journal {
		if !strings.HasPrefix(sha, e.Commit) {
			continue
		}
		Expect(e.At.IsZero()).To(BeFalse())
		found.decisions = append(found.decisions, e.Decision)
		switch e.Decision {
		case "StageStarted":
			found.stages = append(found.stages, e.Stage)
		case "Halted":
			found.halted, found.why = e.Stage, e.Reason
		}
	}
	return found
}

var _ = Describe("The decisions", func() {
	It("of a failed and reverted rollout are in journal and log", func(ctx SpecContext) {
		all := clusters(4)
		s := newScene(ctx, "decided", all)
		policy := s.atV1("0s", "2m", "2", 0)
		bad := s.commit("v2-bad", policy)
		s.awaitPhase(bad, v1alpha1.PhaseFailed)
		reverted := s.revert(bad)
		journal := s.awaitPhase(reverted, v1alpha1.PhaseSucceeded).Status.Journal

		failure := s.storyOf(bad, journal)
		Expect(failure.admitted).To(Equal(all[:1]), "the canary got it, and no other cluster")
		Expect(failure.moved).To(Equal(all[:1]))
		Expect(failure.failed).To(Equal(all[:1]))
		Expect(failure.done).To(BeEmpty())
		Expect(failure.stages).To(Equal([]string{"canary"}))
		Expect(failure.halted).To(Equal("canary"))
		Expect(failure.why).To(And(ContainSubstring("1 failed ("+all[0]+": "), ContainSubstring("ProgressDeadlineExceeded")))
		Expect(failure.decisions[0]).To(Equal("Started"))

		back := s.storyOf(reverted, journal)
		Expect(back.decisions).To(And(HaveExactElements("Reverted", "StageStarted", "Admitted", "Moved", "Verified", "StageCompleted", "Succeeded")))
		Expect(back.moved).To(Equal(all[:1]), "only the cluster that got the bad content moved back")
		Expect(back.done).To(Equal(all[:1]))

		past := s.rollout().Status.History[1]
		Expect(past.Phase).To(Equal(v1alpha1.PhaseFailed))
		Expect(past.Reason).To(Equal(failure.why))
		Expect(past.Failing).To(HaveLen(1))
		Expect(past.Stages).To(HaveLen(1))

		By("and a receiver of events got them, commit by commit")
		Eventually(notified.of).WithArguments("decided", reverted).Should(ContainElement(HavePrefix("info RolloutSucceeded: Completed the rollout of main@sha1:" + reverted)))
		Expect(notified.of("decided", bad)).To(And(
			ContainElement(HavePrefix("info RolloutProgressing: Started the rollout of main@sha1:"+bad)),
			ContainElement(HavePrefix("info StageStarted canary: Started stage canary of main@sha1:"+bad)),
			ContainElement(HavePrefix("error RolloutFailed canary: Halted the rollout of main@sha1:"+bad+": halted in canary: 1 failed")),
		))
		Expect(notified.of("decided", reverted)).To(ContainElement(HavePrefix("info RolloutReverted: Started the revert to main@sha1:" + reverted)))
		Eventually(posted.of).WithArguments("decided", reverted).Should(ContainElements("reverted", "succeeded"))
		Expect(posted.of("decided", bad)).To(ContainElements("started", "stage.started canary", "halted canary"))
		Expect(s.events(demo.Namespace, v1alpha1.RolloutFailedReason)).To(ConsistOf(HavePrefix("Halted the rollout of main@sha1:" + bad)))
	})
})
