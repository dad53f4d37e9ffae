package addonstatus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Takeover is a field of an add-on's status that AddonFlow wrote and another field manager has
// written since.
type Takeover struct {
	// Manager is the field manager that wrote it.
	Manager string
	// Field is configReferences, or the type of a condition and which part of it.
	Field string
	// At is when that manager last wrote to the status.
	At time.Time
}

// Kind is the part of the status the field belongs to: configReferences or a condition.
func (t Takeover) Kind() string {
	kind, _, _ := strings.Cut(t.Field, " ")
	return kind
}

// References is the kind of configReferences; conditions are their own kinds.
const References = "configReferences"

// Guarded are the kinds that only AddonFlow may write.
func Guarded() []string { return []string{References, configured, progressing} }

// Value is the value of a guarded kind as text; equal values have equal texts.
func Value(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) string {
	if kind != References {
		c := meta.FindStatusCondition(addOn.Status.Conditions, kind)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason
	}
	var b strings.Builder
	for _, r := range addOn.Status.ConfigReferences {
		parts := []string{r.Group, r.Resource}
		if d := r.DesiredConfig; d != nil {
			parts = append(parts, d.Namespace, d.Name, d.SpecHash)
		}
		b.WriteString(strings.Join(parts, "/"))
		b.WriteByte(' ')
	}
	return b.String()
}

// OwnWords reports whether a condition has a text that only AddonFlow writes.
func OwnWords(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) bool {
	c := meta.FindStatusCondition(addOn.Status.Conditions, kind)
	switch {
	case c == nil:
		return false
	case kind == configured:
		return c.Status == metav1.ConditionTrue && c.Reason == reasonConfigured
	case kind != progressing:
		return false
	}
	for _, words := range progressingReasons {
		if i := slices.Index(words[:], c.Reason); i >= 0 {
			return (c.Status == metav1.ConditionTrue) == (i == int(Started))
		}
	}
	return false
}

// Takeovers compares AddonFlow's entry of the managed fields with the other entries. A
// condition that AddonFlow never wrote was not taken over: while AddonFlow adopts an add-on,
// it has written configReferences, and the conditions are still those of OCM.
func Takeovers(entries []metav1.ManagedFieldsEntry) []Takeover {
	var own *metav1.ManagedFieldsEntry
	others, at := map[string]map[string]bool{}, map[string]time.Time{}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Subresource != "status" || e.FieldsV1 == nil:
		case e.Manager == v1alpha1.FieldManager:
			own = e
		case mentionsGuarded(e.FieldsV1.GetRawBytes()):
			others[e.Manager] = guarded(e.FieldsV1.GetRawBytes())
			if e.Time != nil {
				at[e.Manager] = e.Time.Time
			}
		}
	}
	if own == nil || len(others) == 0 {
		return nil // the usual case, checked without decoding
	}
	ours := guarded(own.FieldsV1.GetRawBytes())
	var found []Takeover
	for manager, fields := range others {
		for field := range fields {
			t := Takeover{Manager: manager, Field: field, At: at[manager]}
			wasOurs := field == References || field != t.Kind() && ours[t.Kind()]
			if wasOurs && !ours[field] {
				found = append(found, t)
			}
		}
	}
	slices.SortFunc(found, func(a, b Takeover) int {
		return strings.Compare(a.Field+a.Manager, b.Field+b.Manager)
	})
	return found
}

// mentionsGuarded reports, without decoding, whether a set of managed fields may contain a
// guarded field.
func mentionsGuarded(raw []byte) bool {
	for _, name := range []string{"f:" + References, configured, progressing} {
		if bytes.Contains(raw, []byte(name)) {
			return true
		}
	}
	return false
}

// guarded lists the guarded fields in a set of managed fields: configReferences, the key of a
// condition, and the parts of a condition.
func guarded(raw []byte) map[string]bool {
	var set struct {
		Status struct {
			ConfigReferences json.RawMessage           `json:"f:configReferences"`
			Conditions       map[string]map[string]any `json:"f:conditions"`
		} `json:"f:status"`
	}
	out := map[string]bool{}
	if json.Unmarshal(raw, &set) != nil {
		return out // unknown format: no field counts as written
	}
	if set.Status.ConfigReferences != nil {
		out[References] = true
	}
	for _, kind := range []string{configured, progressing} {
		// A writer that changes a condition owns its parts; the key has both owners.
		parts, ok := set.Status.Conditions[fmt.Sprintf(`k:{"type":%q}`, kind)]
		if ok {
			out[kind] = true
		}
		for _, part := range []string{"status", "reason"} {
			if _, ok := parts["f:"+part]; ok {
				out[kind+" "+part] = true
			}
		}
	}
	return out
}
