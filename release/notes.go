package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeNotes writes the part of CHANGELOG.md about the version, and how to check what was
// downloaded. A version without a part of its own has what is under Unreleased.
func (t tree) writeNotes(out string) error {
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
	text := fmt.Sprintf(`# AddonFlow %s

%s

## Check what you downloaded

    openssl pkeyutl -verify -pubin -inkey addonflow.pub -rawin -in checksums.txt -sigfile checksums.txt.sig
    sha256sum --check --ignore-missing checksums.txt
`, t.version, part)
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
