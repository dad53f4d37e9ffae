// Command release writes the files of a release into a directory: the binaries of every platform,
// the image, the chart, the install manifests, the SBOM, the krew manifest, checksums, their
// signature and the release notes.
//
// It builds a clone of HEAD that has the version as its tag. Files that are not committed are not
// part of a release, and the same commit, version and Go give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// platforms of the binaries; the image has those of Linux.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// image is the repository of the published image.
const image = "ghcr.io/addonflow/addonflow"

// semver is a version as Go and Helm read it. From v2 on, Go wants another module path.
var semver = regexp.MustCompile(`^v[01]\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.StringVar(&o.version, "version", "", "version to release, such as v0.2.0")
	flag.StringVar(&o.repository, "repository", ".", "directory of the Git repository")
	flag.StringVar(&o.out, "out", "dist", "directory that gets the files; it is replaced")
	flag.StringVar(&o.key, "key", "", "file with an Ed25519 private key in PEM (PKCS#8), to sign the checksums; none: they are not signed")
	chosen := flag.String("platforms", platforms, "platforms of the binaries")
	flag.Parse()
	o.platforms = strings.Split(*chosen, ",")
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing else is deferred
	}
}

type options struct {
	version, repository, out, key string
	platforms                     []string
}

func run(ctx context.Context, o options) error {
	if !semver.MatchString(o.version) {
		return fmt.Errorf("%q is not a version; give one such as v0.2.0", o.version)
	}
	key, err := readKey(o.key)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // it is temporary
	tree, err := clone(ctx, o.repository, o.version, filepath.Join(work, "source"))
	if err != nil {
		return err
	}
	built, err := tree.build(ctx, o.platforms, filepath.Join(work, "binaries"))
	if err != nil {
		return err
	}
	out := filepath.Join(work, "dist")
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	for _, write := range []func() error{
		func() error { return tree.writeArchives(built, out) },
		func() error { return tree.writeImage(built, out) },
		func() error { return tree.writeChart(out) },
		func() error { return tree.writeManifests(out) },
		func() error { return tree.writeBill(built, out) },
		func() error { return tree.writeKrew(built, out) },
		func() error { return tree.writeNotes(out, key) },
		func() error { return writeSums(out, key) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	if err := os.CopyFS(o.out, os.DirFS(out)); err != nil {
		return fmt.Errorf("cannot write %s: %w", o.out, err)
	}
	if key == nil {
		fmt.Println("not signed: no key was given (KEY=file)")
	}
	return list(o.out)
}

func list(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		fmt.Println(filepath.Join(dir, e.Name()))
	}
	if len(entries) == 0 {
		return errors.New("nothing was written")
	}
	return nil
}
