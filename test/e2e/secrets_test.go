package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/leaks"
)

// planted begins every value that the specs put into a URL or a variable to be found again. What a user wrote there shows
// in what the user wrote, and in works; it shows in no text of the operator.
const planted = "planted-7f3a"

// notice is a CloudEvent of --notify-url.
type notice struct {
	Type string
	Data struct{ Rollout, Revision, Stage string }
}

// notices keeps the CloudEvents with a valid signature. It refuses those of the rollout "sealed", so that the operator
// has something to say about the URL.
type notices struct {
	mu   sync.Mutex
	kept []notice
}

func (n *notices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	mac := hmac.New(sha256.New, []byte(planted+"-notify-key"))
	mac.Write(body)
	var sent notice
	if err != nil || r.Header.Get("X-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) || json.Unmarshal(body, &sent) != nil || sent.Data.Rollout == "sealed" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = append(n.kept, sent)
}

// of are the kept events about a commit, as "type stage".
func (n *notices) of(addOn, sha string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []string
	for _, e := range n.kept {
		if e.Data.Rollout == addOn && strings.HasSuffix(e.Data.Revision, sha) {
			out = append(out, strings.TrimSpace(strings.TrimPrefix(e.Type, "io.addonflow.rollout.")+" "+e.Data.Stage))
		}
	}
	return out
}

// noticed starts the receiver of CloudEvents, and returns the operator's flags for it.
func noticed(dir string) []string {
	GinkgoHelper()
	server := httptest.NewServer(&posted)
	DeferCleanup(server.Close)
	key := filepath.Join(dir, "notify.key")
	Expect(os.WriteFile(key, []byte(planted+"-notify-key"), 0o600)).To(Succeed())
	return []string{"--notify-url=" + server.URL + "/?key=" + planted + "-notify", "--notify-key-file=" + key}
}

// shown names the Secrets of the hub whose values appear outside of Secrets, and the planted values in texts of the
// operator.
func shown(ctx context.Context) []string {
	GinkgoHelper()
	hub, err := leaks.Read(ctx, world.Hub.Config(), world.Client)
	Expect(err).NotTo(HaveOccurred())
	found, err := hub.Shown(texts(), planted)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// texts are what the operator says besides events and statuses, by place: logs, metrics, and messages to the forge and to others.
func texts() map[string][]byte {
	GinkgoHelper()
	address := "http://" + metrics + "/metrics"
	Eventually(answer).WithArguments(address).Should(ContainSubstring("gotk_reconcile_duration_seconds"), "the last spec may have restarted the operator")
	places := map[string][]byte{"the metrics": []byte(answer(address))}
	logs, err := filepath.Glob(filepath.Join(world.Dir, "*.log"))
	Expect(err).NotTo(HaveOccurred())
	for _, name := range logs {
		places[filepath.Base(name)], err = os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(places).To(HaveKey("operator.log"))
	notified.mu.Lock()
	defer notified.mu.Unlock()
	for place, content := range map[string]any{"the forge": world.Forge.Log(), "notifications": notified.events} {
		Expect(content).NotTo(BeEmpty())
		places[place], err = json.Marshal(content)
		Expect(err).NotTo(HaveOccurred())
	}
	return places
}

// sealed is the tree of an add-on with a planted variable, which its Deployment uses.
func (s *scene) sealed(tag, policy string) map[string]string {
	files := s.tuned(tag, policy)
	files["addons/config.yaml"] = strings.Replace(files["addons/config.yaml"], "{name: TAG, value: fleet}",
		"{name: TAG, value: "+tag+"}\n  - {name: SEALED, value: "+planted+"-variable}", 1)
	files["addons/template.yaml"] = strings.Replace(files["addons/template.yaml"], "--cluster=", "--cluster={{SEALED}}", 1)
	return files
}

var _ = Describe("What Secrets, URLs and variables hold", func() {
	It("shows in no text of the operator, whatever fails; the end of the suite looks for it", func(ctx SpecContext) {
		s := newScene(ctx, "sealed", clusters(2))
		policy := s.stages("0s", "1m", "2", 0)
		s.deliver("v1", s.sealed("v1", policy))

		By("a gate that cannot be reached")
		Expect(world.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: "sealed-gate", Annotations: map[string]string{"addonflow.io/gate-host": "127.0.0.1:1"}},
			StringData: map[string]string{"key": planted + "-key"},
		})).To(Succeed())
		s.submit("v2", s.sealed("v2", s.gated("canary", `
      before:
      - name: change
        type: webhook
        webhook: {url: "http://127.0.0.1:1/?key=`+planted+`-gate", secretRef: {name: sealed-gate}}
`, policy)))
		Eventually(func() []string { return said("sealed") }).Should(ContainElement(ContainSubstring("cannot reach 127.0.0.1:1")))

		By("a variable where a number belongs")
		bad := s.sealed("v3", policy)
		bad["addons/template.yaml"] = strings.Replace(bad["addons/template.yaml"], "replicas: 1", `replicas: "{{SEALED}}"`, 1)
		sha := s.submit("v3", bad)
		Eventually(s.sourceStatusOf).WithArguments(sha).ShouldNot(Equal(": "))
		s.deliver("v4", s.sealed("v4", policy))

		By("a repository that cannot be read, with a password, and a forge that cannot be used")
		Expect(world.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: "sealed-git"},
			StringData: map[string]string{"username": "author", "password": planted + "-password"},
		})).To(Succeed())
		pull := base64.StdEncoding.EncodeToString([]byte("author:" + planted + "-pull"))
		Expect(world.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: "sealed-registry"}, Type: corev1.SecretTypeDockerConfigJson,
			StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"127.0.0.1:1":{"auth":"` + pull + `"}}}`},
		})).To(Succeed())
		Expect(world.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: "sealed-proxy"},
			StringData: map[string]string{"address": "http://127.0.0.1:1", "username": "author", "password": planted + "-proxy"},
		})).To(Succeed())
		source := s.source()
		for name, spec := range map[string]v1alpha1.AddOnSourceSpec{
			"sealed-registry": {OCI: &v1alpha1.OCISpec{URL: "oci://127.0.0.1:1/sealed", SecretRef: &fluxmeta.LocalObjectReference{Name: "sealed-registry"}}},
			"sealed-proxy":    {URL: s.repo.URL(), ProxySecretRef: &fluxmeta.LocalObjectReference{Name: "sealed-proxy"}},
			"sealed-query":    {URL: world.Git.URL() + "/sealed.git?key=" + planted + "-query"},
			"sealed-secret":   {URL: "https://" + strings.TrimPrefix(world.Git.URL(), "http://") + "/sealed.git", SecretRef: &fluxmeta.LocalObjectReference{Name: "sealed-git"}},
			"sealed-address":  {URL: s.repo.URL(), CommitStatus: &v1alpha1.CommitStatusSpec{Provider: "gitea", Address: world.Forge.Address(demo.ForgeRepository) + "?key=" + planted + "-address", SecretRef: &fluxmeta.LocalObjectReference{Name: "fleet-forge"}}},
		} {
			spec.Interval, spec.Path = source.Spec.Interval, "nowhere"
			if spec.OCI == nil {
				spec.Reference = source.Spec.Reference
			}
			broken := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: name}, Spec: spec}
			Expect(world.Client.Create(ctx, broken)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(world.Client.Delete(ctx, broken)).To(Succeed())
			})
			Eventually(func() string {
				Expect(world.Client.Get(ctx, client.ObjectKeyFromObject(broken), broken)).To(Succeed())
				c := meta.FindStatusCondition(broken.Status.Conditions, "Ready")
				if c == nil {
					return ""
				}
				return string(c.Status) + " " + c.Message
			}).Should(HavePrefix("False "), name)
		}
		Expect(shown(ctx)).To(BeEmpty())
	})
})
