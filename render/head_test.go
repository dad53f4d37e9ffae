package render

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestScanIdentity(t *testing.T) {
	known := Identity{"apps/v1", "Deployment", "ns", "n"}
	cases := map[string]struct {
		reason string
		raw    string
		want   Identity
		ok     bool
	}{
		"Hub": {
			reason: "as the hub writes it", ok: true, want: known,
			raw: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"name":"x","a":"}\"]{\\"},"name":"n","namespace":"ns"},"spec":{"kind":"Pod","n":[1,{"name":"x"},[]],"ok":true}}`,
		},
		"Order": {
			reason: "keys in any order", ok: true, want: known,
			raw: `{"spec":{"metadata":{"name":"x"}},"metadata":{"namespace":"ns","labels":{},"name":"n"},"kind":"Deployment","n":-1.5e3,"apiVersion":"apps/v1"}`,
		},
		"Cluster scope": {reason: "no namespace", ok: true, want: Identity{"v1", "Namespace", "", "n"}, raw: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`},
		"Empty":         {reason: "nothing is said", ok: true, raw: `{}`},
		"Case":          {reason: "Kubernetes' keys have one spelling", ok: true, raw: `{"Kind":"Pod"}`},
		"Spaces":        {reason: "not the hub's writing", raw: `{"kind": "Pod"}`},
		"Escape":        {reason: "a name that must be decoded", raw: `{"kind":"P\u006fd"}`},
		"Escaped key":   {reason: "a key that must be decoded", raw: `{"k\u0069nd":"Pod"}`},
		"Null":          {reason: "no text", raw: `{"metadata":{"name":null}}`},
		"No object":     {reason: "metadata of another shape", raw: `{"metadata":[]}`},
		"Twice":         {reason: "a second document", raw: `{"kind":"Pod"}{"kind":"Pod"}`},
		"Cut":           {reason: "no end", raw: `{"kind":"Pod","spec":{"a":"`},
		"Cut escape":    {reason: "no end", raw: `{"spec":"a\`},
		"Cut key":       {reason: "no end", raw: `{"spec`},
		"No value":      {reason: "no JSON", raw: `{"spec":}`},
		"Text":          {reason: "no object", raw: `"kind"`},
		"Nothing":       {reason: "no text at all"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := scanIdentity([]byte(tc.raw))
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("%s: got %v, %t, want %v, %t", tc.reason, got, ok, tc.want, tc.ok)
			}
		})
	}
}

// TestProperty_ScannedIsDecoded: a scanned identity equals the decoded one, and everything that
// the hub writes can be scanned.
func TestProperty_ScannedIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"name", "namespace", "kind", "metadata", "apiVersion", "spec", "a", "", "x\"}", "\\", "é\n"})
		var value func(depth int) any
		value = func(depth int) any {
			switch form := rapid.IntRange(0, 5).Draw(t, "form"); {
			case form == 0 && depth > 0:
				list := []any{}
				for range rapid.IntRange(0, 3).Draw(t, "length") {
					list = append(list, value(depth-1))
				}
				return list
			case form < 3 && depth > 0:
				object := map[string]any{}
				for range rapid.IntRange(0, 4).Draw(t, "fields") {
					object[word.Draw(t, "key")] = value(depth - 1)
				}
				return object
			case form == 3:
				return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
			case form == 4:
				return nil
			}
			return word.Draw(t, "text")
		}
		raw, err := json.Marshal(value(4))
		if err != nil {
			t.Fatal(err)
		}
		scanned, ok := scanIdentity(raw)
		if !ok {
			return // decoded instead
		}
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if decoded := IdentityOf(fields); scanned != decoded {
			t.Fatalf("%s: scanned %v, decoded %v", raw, scanned, decoded)
		}
	})
}
