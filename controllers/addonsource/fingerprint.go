package addonsource

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/tenancy"
)

// fingerprintVersion must change if this program compiles the same commit differently, so that the commit is applied
// again.
const fingerprintVersion = "1"

// fingerprint identifies all inputs besides the commit that decide which objects are applied and pruned. A commit
// that was attempted under another fingerprint counts as new. Credentials, intervals and commit statuses are not part
// of it.
//
// The public keys of spec.verify and of cosign are part of it: if a key is added or revoked, the commit is verified
// again.
func fingerprint(spec v1alpha1.AddOnSourceSpec, config Config, tenant *tenancy.Tenant, publicKeys map[string][]byte, cosignKeys map[string]map[string][]byte) (string, error) {
	encoded, err := json.Marshal(struct {
		Version       string
		Mode          Mode
		URL, Path     string
		Reference     *v1alpha1.GitReference
		Ignore        *string
		AddOns        []string
		Prune         bool
		DefaultCanary bool `json:",omitempty"`
		// Absent if the source has none, because the fingerprints of such sources must not change.
		Verify         *v1alpha1.VerifySpec `json:",omitempty"`
		PublicKeys     map[string][]byte    `json:",omitempty"`
		AllowForcePush bool                 `json:",omitempty"`
		Registries     []string             `json:",omitempty"`

		OCI        *v1alpha1.OCIReference       `json:",omitempty"`
		CosignKeys map[string]map[string][]byte `json:",omitempty"`
		Account    string                       `json:",omitempty"`
		Tenant     *tenancy.Tenant              `json:",omitempty"`
	}{
		fingerprintVersion, config.AddonManager, spec.Address(), spec.Path, spec.Reference, spec.Ignore, spec.AddOns, spec.Prune,
		config.DefaultCanary, spec.Verify, publicKeys, spec.AllowForcePush, hostsOf(spec.Registries), ociReference(spec), cosignKeys, spec.ServiceAccountName, tenant,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8]), nil
}

// ociReference returns the artifact to follow; nil: the default, or no artifact.
func ociReference(spec v1alpha1.AddOnSourceSpec) *v1alpha1.OCIReference {
	if spec.OCI == nil {
		return nil
	}
	return spec.OCI.Reference
}

func hostsOf(registries []v1alpha1.RegistrySpec) []string {
	var hosts []string
	for _, r := range registries {
		hosts = append(hosts, r.Host)
	}
	slices.Sort(hosts)
	return hosts
}
