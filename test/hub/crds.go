package hub

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"
)

// crdFiles are copies of the API module's, which ships them as plain files
// that no Go program can embed; a test compares them.
//
//go:embed crds/*.crd.yaml crds/v1beta1/*.crd.yaml
var crdFiles embed.FS

// Release is the release of OCM whose definitions a hub has.
type Release int

const (
	// OCM12: of the add-on kinds v1alpha1 alone, without webhooks.
	OCM12 Release = iota
	// OCM13: v1beta1 as well, through a conversion webhook; v1alpha1 is stored.
	OCM13
)

// OCMCRDs returns the definitions of a release, freshly decoded: the caller may change
// them. Those of OCM13 need a conversion webhook, which Start runs.
func OCMCRDs(release Release) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(crdFiles, "crds/*.crd.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot list OCM's CRDs: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		if beta := "crds/v1beta1/" + path.Base(name); release == OCM13 && exists(beta) {
			name = beta
		}
		content, err := crdFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read OCM's CRDs: %w", err)
		}
		decoded, err := decodeCRDs(content)
		if err != nil {
			return nil, fmt.Errorf("cannot decode %s: %w", name, err)
		}
		crds = append(crds, decoded...)
	}
	return crds, nil
}

func exists(name string) bool {
	_, err := fs.Stat(crdFiles, name)
	return err == nil
}

// NewScheme returns a scheme with client-go's kinds, CRDs and those of OCM's
// kinds that a Hub serves.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		apiextensionsv1.AddToScheme,
		addonv1alpha1.Install,
		clusterv1.Install,
		clusterv1beta1.Install,
		clusterv1beta2.Install,
		workv1.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// definitions are OCM's and the caller's, copied, because installing them
// writes into them.
func definitions(opts Options) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := OCMCRDs(opts.Release)
	if err != nil {
		return nil, err
	}
	for _, crd := range opts.CRDs {
		crds = append(crds, crd.DeepCopy())
	}
	for i, content := range opts.CRDYAML {
		decoded, err := decodeCRDs(content)
		if err != nil {
			return nil, fmt.Errorf("cannot decode CRDYAML[%d]: %w", i, err)
		}
		crds = append(crds, decoded...)
	}
	return crds, nil
}

// decodeCRDs decodes strictly: a typo in a CRD under test must not be lost.
func decodeCRDs(content []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, crd); err != nil {
			return nil, err
		}
		if crd.Kind != "CustomResourceDefinition" {
			return nil, fmt.Errorf("cannot install kind %q: not a CustomResourceDefinition", crd.Kind)
		}
		crds = append(crds, crd)
	}
}
