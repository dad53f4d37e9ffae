package addonsource_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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
		Expect(w.whyNotReady()).To(HavePrefix("False InvalidCredentials: spec.secretRef: Secret " + w.namespace + "/git: invalid credentials: key known_hosts has no line for [127.0.0.1]:"))

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

	It("is read with the next password if one rotates in the middle of a fetch, and no commit is judged by that", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Suspend = true })
		secret := w.newSecret("git", map[string][]byte{"username": []byte("ana"), "password": []byte("canary-1")})
		backend, err := url.Parse(w.repo.URL())
		Expect(err).NotTo(HaveOccurred())
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: backend.Scheme, Host: backend.Host})
		password := "canary-1"
		front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				password = "canary-2"
			}
			if _, given, _ := r.BasicAuth(); given != password {
				http.Error(rw, "not "+given, http.StatusUnauthorized)
				return
			}
			proxy.ServeHTTP(rw, r)
		}))
		DeferCleanup(front.Close)
		sha := w.commit("add hello", addOnFiles())
		w.change(func(s *v1alpha1.AddOnSource) {
			s.Spec.Suspend, s.Spec.URL = false, front.URL+backend.Path
			s.Spec.SecretRef = &fluxmeta.LocalObjectReference{Name: "git"}
		})
		result := w.pass()
		Expect(w.whyNotReady()).To(HavePrefix("False InvalidCredentials: cannot fetch "))
		Expect(w.whyNotReady()).NotTo(ContainSubstring("canary"))
		Expect(result.RequeueAfter).To(BeNumerically("<=", time.Second))
		secret.Data["password"] = []byte("canary-2")
		Expect(admin.Update(GinkgoT().Context(), secret)).To(Succeed())
		w.clock.Step(result.RequeueAfter)
		w.passes()
		Expect(w.whyNotReady()).To(Equal("True ReconciliationSucceeded: Applied revision main@sha1:" + sha))
	})

	It("shows no credential that the server repeats in an ERR line", func() {
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.Suspend = true })
		w.newSecret("git", map[string][]byte{"username": []byte("ana"), "password": []byte("canary-7f3a")})
		encoded := base64.StdEncoding.EncodeToString([]byte("ana:canary-7f3a"))
		repeated := 0
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "Basic "+encoded {
				repeated++
			}
			line := "ERR you sent " + r.Header.Get("Authorization")
			rw.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = fmt.Fprintf(rw, "%04x%s", len(line)+4, line)
		}))
		DeferCleanup(server.Close)
		w.change(func(s *v1alpha1.AddOnSource) {
			s.Spec.Suspend, s.Spec.URL = false, server.URL+"/fleet.git"
			s.Spec.SecretRef = &fluxmeta.LocalObjectReference{Name: "git"}
		})
		_, err := w.passOf("fleet")
		Expect(repeated).To(BeNumerically(">", 0))
		events := w.announced()
		Expect(w.whyNotReady()).To(ContainSubstring("you sent [redacted]"))
		Expect(events).To(ContainElement(ContainSubstring("you sent [redacted]")))
		said := fmt.Sprint(err, w.source(), events, w.logged, w.forge.Log())
		Expect(said).NotTo(Or(ContainSubstring("canary"), ContainSubstring(encoded)))
	})

	It("goes through the proxy of spec.proxySecretRef, and shows no credential of it", func() {
		proxy, err := gitserver.StartProxy(gitserver.ProxyOptions{User: "ana", Password: "canary-7f3a"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(proxy.Close)
		w := newWorld(func(s *v1alpha1.AddOnSource) { s.Spec.ProxySecretRef = &fluxmeta.LocalObjectReference{Name: "proxy"} })
		w.commit("add hello", addOnFiles())
		w.pass()
		Expect(w.whyNotReady()).To(Equal("False InvalidCredentials: spec.proxySecretRef: Secret " + w.namespace + "/proxy does not exist"))

		secret := w.newSecret("proxy", map[string][]byte{"address": []byte(proxy.URL()), "username": []byte("ana"), "password": []byte("canary-7f3b")})
		w.clock.Step(w.source().Spec.Interval.Duration)
		w.pass()
		Expect(w.whyNotReady()).To(And(HavePrefix("False InvalidCredentials: "), HaveSuffix("answered 407; check the Secret of spec.proxySecretRef")))
		Expect(w.whyNotReady()).NotTo(ContainSubstring("canary"))

		secret.Data["password"] = []byte("canary-7f3a")
		Expect(admin.Update(GinkgoT().Context(), secret)).To(Succeed())
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))
		Expect(proxy.Seen()).NotTo(BeEmpty())
		Expect(w.logged).NotTo(ContainElement(ContainSubstring("canary")))
	})
})

