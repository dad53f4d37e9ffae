package oci

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"
)

// FuzzTags: the tag of the highest version in the range is followed, whatever the order of the tags is. An error is one
// line of bounded length.
func FuzzTags(f *testing.F) {
	for _, constraint := range []string{"1.x", ">=1.0.0-0", "~1.2 || 3", "*", "", "=1.0.0", "not a range", "\x1b[2J", ">1 <"} {
		f.Add(constraint, "1.0.0\n1.2.0-rc.1\n2.0.0\nlatest")
		f.Add(constraint, "1.0.0_build.1\nv1.0.0\n1.0.0_build.2\n1\n01.0\n3.0.0-\n\x00")
	}
	f.Fuzz(func(t *testing.T, constraint, list string) {
		if !utf8.ValidString(list) {
			t.Skip()
		}
		tags := strings.Split(list, "\n")
		highest := func() (string, error) {
			text, err := json.Marshal(map[string]any{"tags": tags})
			if err != nil {
				t.Fatal(err)
			}
			s, err := shelf{manifests: map[string]string{"list": string(text)}}.open(t, Verification{}).connect(t.Context(), "charts/hello")
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			return s.highest(constraint)
		}
		found, err := highest()
		slices.Reverse(tags)
		if again, _ := highest(); again != found || err == nil && !slices.Contains(tags, found) {
			t.Errorf("%q of %q, but %q in the other order: %v", found, list, again, err)
		}
		wanted, invalid := semver.NewConstraint(constraint)
		if err != nil && (len(err.Error()) > 5000+len(constraint) || strings.ContainsFunc(err.Error(), unicode.IsControl) || errors.Is(err, ErrInvalidReference) != (invalid != nil)) {
			t.Errorf("the error does not fit: %q", err)
		}
		for _, tag := range tags {
			v, err := semver.NewVersion(strings.ReplaceAll(tag, "_", "+"))
			if invalid != nil || err != nil || !wanted.Check(v) {
				continue
			}
			if best, err := semver.NewVersion(strings.ReplaceAll(found, "_", "+")); err != nil || v.GreaterThan(best) {
				t.Errorf("%q of %q is followed, but %q is higher: %v", found, list, tag, err)
			}
		}
	})
}
