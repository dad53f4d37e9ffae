package v1alpha1

import (
	"errors"
	"regexp"
)

// ChartReference is a Helm chart in an OCI registry, host/repository:tag@sha256:<hex>. The operator reads the
// manifest with the digest. The tag is optional, and only for people.
type ChartReference struct {
	// Host of the registry, with a port if it is not 443.
	Host string
	// Repository in the registry, such as charts/hello.
	Repository string
	// Tag, such as 1.2.3, or "".
	Tag string
	// Digest of the manifest, sha256:<64 hex>.
	Digest string
}

// Parts of references, as the OCI distribution specification and Docker define them.
const (
	hostPattern       = `(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?`
	repositoryPattern = `[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*`
	tagPattern        = `[A-Za-z0-9_][A-Za-z0-9._-]{0,127}`
	digestPattern     = `sha256:[0-9a-f]{64}`
)

var (
	chartPattern    = regexp.MustCompile(`^(` + hostPattern + `)/(` + repositoryPattern + `)(?::(` + tagPattern + `))?@(` + digestPattern + `)$`)
	artifactPattern = regexp.MustCompile(`^(` + hostPattern + `)/(` + repositoryPattern + `)$`)
)

// maxReference bounds the text of a reference.
const maxReference = 1024

// ParseChartReference reads host/repository@sha256:<hex>, or host/repository:tag@sha256:<hex>.
func ParseChartReference(text string) (ChartReference, error) {
	parts := chartPattern.FindStringSubmatch(text)
	if parts == nil || len(text) > maxReference {
		return ChartReference{}, errors.New("is not a chart by digest, host/repository@sha256:<64 hexadecimal digits>")
	}
	return ChartReference{Host: parts[1], Repository: parts[2], Tag: parts[3], Digest: parts[4]}, nil
}

// ParseOCIRepository reads host/repository.
func ParseOCIRepository(text string) (host, repository string, err error) {
	parts := artifactPattern.FindStringSubmatch(text)
	if parts == nil || len(text) > maxReference {
		return "", "", errors.New("is not a repository of a registry, host/repository")
	}
	return parts[1], parts[2], nil
}

// String returns the reference as ParseChartReference reads it.
func (r ChartReference) String() string {
	tag := ""
	if r.Tag != "" {
		tag = ":" + r.Tag
	}
	return r.Host + "/" + r.Repository + tag + "@" + r.Digest
}
