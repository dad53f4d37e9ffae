package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/freeport"
)

var _ = Describe("An operator that", Serial, func() {
	It("is killed in the middle of a wave goes on where it was", func(ctx SpecContext) {
		all := clusters(6)
		s := newScene(ctx, "killed", all)
		policy := s.atV1("1s", "2m", "2", 0)

		hold(all[1:]...)
		before := s.generations()
		sha := s.commit("v2", policy)
		Eventually(func() []string { return moved(before, s.generations()) }).Should(HaveLen(3), "the canary and one wave")
		admitted := func() map[string]time.Time {
			records, err := rollout.Records(s.rollout().Status.Ledger)
			Expect(err).NotTo(HaveOccurred())
			times := map[string]time.Time{}
			for _, r := range records {
				if r.InFlight() {
					times[r.Cluster] = r.Admitted
				}
			}
			return times
		}
		clocks := admitted()
		world.Operator.Kill()
		Expect(world.StartOperator(options)).To(Succeed())
		Consistently(func() []string { return moved(before, s.generations()) }, "5s").Should(HaveLen(3),
			"the slots are still held")
		Expect(admitted()).To(Equal(clocks), "a restart resets no clock")
		release(all[1:]...)
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		Expect(mostInFlight("killed")).To(BeNumerically("<=", 2))
		s.wroteOnce(before)
	})

	It("has a second instance never admits one cluster too many", func(ctx SpecContext) {
		twin, err := demo.StartOperator(demo.OperatorOptions{
			Binary: options.Binary, Kubeconfig: world.OperatorKubeconfig, Flags: slices.Concat(options.OperatorFlags, noServers()),
			LogFile: filepath.Join(world.Dir, "twin.log"),
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(twin.Stop()).To(Succeed()) })

		all := clusters(6)
		s := newScene(ctx, "twins", all)
		policy := s.atV1("0s", "2m", "2", 0)
		before := s.generations()
		sha := s.commit("v2", policy)
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		Expect(mostInFlight("twins")).To(BeNumerically("<=", 2))
		s.wroteOnce(before)
	})

	It("is elected leads alone until it ends, and says how it is and what it does", func(ctx SpecContext) {
		elected := func(name string, flags ...string) *demo.Operator {
			GinkgoHelper()
			flags = slices.Concat(options.OperatorFlags, noServers(), []string{"--enable-leader-election"}, flags)
			o, err := demo.StartOperator(demo.OperatorOptions{
				Binary: options.Binary, Kubeconfig: world.OperatorKubeconfig, Flags: flags, LogFile: filepath.Join(world.Dir, name+".log"),
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(o.Stop)
			return o
		}
		world.Operator.Kill()
		DeferCleanup(func() { Expect(world.StartOperator(options)).To(Succeed()) })
		metrics, health := freeAddress(), freeAddress()
		first := elected("first", "--metrics-addr="+metrics, "--health-addr="+health)
		Eventually(leader).ShouldNot(BeEmpty())
		holder := leader()
		standby := freeAddress()
		elected("second", "--health-addr="+standby)
		Eventually(answer).WithArguments("http://" + standby + "/readyz").Should(Equal("200 ok"))

		all := clusters(2)
		s := newScene(ctx, "elected", all)
		s.awaitPhase(s.commit("v1", ""), v1alpha1.PhaseSucceeded)
		Expect(leader()).To(Equal(holder), "the other one waits")
		for _, probe := range []string{"/healthz", "/readyz"} {
			Expect(answer("http://" + health + probe)).To(Equal("200 ok"))
		}
		Eventually(answer).WithArguments("http://" + metrics + "/metrics").Should(And(
			ContainSubstring(`gotk_reconcile_duration_seconds_count{kind="AddOnSource",name="elected",namespace="default"}`),
			ContainSubstring(`gotk_reconcile_duration_seconds_count{kind="AddOnRollout",name="elected",namespace="default"}`),
			ContainSubstring(`leader_election_master_status{name="addonflow-leader-election"} 1`),
			ContainSubstring(`addonflow_rollout_clusters{name="elected",namespace="default",state="updated"} 2`),
			ContainSubstring(`addonflow_rollout_phase{name="elected",namespace="default",phase="Succeeded"} 1`),
		))

		Expect(first.Stop()).To(Succeed())
		Eventually(leader).ShouldNot(BeElementOf("", holder))
		s.awaitPhase(s.commit("v2", ""), v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
	})

	It("cannot reach the forge rolls out anyway, and posts everything afterwards", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "outage", all)
		policy := s.atV1("0s", "1m", "3", 0)

		Expect(world.Forge.Down()).To(Succeed())
		sha := s.commit("v2", policy)
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
		Expect(world.Forge.Up()).To(Succeed())
		Eventually(s.statusOf).WithArguments(sha).Should(HavePrefix("success: "))
		Eventually(s.statusOf).WithArguments(sha, "canary").Should(HavePrefix("success: "))
	})
})

// leader is the holder of the operators' Lease; "" without one.
func leader() string {
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: "addonflow-system", Name: "addonflow-leader-election"}
	if err := world.Client.Get(context.Background(), key, &lease); err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// answer is the response of one of the operator's servers, "" if there is none.
func answer(url string) string {
	response, err := http.Get(url) //nolint:noctx // a server of this machine's, asked again until it answers
	if err != nil {
		return ""
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return ""
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// freeAddress is freeport.Address.
func freeAddress() string {
	GinkgoHelper()
	address, err := freeport.Address(context.Background())
	Expect(err).NotTo(HaveOccurred())
	return address
}

var _ = Describe("Beside OCM's addon-manager", func() {
	It("fences the live ClusterManagementAddOn off, and hides the template's hash", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "fenced", all)
		s.atV1("0s", "1m", "2", 0)

		var live addonv1alpha1.ClusterManagementAddOn
		Expect(world.Client.Get(ctx, client.ObjectKey{Name: "fenced"}, &live)).To(Succeed())
		Expect(live.Annotations).To(HaveKeyWithValue(v1alpha1.LifecycleAnnotation, v1alpha1.LifecycleValue))
		Expect(live.Spec.InstallStrategy.Type).To(Equal("Manual"))
		Expect(live.Spec.SupportedConfigs).To(BeEmpty(), "with addontemplates in it OCM's template controller starts")

		addOn := s.addOnOf(all[0])
		Expect(addOn.Status.ConfigReferences).To(HaveLen(1))
		Expect(addOn.Status.ConfigReferences[0].DesiredConfig.SpecHash).To(BeEmpty())
		Expect(addOn.Status.HealthCheck.Mode).To(BeEquivalentTo("Customized"))
		Expect(meta.FindStatusCondition(addOn.Status.Conditions, "Progressing").Reason).To(Equal(v1alpha1.InstallSucceed))
	})

	It("stops for a foreign writer, names it, and goes on when asked to", func(ctx SpecContext) {
		all := clusters(2)
		s := newScene(ctx, "foreign", all)
		policy := s.atV1("0s", "1m", "2", 0)

		addOn := s.addOnOf(all[0])
		meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
			Type: "Configured", Status: metav1.ConditionFalse, Reason: "ConfigurationsNotConfigured", Message: "Configurations updated and not configured yet",
		})
		Expect(world.Client.Status().Update(ctx, addOn, client.FieldOwner("another-writer"))).To(Succeed())
		Eventually(s.condition).WithArguments("Stalled").Should(And(HavePrefix("True OwnershipConflict: "), ContainSubstring(`"another-writer"`)))

		before := s.generations()
		sha := s.commit("v2", policy)
		Consistently(func() []string { return moved(before, s.generations()) }, "3s").Should(BeEmpty(), "two owners never fight")
		s.annotateRollout("reconcile.fluxcd.io/requestedAt", "now")
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
	})

	It("admits no cluster while another writer lists addontemplates again, names it, and continues afterwards", func(ctx SpecContext) {
		all := clusters(3)
		s := newScene(ctx, "fence-down", all)
		policy := s.atV1("0s", "2m", "2", 0)
		before, sha := s.wave(policy, all, 1)
		list := func(configs string) {
			owner := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: s.addOn}}
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"supportedConfigs":`+configs+`}}`))
			Expect(world.Client.Patch(ctx, owner, patch, client.FieldOwner("another-writer"))).To(Succeed())
		}

		list(`[{"group":"addon.open-cluster-management.io","resource":"addontemplates"}]`)
		Eventually(s.condition).WithArguments("Stalled").Should(And(HavePrefix("True OwnershipConflict: "), ContainSubstring(`"another-writer" lists addontemplates`)))
		release(all...)
		Eventually(func() int32 { return s.rollout().Status.Counts.Updated }).Should(BeEquivalentTo(1), "what is in flight goes on")
		Consistently(func() []string { return moved(before, s.generations()) }, "3s").Should(ConsistOf(all[0]), "and no other cluster follows")
		Expect(s.rollout().Status.Message).To(HavePrefix(`held: ownership conflict: "another-writer" lists addontemplates`))
		list("null")
		s.awaitPhase(sha, v1alpha1.PhaseSucceeded)
		Expect(s.running(all...)).To(allAt("v2", all...))
	})
})
