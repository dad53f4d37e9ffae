package addonsource

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// fingerprintVersion changes when this program compiles the same commit differently, so that
// the commit is applied anew.
const fingerprintVersion = "1"

// fingerprint identifies everything besides the commit that decides what is applied and pruned.
// A commit attempted under another fingerprint counts as new. Credentials, intervals and commit
// statuses are not part of it.
//
// The public keys of spec.verify are part of it: if a key is added or revoked, the commit is
// judged anew.
func fingerprint(spec v1alpha1.AddOnSourceSpec, config Config, publicKeys map[string][]byte) (string, error) {
	encoded, err := json.Marshal(struct {
		Version       string
		Mode          Mode
		URL, Path     string
		Reference     *v1alpha1.GitReference
		Ignore        *string
		AddOns        []string
		Prune         bool
		DefaultCanary bool `json:",omitempty"`
		// Absent in the fingerprints of sources without them, which must not change.
		Verify         *v1alpha1.VerifySpec `json:",omitempty"`
		PublicKeys     map[string][]byte    `json:",omitempty"`
		AllowForcePush bool                 `json:",omitempty"`
	}{
		fingerprintVersion, config.AddonManager, spec.URL, spec.Path, spec.Reference, spec.Ignore, spec.AddOns, spec.Prune,
		config.DefaultCanary, spec.Verify, publicKeys, spec.AllowForcePush,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8]), nil
}
