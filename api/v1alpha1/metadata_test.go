package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// TestMain expects that the tests leave no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// FuzzQuarantine: a revision with the annotation is in quarantine, whatever its value. A quarantine that the operator
// writes again, as when it names a pull request, is read as it was; the time to the second.
func FuzzQuarantine(f *testing.F) {
	f.Add(`{"reason":"bad","time":"2026-11-28T12:00:00Z","order":"o","author":"ana","withCRDs":true,"to":"v1:sha256:0","proposed":"https://forge.example/1"}`)
	f.Add(`{"reason":"bad","time":"2026-11-28T12:00:00.5+01:00","more":1}`)
	f.Add("true")
	f.Add("null")
	f.Add(`{"reason":`)
	f.Fuzz(func(t *testing.T, text string) {
		read := func(text string) Quarantine {
			q, quarantined := ReadQuarantine(map[string]string{QuarantinedAnnotation: text})
			if !quarantined {
				t.Fatalf("%q does not quarantine", text)
			}
			return q
		}
		q := read(text)
		if !json.Valid([]byte(text)) && q.Reason != "annotation addonflow.io/quarantined cannot be read" {
			t.Errorf("%q has the reason %q", text, q.Reason)
		}
		if q.Time.UTC().Year() > 9999 {
			return // RFC 3339 has no such year
		}
		written, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		again := read(string(written))
		if second := q.Time.Rfc3339Copy(); !again.Time.Equal(&second) {
			t.Errorf("%q began at %s, and then at %s", text, q.Time, again.Time)
		}
		again.Time = q.Time
		if diff := cmp.Diff(q, again); diff != "" {
			t.Errorf("%q is read again as another quarantine:\n%s", text, diff)
		}
	})
}

// FuzzHold: a cluster with the annotation is held, whatever its value: until the time in it, or without end.
func FuzzHold(f *testing.F) {
	f.Add("2026-11-28T12:00:00+01:00")
	f.Add("true")
	f.Add("tomorrow")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		held, until := HeldByAnnotation(map[string]string{HoldUntilAnnotation: text})
		if !held {
			t.Fatalf("%q does not hold", text)
		}
		if written, err := time.Parse(time.RFC3339, text); err == nil && !until.Equal(written) || err != nil && !until.IsZero() {
			t.Errorf("%q holds until %s", text, until)
		}
		if held, again := HeldByAnnotation(map[string]string{HoldUntilAnnotation: until.Format(time.RFC3339Nano)}); !held || !again.Equal(until) {
			t.Errorf("%q holds until %s, and then until %s", text, until, again)
		}
	})
}
