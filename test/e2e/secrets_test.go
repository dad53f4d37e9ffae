package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
)

// planted begins every value that the specs put into a URL or a variable to be found again. What a user wrote there shows
// in what the user wrote, and in works; it shows in no text of the operator.
const planted = "planted-7f3a"

// refusing starts a receiver of notifications that refuses all, so that the operator has something to say about its URL,
// and returns the operator's flags for it.
func refusing(dir string) []string {
	GinkgoHelper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	DeferCleanup(server.Close)
	key := filepath.Join(dir, "notify.key")
	Expect(os.WriteFile(key, []byte(planted+"-notify-key"), 0o600)).To(Succeed())
	return []string{"--notify-url=" + server.URL + "/?key=" + planted + "-notify", "--notify-key-file=" + key}
}

// shown names the Secrets of the hub whose values appear outside of Secrets, and the planted values in texts of the
// operator.
func shown(ctx context.Context) []string {
	GinkgoHelper()
	texts, stored := texts(ctx), objects(ctx)
	var found []string
	for place, text := range texts {
		for _, at := range appearances(text, planted) {
			found = append(found, fmt.Sprintf("a URL or variable in %s: %s", place, at))
		}
	}
	var secrets corev1.SecretList
	Expect(world.Client.List(ctx, &secrets)).To(Succeed())
	looked := 0
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		for key, value := range secret.Data {
			if !confidential(key) {
				continue
			}
			looked++
			for _, places := range []map[string][]byte{texts, stored} {
				for place, text := range places {
					for _, at := range appearances(text, string(bytes.TrimSpace(value))) {
						found = append(found, fmt.Sprintf("%s of Secret %s/%s in %s: %s", key, secret.Namespace, secret.Name, place, at))
					}
				}
			}
		}
	}
	Expect(looked).NotTo(BeZero(), "the forge's token at least")
	return found
}

// confidential are the keys of Secrets whose values are not public.
func confidential(key string) bool {
	return slices.Contains([]string{"token", "bearerToken", "password", "identity", "key", "githubAppPrivateKey"}, key) || strings.HasSuffix(key, ".key")
}

// appearances returns the surroundings of the first appearance of a value in each form: as it is, in base64, in a URL and
// in JSON.
func appearances(text []byte, value string) []string {
	quoted, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	forms := []string{value, base64.RawStdEncoding.EncodeToString([]byte(value)), url.QueryEscape(value), string(bytes.Trim(quoted, `"`))}
	slices.Sort(forms)
	var found []string
	for _, form := range slices.Compact(forms) {
		if i := bytes.Index(text, []byte(form)); i >= 0 {
			found = append(found, string(text[max(0, i-120):min(len(text), i+len(form)+40)]))
		}
	}
	return found
}

// texts are what the operator says, by place: logs, events, statuses, metrics, and messages to the forge and to others.
func texts(ctx context.Context) map[string][]byte {
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
	for kind, list := range listed(ctx) {
		var statuses []any
		for _, item := range list {
			if kind.Kind == "Event" {
				statuses = append(statuses, item.Object)
			} else if status, ok := item.Object["status"]; ok && kind.Group != "apiextensions.k8s.io" {
				statuses = append(statuses, status)
			}
		}
		places["statuses of "+kind.Kind], err = json.Marshal(statuses)
		Expect(err).NotTo(HaveOccurred())
	}
	return places
}

// objects are all objects of the hub as they are stored, but for Secrets, by kind.
func objects(ctx context.Context) map[string][]byte {
	GinkgoHelper()
	places := map[string][]byte{}
	for kind, list := range listed(ctx) {
		text, err := json.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		places[kind.String()] = text
	}
	return places
}

// listed are all objects of the hub, but for Secrets.
func listed(ctx context.Context) map[schema.GroupVersionKind][]unstructured.Unstructured {
	GinkgoHelper()
	hub, err := discovery.NewDiscoveryClientForConfig(world.Hub.Config())
	Expect(err).NotTo(HaveOccurred())
	lists, err := hub.ServerPreferredResources()
	Expect(err).NotTo(HaveOccurred())
	all := map[schema.GroupVersionKind][]unstructured.Unstructured{}
	for _, resources := range lists {
		for _, resource := range resources.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Kind == "Secret" {
				continue
			}
			group, err := schema.ParseGroupVersion(resources.GroupVersion)
			Expect(err).NotTo(HaveOccurred())
			kind := group.WithKind(resource.Kind)
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			err = world.Client.List(ctx, list)
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			Expect(err).NotTo(HaveOccurred(), "list %s", kind)
			all[kind] = list.Items
		}
	}
	Expect(all).To(HaveKey(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnSourceKind)))
	return all
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
		source := s.source()
		for name, spec := range map[string]v1alpha1.AddOnSourceSpec{
			"sealed-query":   {URL: world.Git.URL() + "/sealed.git?key=" + planted + "-query"},
			"sealed-secret":  {URL: "https://" + strings.TrimPrefix(world.Git.URL(), "http://") + "/sealed.git", SecretRef: &fluxmeta.LocalObjectReference{Name: "sealed-git"}},
			"sealed-address": {URL: s.repo.URL(), CommitStatus: &v1alpha1.CommitStatusSpec{Provider: "gitea", Address: world.Forge.Address(demo.ForgeRepository) + "?key=" + planted + "-address", SecretRef: &fluxmeta.LocalObjectReference{Name: "fleet-forge"}}},
		} {
			spec.Interval, spec.Reference, spec.Path = source.Spec.Interval, source.Spec.Reference, "nowhere"
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
