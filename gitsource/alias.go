package gitsource

import (
	"encoding/hex"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// aliasPrefix starts the aliases of names that kustomize's in-memory file system refuses.
const aliasPrefix = "addonflow-alias."

var (
	plainName    = regexp.MustCompile(`^[a-zA-Z0-9_.:-]+$`)
	aliasPattern = regexp.MustCompile(regexp.QuoteMeta(aliasPrefix) + `([0-9a-f]+)`)
)

// aliasedFiles is an in-memory file system that accepts every file name. Kustomize's own
// accepts only ASCII letters, digits and the characters '-', '_', '.' and ':', so it rejects "a b", "ü" and "c++". Such
// a name is stored under an alias. Kustomize itself sees the real names, except in the text of errors;
// use unaliased for those.
//
// Only the methods that a build calls are translated; a build neither lists nor searches.
type aliasedFiles struct{ filesys.FileSystem }

func newAliasedFiles() aliasedFiles { return aliasedFiles{filesys.MakeFsInMemory()} }

func (a aliasedFiles) WriteFile(name string, content []byte) error {
	return a.FileSystem.WriteFile(aliased(name), content)
}

func (a aliasedFiles) ReadFile(name string) ([]byte, error) {
	return a.FileSystem.ReadFile(aliased(name))
}

func (a aliasedFiles) IsDir(name string) bool { return a.FileSystem.IsDir(aliased(name)) }

func (a aliasedFiles) Exists(name string) bool { return a.FileSystem.Exists(aliased(name)) }

func (a aliasedFiles) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	dir, file, err := a.FileSystem.CleanedAbs(aliased(name))
	return filesys.ConfirmedDir(unaliased(dir.String())), unaliased(file), err
}

// aliased returns a path with an alias for each name that needs one. A name that looks like an
// alias gets an alias too, so that no two names share one.
func aliased(name string) string {
	segments := strings.Split(filepath.Clean(name), "/")
	for i, s := range segments {
		if s == "" || s == "." || s == ".." {
			continue
		}
		if !plainName.MatchString(s) || strings.Contains(s, "..") || strings.Contains(s, aliasPrefix) {
			segments[i] = aliasPrefix + hex.EncodeToString([]byte(s))
		}
	}
	return strings.Join(segments, "/")
}

// unaliased returns a path or text with the real names in place of aliases.
func unaliased(text string) string {
	return aliasPattern.ReplaceAllStringFunc(text, func(alias string) string {
		name, err := hex.DecodeString(strings.TrimPrefix(alias, aliasPrefix))
		if err != nil {
			return alias // not an alias of this package
		}
		return string(name)
	})
}
