package hubbin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrNoAssets is returned outside a clone where nothing can be built, when no
// directory is named and nothing could be downloaded either.
var ErrNoAssets = errors.New("outside a clone of " + modulePath +
	" they cannot be built, and downloading them takes go and a network; set " + assetsVariable +
	` to a directory that holds both, or run "make demo" in a clone`)

// newOutside is the finder of a program that runs outside a clone, as an installed
// addonflow does. It keeps what it downloads in the user's cache directory.
func newOutside(out io.Writer) (finder, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return finder{}, fmt.Errorf("%w (%w)", ErrNoAssets, err)
	}
	return finder{
		root: filepath.Join(cache, "addonflow"), out: out,
		getenv: os.Getenv, reached: indexAnswers, download: runSetupEnvtest,
	}, nil
}

// outside is find without the sources of a build: the variable, what was downloaded
// before, a download.
func (f finder) outside(ctx context.Context) (Assets, error) {
	if found, named, err := f.named(); named {
		return found, err
	}
	if dir := f.downloadedDir(); dir != "" {
		return assets(dir, "cache"), nil
	}
	found, ok := f.downloaded(ctx)
	switch {
	case ok:
		return found, nil
	case ctx.Err() != nil:
		return Assets{}, ctx.Err()
	}
	return Assets{}, ErrNoAssets
}
