package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/oci"
)

// ociScheme begins the address of a chart in a registry.
const ociScheme = "oci://"

type vendorOptions struct {
	*cli
	dir, version, caFile string
	digest, plainHTTP    bool
}

func newVendorCommand(c *cli) *cobra.Command {
	o := &vendorOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "vendor ADD-ON oci://REGISTRY/CHART",
		Short: "Write a chart of a registry, or its digest, into a directory",
		Long: `Write a chart of a registry, or its digest, into a directory.

The AddOnPackage of the add-on is edited, or written to addonpackage.yaml if the directory
has none. Without --digest, the files of the chart replace the folder that helm.path names
(chart, if there is none): lint and render check them, and the operator needs no registry.
With --digest, helm.oci becomes the digest: the operator fetches the chart, if its
AddOnSource lists the registry in spec.registries.

Credentials are those of docker login. The reference with the digest is printed.`,
		Example: `  # The chart itself, to be committed
  addonflow vendor log-shipper oci://registry.example.com/charts/log-shipper --version 1.4.2 --dir addons/log-shipper
  # Its digest alone; the newest patch of 1.4
  addonflow vendor log-shipper oci://registry.example.com/charts/log-shipper --version ~1.4.0 --digest`,
		Args: takes,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	cmd.Flags().StringVar(&o.version, "version", "", "Version of the chart, or a range such as ~1.4.0, of which the highest is taken.")
	cmd.Flags().StringVar(&o.dir, "dir", ".", "Directory with the files of the add-on.")
	cmd.Flags().BoolVar(&o.digest, "digest", false, "Write the digest instead of the chart.")
	cmd.Flags().StringVar(&o.caFile, "ca-file", "", "File with the certificate authority of the registry.")
	cmd.Flags().BoolVar(&o.plainHTTP, "plain-http", false, "Read the registry over http.")
	_ = cmd.MarkFlagRequired("version")
	return offline(cmd)
}

func (o *vendorOptions) run(ctx context.Context, addOn, address string) error {
	name, found := strings.CutPrefix(address, ociScheme)
	if !found {
		return &exitError{code: exitUsage, err: fmt.Errorf("cannot use %q: want %sREGISTRY/CHART", address, ociScheme)}
	}
	host, repository, err := v1alpha1.ParseOCIRepository(name)
	if err != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("cannot use %q: %w; the version is a flag", address, err)}
	}
	pkg, err := findPackage(o.dir, addOn)
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	registry, err := o.open(ctx, host)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	defer registry.Close()
	reference, files, err := o.fetch(ctx, registry, v1alpha1.ChartReference{Host: host, Repository: repository})
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	if o.digest {
		err = pkg.write("oci", reference.String())
	} else {
		err = o.writeChart(pkg, files)
	}
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	o.hint("✔ %s; next: %s lint %s", pkg.file, o.name, o.dir)
	_, err = fmt.Fprintln(o.Out, reference)
	return err
}

// open opens the registry with the credentials from docker login.
func (o *vendorOptions) open(ctx context.Context, host string) (*oci.Registry, error) {
	options := oci.Options{
		Host: host, Insecure: o.plainHTTP, Advice: "run docker login " + host,
		Access: oci.Access{AllowLoopback: true, AllowHTTP: o.plainHTTP, AllowTokenHosts: true},
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of Docker: %w", err)
	}
	found, err := store.Get(ctx, credentials.ServerAddressFromRegistry(host))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the credentials of %s: %w", host, err)
	case found.RefreshToken != "":
		options.Credentials = oci.Token(host, found.RefreshToken)
	case found.Username != "":
		options.Credentials = oci.Account(host, found.Username, found.Password)
	}
	if o.caFile != "" {
		if options.Credentials.CAFile, err = os.ReadFile(o.caFile); err != nil {
			return nil, fmt.Errorf("cannot read --ca-file: %w", err)
		}
	}
	scheme := "https"
	if o.plainHTTP {
		scheme = "http"
	}
	if options.Proxy, err = http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: host}}); err != nil {
		return nil, err
	}
	return oci.Open(options)
}

// fetch reads the chart of the version.
func (o *vendorOptions) fetch(ctx context.Context, registry *oci.Registry, chart v1alpha1.ChartReference) (v1alpha1.ChartReference, map[string][]byte, error) {
	// A version is its own tag. Any other text is a range.
	revision, err := registry.Resolve(ctx, chart.Repository, oci.Reference{Tag: strings.ReplaceAll(o.version, "+", "_")})
	if errors.Is(err, oci.ErrNotFound) || errors.Is(err, oci.ErrInvalidReference) {
		revision, err = registry.Resolve(ctx, chart.Repository, oci.Reference{SemVer: o.version})
	}
	if err != nil {
		return chart, nil, err
	}
	chart.Tag, chart.Digest = revision.Tag, revision.Digest
	files, err := registry.Chart(ctx, chart.Repository, chart.Digest)
	return chart, files, err
}

// writeChart replaces the folder of the chart, and names the chart in the package.
func (o *vendorOptions) writeChart(pkg *packageFile, files map[string][]byte) error {
	name := pkg.path
	if name == "" {
		name = "chart"
	}
	if !filepath.IsLocal(name) || filepath.Clean(name) == "." {
		return fmt.Errorf("cannot write the chart to %s: it is not below the directory of %s", name, pkg.file)
	}
	folder := filepath.Join(filepath.Dir(pkg.file), filepath.FromSlash(name))
	if err := checkFolder(folder, nameOfChart(files["Chart.yaml"])); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil { //nolint:gosec // as git creates directories
		return err
	}
	// The folder is always complete. Files that the version no longer has are removed.
	fresh, err := os.MkdirTemp(filepath.Dir(folder), "."+filepath.Base(folder)+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(fresh, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // as git creates directories
			return err
		}
		if err := os.WriteFile(at, files[file], 0o644); err != nil { //nolint:gosec // as git creates files
			return err
		}
	}
	if err := os.Chmod(fresh, 0o755); err != nil { //nolint:gosec // as git creates directories
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.Rename(fresh, folder); err != nil {
		return err
	}
	o.hint("✔ %s: %s", folder, brief.Count(len(files), "file"))
	return pkg.write("path", name)
}

// checkFolder refuses to replace anything but an earlier version of the chart.
func checkFolder(folder, chart string) error {
	stat, err := os.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, "Chart.yaml")) //nolint:gosec // the user names the directory
	if !stat.IsDir() || err != nil || nameOfChart(text) != chart {
		return fmt.Errorf("cannot replace %s: it is not a version of the chart %s; remove it, or name another folder in helm.path", folder, chart)
	}
	return nil
}

func nameOfChart(text []byte) string {
	var chart struct {
		Name string `json:"name"`
	}
	_ = yaml.Unmarshal(text, &chart) // without a name it is not a chart
	return chart.Name
}
