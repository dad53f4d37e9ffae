package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	// commandLines are the lines of a document's code that begin with the program, and code within
	// a line that does.
	commandLines = regexp.MustCompile("(?m)^(?: {4,}(?:\\$ )?)?(?:kubectl )?addonflow ([a-z].*)$|`(?:kubectl )?addonflow ([a-z][^`]*)`")
	// shellEnds begin what is not an argument.
	shellEnds = regexp.MustCompile(`\s+(?:[|&;<>#]|\d>).*$|\s*[);].*$`)
)

// TestDocuments_NameCommandsAndFlagsThatExist: what a reader types is known to the program.
func TestDocuments_NameCommandsAndFlagsThatExist(t *testing.T) {
	paths := []string{"../../README.md"}
	err := filepath.WalkDir("../../docs", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			paths = append(paths, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, name := range paths {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range commandLines.FindAllStringSubmatch(string(text), -1) {
			tried++
			if err := known(match[1] + match[2]); err != nil {
				t.Errorf("%s: addonflow %s: %v", name, match[1]+match[2], err)
			}
		}
	}
	if tried < 100 {
		t.Errorf("found %d commands only", tried)
	}
}

// known looks a command line up. A table writes [...] around what is optional, and \| between
// alternatives.
func known(line string) error {
	line = strings.NewReplacer("\\|", "|", "[", "", "]", "", `"`, "", "...", "").Replace(shellEnds.ReplaceAllString(line, ""))
	root := newRootCommand()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	verb, rest, _ := strings.Cut(line, " ")
	for verb := range strings.SplitSeq(verb, "|") {
		words := append([]string{verb}, strings.Fields(rest)...)
		for i := range words {
			words[i], _, _ = strings.Cut(words[i], "|")
		}
		cmd, args, err := root.Find(words)
		if err != nil {
			return err
		}
		cmd.FParseErrWhitelist = cobra.FParseErrWhitelist{}
		if err := cmd.ParseFlags(args); err != nil && !errors.Is(err, pflag.ErrHelp) && !strings.Contains(err.Error(), "invalid argument") && !strings.Contains(err.Error(), "needs an argument") {
			return err
		}
	}
	return nil
}
