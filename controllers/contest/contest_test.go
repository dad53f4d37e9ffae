package contest

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestWritesOfOneContentInQuickSuccessionFillTheCount(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		contents string
		apart    time.Duration
		full     bool
	}{
		"too few":                  {strings.Repeat("a", Writes-1), time.Second, false},
		"enough":                   {strings.Repeat("a", Writes), Within, true},
		"each after a quiet time":  {strings.Repeat("a", 2*Writes), Within + time.Second, false},
		"other content in between": {"aab" + strings.Repeat("a", Writes-1), time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			var count Count
			for i, content := range c.contents {
				count = count.Written(string(content), start.Add(time.Duration(i)*c.apart))
			}
			if got := count.Full("a"); got != c.full {
				t.Errorf("full: got %t, want %t", got, c.full)
			}
			if count.Full("other") {
				t.Error("content that was never written cannot be undone")
			}
		})
	}
}

func TestLastWriterIsNeitherAddonFlowNorAnAgent(t *testing.T) {
	at := func(s int) *metav1.Time { return &metav1.Time{Time: time.Unix(int64(s), 0)} }
	entries := []metav1.ManagedFieldsEntry{
		{Manager: "addon-manager", Time: at(1)},
		{Manager: "other", Time: at(3)},
		{Manager: "before", Time: at(2)},
		{Manager: v1alpha1.FieldManager, Time: at(4)},
		{Manager: "work-agent", Subresource: "status", Time: at(5)},
	}
	if got := LastWriter(entries); got != "other" {
		t.Errorf("got %q", got)
	}
	if got := LastWriter(entries[3:]); got != "" {
		t.Errorf("without another writer: got %q", got)
	}
}
