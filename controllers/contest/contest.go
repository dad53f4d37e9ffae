package contest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// If another client undoes Writes writes of the same content, each Within of the write before, that client is another
// owner.
const (
	Writes = 10
	Within = time.Minute
)

// Count counts the writes of one content to one object. Each write must follow Within of the one before. The zero
// value has no write.
type Count struct {
	content string
	writes  int
	last    time.Time
}

// Written counts a write. A write of other content, or after a quiet time, starts a new count.
func (c Count) Written(content string, now time.Time) Count {
	if c.content != content || c.Quiet(now) {
		c = Count{content: content}
	}
	return Count{content, c.writes + 1, now}
}

// Full reports whether another client undoes the writes of this content, if the object differs from the content now.
// The count stays full until the next write. The caller drops the count when the object has its content again, or
// when the user asks for a write.
func (c Count) Full(content string) bool { return c.content == content && c.writes >= Writes }

// Quiet reports whether the last write is longer ago than Within.
func (c Count) Quiet(now time.Time) bool { return now.Sub(c.last) > Within }

// LastWriter is the field manager that wrote an object last, besides AddonFlow and the writers of its status; "": none
// is known.
func LastWriter(entries []metav1.ManagedFieldsEntry) string {
	var last metav1.ManagedFieldsEntry
	for _, e := range entries {
		if e.Manager != v1alpha1.FieldManager && e.Subresource == "" && e.Time != nil && (last.Time == nil || last.Time.Before(e.Time)) {
			last = e
		}
	}
	return last.Manager
}
