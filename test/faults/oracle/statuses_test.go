package oracle

import (
	"strings"
	"testing"

	"github.com/addonflow/addonflow/test/forge"
)

func TestStatuses(t *testing.T) {
	const sha = "0123456789"
	entry := func(state, description string) forge.Entry {
		return forge.Entry{SHA: sha, Context: "addonflow/fleet", State: state, Description: description}
	}
	for name, c := range map[string]struct {
		log  []forge.Entry
		lost int
		want string
	}{
		"a commit that ends":                    {log: []forge.Entry{entry("pending", "0/1"), entry("success", "1/1")}},
		"a commit that stays pending":           {log: []forge.Entry{entry("pending", "0/1")}, want: "stays pending"},
		"a commit without a status":             {want: "has no status"},
		"a repetition":                          {log: []forge.Entry{entry("success", "1/1"), entry("success", "1/1")}, want: "repeats the one before"},
		"a repetition after an answer was lost": {log: []forge.Entry{entry("success", "1/1"), entry("success", "1/1")}, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, broken := Statuses(c.log, []string{sha}, c.lost)
			all := strings.Join(broken, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("violations are %q, want %q", all, c.want)
			}
		})
	}
}
