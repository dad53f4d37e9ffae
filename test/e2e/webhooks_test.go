package e2e

import (
	"net/http"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/forge"
)

// source reads the source of the add-on.
func (s *scene) source() *v1alpha1.AddOnSource {
	GinkgoHelper()
	source := &v1alpha1.AddOnSource{}
	Expect(world.Client.Get(s.ctx, client.ObjectKey{Namespace: demo.Namespace, Name: s.addOn}, source)).To(Succeed())
	return source
}

// webhook gives the source a webhook and returns how the forge calls it.
func (s *scene) webhook(secret string) forge.Webhook {
	GinkgoHelper()
	Expect(world.Client.Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: s.addOn + "-hook"}, StringData: map[string]string{"token": secret},
	})).To(Succeed())
	s.patchSource(`{"spec":{"webhook":{"type":"gitea","secretRef":{"name":"` + s.addOn + `-hook"}}}}`)
	Eventually(func() string { return s.source().Status.WebhookPath }).Should(HavePrefix(v1alpha1.WebhookPathPrefix))
	return forge.Webhook{URL: "http://" + webhooks + s.source().Status.WebhookPath, Secret: secret}
}

// send sends an event of a push of a commit and returns the code of the answer.
func (s *scene) send(by forge.Webhook, sha string) int {
	GinkgoHelper()
	event, err := by.Push(demo.ForgeRepository, "main", sha)
	Expect(err).NotTo(HaveOccurred())
	code, err := event.Send(s.ctx)
	Expect(err).NotTo(HaveOccurred())
	return code
}

var _ = Describe("A webhook", func() {
	It("of a push starts the rollout though the interval is an hour; a flood of replays is one look a second, and a wrong signature none", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "pushed", all)
		by := s.webhook("planted-hook-7f3a")
		looked := func() string { return s.source().Annotations[fluxmeta.ReconcileRequestAnnotation] }
		Eventually(s.source).Should(HaveField("Status.LastAppliedRevision", Not(BeEmpty())))

		By("refusing an event without the right signature")
		sha := s.push("v1", s.tree("v1", ""))
		before := looked()
		Expect(s.send(forge.Webhook{URL: by.URL, Secret: "guessed"}, sha)).To(Equal(http.StatusUnauthorized))
		Expect(s.send(forge.Webhook{URL: by.URL[:len(by.URL)-32] + strings.Repeat("0", 32), Secret: by.Secret}, sha)).To(Equal(http.StatusNotFound))
		Consistently(looked, "2s").Should(Equal(before))
		Expect(s.source().Status.LastAppliedRevision).NotTo(HaveSuffix(sha))

		By("looking at once at a signed one")
		Expect(s.send(by, sha)).To(Equal(http.StatusAccepted))
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)

		By("looking once a second in a flood of replays")
		last := -1
		Eventually(func() bool { // an operator that another test restarted looks at every source
			now := world.Git.Requests().LsRemote
			quiet := now == last
			last = now
			return quiet
		}).WithPolling(2 * time.Second).Should(BeTrue())
		event, err := by.Push(demo.ForgeRepository, "main", sha)
		Expect(err).NotTo(HaveOccurred())
		fetches, looks, begun := world.Git.Requests(), map[string]bool{}, time.Now()
		for time.Since(begun) < 4*time.Second {
			for range 10 {
				Expect(event.Send(ctx)).To(Equal(http.StatusAccepted))
			}
			looks[looked()] = true
		}
		seconds := int(time.Since(begun)/time.Second) + 2 // the look that was under way, and the second that has begun
		Expect(len(looks)).To(And(BeNumerically(">=", 2), BeNumerically("<=", seconds)))
		Expect(world.Git.Requests().LsRemote-fetches.LsRemote).To(BeNumerically("<=", seconds), "looks at Git; no other source looks within the hour")
		Expect(s.rollout().Status.Target.Commit).To(HaveSuffix(sha))

		By("losing none: a push during the flood is looked at")
		sha = s.push("v2", s.tree("v2", ""))
		Expect(s.send(by, sha)).To(Equal(http.StatusAccepted))
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
	})
})
