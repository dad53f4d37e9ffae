package addonsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/oci"
)

// repository is the place where the add-ons of a source are declared: a Git repository, or an artifact.
type repository interface {
	// Host returns the name of the server, with its port.
	Host() string
	// Resolve returns the present revision of the reference.
	Resolve(ctx context.Context) (gitsource.Revision, error)
	// Fetch reads a revision. The caller closes the tree.
	Fetch(ctx context.Context, revision gitsource.Revision) (*gitsource.Tree, error)
}

// Names in URLs and revisions of artifacts.
const (
	ociScheme    = "oci://"
	sha256Prefix = "sha256:"
)

// artifacts are the artifacts of a repository in a registry.
type artifacts struct {
	registry         *oci.Registry
	host, repository string
	reference        oci.Reference
	// known is the revision that was read last with the present spec and keys, so that its manifest is not read again
	// each time.
	known gitsource.Revision
}

// openArtifact opens what spec.oci names. It does not connect.
func (p *pass) openArtifact(ctx context.Context) (repository, error) {
	spec := p.source.Spec.OCI
	host, name, err := v1alpha1.ParseOCIRepository(strings.TrimPrefix(spec.URL, ociScheme))
	if err != nil {
		return nil, stall(v1alpha1.InvalidURLReason, "spec.oci.url: %q %s", spec.URL, err)
	}
	opened, err := p.registry(ctx, v1alpha1.RegistrySpec{Host: host, SecretRef: spec.SecretRef, Insecure: spec.Insecure}, p.cosign[spec.URL])
	if err != nil {
		return nil, err
	}
	a := artifacts{registry: opened, host: host, repository: name}
	status := p.source.Status
	if known, err := gitsource.ParseRevision(status.LastAttemptedRevision); err == nil && strings.TrimSuffix(status.LastAttemptedSpec, v1alpha1.RefusedSuffix) == p.spec {
		a.known = known
	}
	if r := spec.Reference; r != nil {
		a.reference = oci.Reference{Digest: r.Digest, SemVer: r.SemVer, Tag: r.Tag}
	}
	return a, nil
}

func (a artifacts) Host() string { return a.host }

func (a artifacts) Resolve(ctx context.Context) (gitsource.Revision, error) {
	defer a.registry.Close()
	found, err := a.registry.Resolve(ctx, a.repository, a.reference)
	if errors.Is(err, oci.ErrNotFound) {
		err = fmt.Errorf("%w: %w", gitsource.ErrRefNotFound, err)
	}
	if err != nil {
		return gitsource.Revision{}, err
	}
	revision := gitsource.Revision{Ref: found.Tag, Digest: strings.TrimPrefix(found.Digest, sha256Prefix)}
	if a.known.Digest == revision.Digest && a.known.Commit != a.known.Digest {
		revision.Commit = a.known.Commit
		return revision, nil
	}
	commit, err := a.registry.Commit(ctx, a.repository, found.Digest)
	revision.Commit = cmp.Or(commit, revision.Digest)
	return revision, err
}

func (a artifacts) Fetch(ctx context.Context, revision gitsource.Revision) (*gitsource.Tree, error) {
	defer a.registry.Close()
	artifact, err := a.registry.Artifact(ctx, a.repository, sha256Prefix+revision.Digest)
	if err != nil {
		return nil, err
	}
	files := make([]gitsource.File, 0, len(artifact.Files))
	for _, f := range artifact.Files {
		files = append(files, gitsource.File(f))
	}
	return gitsource.TreeFromFiles(revision, files, artifact.Close), nil
}

// cosignKeys returns the signatures that registries and artifacts need, and the keys of their Secrets. Those of a
// registry are stored by its host, those of spec.oci by its URL.
func (p *pass) cosignKeys(ctx context.Context) (map[string]oci.Verification, map[string]map[string][]byte, error) {
	verified := map[string]*v1alpha1.OCIVerifySpec{}
	for _, r := range p.source.Spec.Registries {
		verified[r.Host] = r.Verify
	}
	if o := p.source.Spec.OCI; o != nil {
		verified[o.URL] = o.Verify
	}
	cosign, all := map[string]oci.Verification{}, map[string]map[string][]byte{}
	for what, spec := range verified {
		if spec == nil {
			continue
		}
		field := "verify.secretRef of " + what
		keys, err := p.secret(ctx, field, spec.SecretRef.Name)
		if err != nil {
			return nil, nil, err
		}
		if cosign[what], err = oci.ParseVerification(keys); err != nil {
			return nil, nil, p.unusable(field, spec.SecretRef.Name, err)
		}
		all[what] = keys
	}
	return cosign, all, nil
}
