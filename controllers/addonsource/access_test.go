package addonsource_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/gitserver"
)

// newSecret stores a Secret in the world's namespace.
func (w *world) newSecret(name string, data map[string][]byte) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: data}
	w.create(secret)
	return secret
}

// newKey makes a key with ssh-keygen, and returns both halves.
func newKey(args ...string) (private, public []byte) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "key")
	out, err := exec.CommandContext(GinkgoT().Context(), "ssh-keygen", append([]string{"-q", "-t", "ed25519", "-N", "", "-f", file}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	private, err = os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	public, err = os.ReadFile(file + ".pub")
	Expect(err).NotTo(HaveOccurred())
	return private, public
}

// whyNotReady returns reason and text of the source's Ready condition.
func (w *world) whyNotReady() string {
	GinkgoHelper()
	ready := conditions.Get(w.source(), fluxmeta.ReadyCondition)
	Expect(ready).NotTo(BeNil())
	return string(ready.Status) + " " + ready.Reason + ": " + ready.Message
}

var _ = Describe("Access to a repository", func() {
	It("over SSH uses a Secret as Flux writes it, and reads it again when it rotates", func() {
		private, public := newKey()
		server, err := gitserver.StartSSH(gitserver.SSHOptions{Dir: GinkgoT().TempDir(), AuthorizedKeys: string(public)})
		if errors.Is(err, gitserver.ErrNoSSHD) {
			Skip(err.Error())
		}
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Close)
		hosts, err := server.KnownHosts()
		Expect(err).NotTo(HaveOccurred())

		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Suspend = true })
		secret := w.newSecret("git", map[string][]byte{
			"identity": private, "identity.pub": public, "known_hosts": []byte(strings.ReplaceAll(hosts, "127.0.0.1", "git.example.com")),
		})
		w.commit("add hello", addOnFiles())
		w.change(func(s *v1alpha1.AddOnSource) {
			s.Spec.Suspend, s.Spec.URL = false, server.URL(w.repo.Dir())
			s.Spec.SecretRef = &fluxmeta.LocalObjectReference{Name: "git"}
		})
		w.pass()
		Expect(w.whyNotReady()).To(HavePrefix(`False InvalidCredentials: secret "git": invalid credentials: key known_hosts has no line for [127.0.0.1]:`))

		secret.Data["known_hosts"] = []byte(hosts)
		Expect(admin.Update(GinkgoT().Context(), secret)).To(Succeed())
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: Applied revision main@sha1:"))

		secret.Data["identity"], secret.Data["identity.pub"] = newKey()
		Expect(admin.Update(GinkgoT().Context(), secret)).To(Succeed())
		w.clock.Step(w.source().Spec.Interval.Duration * 2)
		w.pass()
		Expect(w.whyNotReady()).To(ContainSubstring("InvalidCredentials: cannot list the references of ssh://127.0.0.1:"))
		Expect(w.whyNotReady()).To(ContainSubstring("authentication failed: the server does not accept the key ssh-ed25519 SHA256:"))
	})

	It("goes through the proxy of spec.proxySecretRef, and shows no credential of it", func() {
		proxy, err := gitserver.StartProxy(gitserver.ProxyOptions{User: "ana", Password: "canary-7f3a"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(proxy.Close)
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.ProxySecretRef = &fluxmeta.LocalObjectReference{Name: "proxy"} })
		w.commit("add hello", addOnFiles())
		w.pass()
		Expect(w.whyNotReady()).To(Equal(`False InvalidCredentials: secret "proxy" does not exist`))

		secret := w.newSecret("proxy", map[string][]byte{"address": []byte(proxy.URL()), "username": []byte("ana"), "password": []byte("canary-7f3b")})
		w.clock.Step(w.source().Spec.Interval.Duration)
		w.pass()
		Expect(w.whyNotReady()).To(HavePrefix("False FetchFailed: "))
		Expect(w.whyNotReady()).NotTo(ContainSubstring("canary"))

		secret.Data["password"] = []byte("canary-7f3a")
		Expect(admin.Update(GinkgoT().Context(), secret)).To(Succeed())
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))
		Expect(proxy.Seen()).NotTo(BeEmpty())
		Expect(w.logged).NotTo(ContainElement(ContainSubstring("canary")))
	})
})
