package main

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// verifySignature is how to check the signature of the checksums.
const verifySignature = `The public key is the same for every release: compare ` + "`addonflow.pub`" + ` with that of a release which you trust. The
command needs OpenSSL 3; macOS has another program of that name.

    openssl pkeyutl -verify -pubin -inkey addonflow.pub -rawin -in checksums.txt -sigfile checksums.txt.sig

`

// writeNotes writes the part of CHANGELOG.md about the version, and how to check the downloaded files. A version
// without a part of its own gets the text under Unreleased.
func (t tree) writeNotes(out string, key ed25519.PrivateKey) error {
	log, err := os.ReadFile(filepath.Join(t.dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	part := section(string(log), strings.TrimPrefix(t.version, "v"))
	if part == "" {
		part = section(string(log), "Unreleased")
	}
	if part == "" {
		return fmt.Errorf("CHANGELOG.md says nothing about %s, and has nothing under Unreleased", t.version)
	}
	signature := ""
	if key != nil {
		signature = verifySignature
	}
	text := fmt.Sprintf(`# AddonFlow %s

%s

## Check what you downloaded

%s    sha256sum --check --ignore-missing checksums.txt        # Linux
    shasum -a 256 --check --ignore-missing checksums.txt    # macOS
    Get-FileHash FILE                                       # Windows: compare with the line in checksums.txt
`, t.version, part, signature)
	return os.WriteFile(filepath.Join(out, "RELEASE_NOTES.md"), []byte(text), 0o644)
}

// section is the text below the heading "## [name]" or "## name"; "": there is none.
func section(text, name string) string {
	found := false
	var lines []string
	for line := range strings.Lines(text) {
		if title, is := strings.CutPrefix(line, "## "); is {
			title, _, _ = strings.Cut(strings.TrimSpace(strings.TrimLeft(title, "[")), "]")
			title, _, _ = strings.Cut(title, " ")
			found = title == name
			continue
		}
		if found {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}
