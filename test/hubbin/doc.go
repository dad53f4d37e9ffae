// Package hubbin finds or builds the embedded hub's two binaries:
// kube-apiserver and etcd. Find looks in this order and says what it spends
// time on:
//
//	$KUBEBUILDER_ASSETS       what the caller names, taken as it is
//	bin/k8s/<version>-<os>-<arch>/   built here before, each with a stamp
//	bin/envtest/k8s/...       downloaded here before
//	setup-envtest             when the release index answers within 5 seconds
//	go build                  from the nested modules kube-apiserver/ and etcd/
//
// The nested modules exist because everything else that could deliver the two
// binaries (a release server, a container registry, a package mirror) may be
// out of reach where a Go module proxy is not. They are modules of their own,
// so that Kubernetes' two hundred requirements never move the product's pins.
//
// FindOCM does the same for OCM's own programs, which only test/ocm needs, from
// the nested module ocm/; FindRegistry for an OCI registry, from registry/; and FindGitea for Gitea,
// which only `make e2e` needs, from gitea/. Gitea's SQLite needs a C compiler; nothing else here does.
//
// The build takes about five minutes on two cores, once: a stamp holds the
// hash of all that goes in, a file lock keeps parallel test packages from
// building twice, and each binary is renamed into place, so that no process
// starts an incomplete one. Unix only, as envtest's control plane is in practice.
//
// Nothing in production code may import this package.
package hubbin