var _ = Describe("A commit that is not to be trusted", func() {
	// signingFlags are git's flags that sign with a new key, and the public half of it.
	signingFlags := func() (flags []string, public []byte) {
		GinkgoHelper()
		private, public := newKey()
		file := filepath.Join(GinkgoT().TempDir(), "signing")
		Expect(os.WriteFile(file, private, 0o600)).To(Succeed())
		return []string{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + file}, public
	}
	git := func(w *world, args ...string) string {
		GinkgoHelper()
		who := []string{"-C", w.repo.Dir(), "-c", "user.name=Ana Example", "-c", "user.email=ana@example.com"}
		out, err := exec.CommandContext(GinkgoT().Context(), "git", append(who, args...)...).Output()
		Expect(err).NotTo(HaveOccurred())
		return strings.TrimSpace(string(out))
	}

	It("because of its signature is refused before it is rendered, and judged again when a key is added or removed", func() {
		flags, public := signingFlags()
		_, stranger := signingFlags()
		w := newWorld(func(s *v1alpha1.AddOnSource) {
			s.Spec.Verify = &v1alpha1.VerifySpec{SecretRef: fluxmeta.LocalObjectReference{Name: "signers"}}
		})
		unsigned := w.commit("add hello", addOnFiles())
		w.pass()
		Expect(w.whyNotReady()).To(Equal("False InvalidCredentials: spec.verify.secretRef: Secret " + w.namespace + "/signers does not exist"))
		signers := w.newSecret("signers", map[string][]byte{"ana.sshpub": public})
		w.look()
		Expect(w.whyNotReady()).To(Equal("False VerificationFailed: commit " + unsigned[:10] + " is not signed; sign it with a key that spec.verify.secretRef has"))
		Expect(w.delivered(unsigned, "failure").Description).To(HavePrefix("commit " + unsigned[:10] + " is not signed; "))
		Expect(w.revisions()).To(BeEmpty())
		theGit.ResetRequests()
		w.look()
		Expect(theGit.Requests().UploadPack).To(BeZero(), "a refused commit is not fetched again")

		signed := git(w, append(flags, "commit-tree", "-S", "-p", unsigned, "-m", "signed", unsigned+"^{tree}")...)
		git(w, "update-ref", "refs/heads/main", signed)
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: Applied revision main@sha1:" + signed))

		signers.Data["ana.sshpub"] = stranger
		Expect(admin.Update(GinkgoT().Context(), signers)).To(Succeed())
		w.look()
		Expect(w.whyNotReady()).To(ContainSubstring("False VerificationFailed: commit " + signed[:10] + " is signed with the SSH key SHA256:"))
		Expect(w.revisions()).To(HaveLen(1), "what was applied stays")

		signers.Data["ana.sshpub"] = public
		Expect(admin.Update(GinkgoT().Context(), signers)).To(Succeed())
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))

		// A key that expires is no reason to read the commit again. Whenever it is read, it is refused.
		signers.Data["ana.sshpub"] = fmt.Appendf(nil, `expiry-time="%sZ" %s`, w.clock.Now().Add(time.Hour).UTC().Format("20060102150405"), public)
		Expect(admin.Update(GinkgoT().Context(), signers)).To(Succeed())
		w.look()
		w.clock.Step(2 * time.Hour)
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))
		signers.Data["other.sshpub"] = stranger
		Expect(admin.Update(GinkgoT().Context(), signers)).To(Succeed())
		w.look()
		Expect(w.whyNotReady()).To(And(HavePrefix("False VerificationFailed: "), ContainSubstring("has expired")))
		delete(signers.Data, "other.sshpub")
		Expect(admin.Update(GinkgoT().Context(), signers)).To(Succeed())
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("False VerificationFailed: "), "also with the keys under which it was applied")
	})

	It("because its key expired is refused by a forced reconcile", func() {
		flags, public := signingFlags()
		w := newWorld(func(s *v1alpha1.AddOnSource) {
			s.Spec.Verify = &v1alpha1.VerifySpec{SecretRef: fluxmeta.LocalObjectReference{Name: "signers"}}
		})
		w.newSecret("signers", map[string][]byte{
			"ana.sshpub": fmt.Appendf(nil, `expiry-time="%sZ" %s`, w.clock.Now().Add(time.Hour).UTC().Format("20060102150405"), public),
		})
		unsigned := w.commit("add hello", addOnFiles())
		git(w, "update-ref", "refs/heads/main", git(w, append(flags, "commit-tree", "-S", "-p", unsigned, "-m", "signed", unsigned+"^{tree}")...))
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))
		w.clock.Step(2 * time.Hour)
		w.change(func(s *v1alpha1.AddOnSource) {
			s.Annotations = map[string]string{fluxmeta.ReconcileRequestAnnotation: "now", fluxmeta.ForceRequestAnnotation: "now"}
		})
		w.passes()
		Expect(w.whyNotReady()).To(And(HavePrefix("False VerificationFailed: "), ContainSubstring("has expired")))
		Expect(exists(w.cma())).To(BeTrue(), "what was applied stays")
	})

	It("because of a force push is refused and reported, until spec.allowForcePush or the branch's return", func() {
		w := newWorld()
		first := w.commit("add hello", addOnFiles())
		w.passes()
		second := w.commit("change hello", addOnFilesWith(map[string]string{"README.md": "second"}))
		w.look()
		amended := git(w, "commit-tree", "-p", first, "-m", "amended", first+"^{tree}")
		git(w, "update-ref", "refs/heads/main", amended)
		w.look()
		const hint = ", which does not contain it; restore the branch, or set spec.allowForcePush"
		Expect(w.whyNotReady()).To(Equal("False NonFastForward: the branch moved from " + second[:10] + " to " + amended[:10] + hint))
		Expect(w.announced()).To(ContainElement(ContainSubstring("Warning NonFastForward")))
		w.delivered(amended, "failure")

		// A commit on top of the refused one does not follow the applied one either.
		above := git(w, "commit-tree", "-p", amended, "-m", "above", first+"^{tree}")
		git(w, "update-ref", "refs/heads/main", above)
		w.start()
		w.look()
		Expect(w.whyNotReady()).To(Equal("False NonFastForward: the branch moved from " + second[:10] + " to " + above[:10] + hint))

		git(w, "update-ref", "refs/heads/main", second)
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: Applied revision main@sha1:" + second))

		git(w, "update-ref", "refs/heads/main", above)
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.AllowForcePush = true })
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: Applied revision main@sha1:" + above))
	})
})
