package hubbin

import (
	"context"
	"io"
)

// registryVersion is the release of distribution, the registry that the nested module builds.
const registryVersion = "3.1.1"

// FindRegistry returns the path of one binary with an OCI registry and Flux's client of
// registries (see test/hubbin/registry), as FindOCM does.
func FindRegistry(ctx context.Context, out io.Writer) (string, error) {
	return findNested(ctx, out, "registry", registryVersion, "about two minutes")
}
