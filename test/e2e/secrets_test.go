package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// secretsShown names the Secrets of the hub whose tokens, passwords or keys appear in texts for
// people: in logs, events, the objects AddonFlow writes, and at the forge.
func secretsShown(ctx context.Context) []string {
	GinkgoHelper()
	var secrets corev1.SecretList
	Expect(world.Client.List(ctx, &secrets)).To(Succeed())
	places := readByPeople(ctx)
	var shown []string
	looked := 0
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		for key, value := range secret.Data {
			if !slices.Contains([]string{"token", "bearerToken", "password"}, key) && !strings.HasSuffix(key, ".key") {
				continue
			}
			looked++
			for place, text := range places {
				if bytes.Contains(text, bytes.TrimSpace(value)) {
					shown = append(shown, fmt.Sprintf("%s of Secret %s/%s in %s", key, secret.Namespace, secret.Name, place))
				}
			}
		}
	}
	Expect(looked).NotTo(BeZero(), "the forge's token at least")
	return shown
}

// readByPeople are texts by their place.
func readByPeople(ctx context.Context) map[string][]byte {
	GinkgoHelper()
	places := map[string][]byte{}
	logs, err := filepath.Glob(filepath.Join(world.Dir, "*.log"))
	Expect(err).NotTo(HaveOccurred())
	for _, name := range logs {
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		places[filepath.Base(name)] = text
	}
	Expect(places).To(HaveKey("operator.log"))
	for _, list := range []client.ObjectList{
		&corev1.EventList{}, &v1alpha1.AddOnSourceList{}, &v1alpha1.AddOnRolloutList{}, &v1alpha1.AddOnRevisionList{},
		&addonv1alpha1.ManagedClusterAddOnList{}, &workv1.ManifestWorkList{},
	} {
		Expect(world.Client.List(ctx, list)).To(Succeed())
		text, err := json.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		places[fmt.Sprintf("%T", list)] = text
	}
	told, err := json.Marshal(world.Forge.Log())
	Expect(err).NotTo(HaveOccurred())
	places["the forge's log"] = told
	return places
}
