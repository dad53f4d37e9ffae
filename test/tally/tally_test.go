package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     []string
		want   []string
		err    error
	}{
		"Leaves": {
			reason: "a test with subtests counts as its subtests",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestA/x"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/x"}`,
				`{"Action":"run","Package":"p","Test":"TestA/y"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/y"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Elapsed":0.5}`,
			},
			want: []string{"ok    p  0.5s  2 passed", "2 passed, 0 failed"},
		},
		"FailedLeaf": {
			reason: "a failed subtest is one failure, its parent none, and what it said is shown",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestA/x"}`,
				`{"Action":"output","Package":"p","Test":"TestA/x","Output":"boom\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA/x"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p","Elapsed":0.5}`,
			},
			want: []string{"boom", "FAIL  p  0.5s  0 passed, 1 failed", "failed: p TestA/x", "0 passed, 1 failed"},
			err:  errFailed,
		},
		"FailedParent": {
			reason: "a parent that fails by itself is a failure beside its passed subtests",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestA/x"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/x"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p","Elapsed":0}`,
			},
			want: []string{"FAIL  p  0.0s  1 passed, 1 failed", "failed: p TestA", "1 passed, 1 failed"},
			err:  errFailed,
		},
		"FailedSpec": {
			reason: "a failed spec is named by its place and what it said, because the name of its suite does not help",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestSuite"}`,
				`{"Action":"output","Package":"p","Test":"TestSuite","Output":"  \u001b[38;5;9m[FAILED]\u001b[0m in [It] - a_test.go:7 @ 12:00\n"}`,
				`{"Action":"output","Package":"p","Test":"TestSuite","Output":"  \u001b[38;5;9m[FAILED] Timed out after 1s.\n"}`,
				`{"Action":"output","Package":"p","Test":"TestSuite","Output":"  Expected\n"}`,
				`{"Action":"output","Package":"p","Test":"TestSuite","Output":"      <string>: no\n"}`,
				`{"Action":"output","Package":"p","Test":"TestSuite","Output":"  \u001b[38;5;9mIn \u001b[1m[It]\u001b[0m\u001b[38;5;9m at: \u001b[1ma_test.go:7\u001b[0m @ 12:00\n"}`,
				`{"Action":"output","Package":"p","Test":"TestSuite","Output":"FAIL! -- 12 Passed | 1 Failed | 0 Pending\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestSuite"}`,
				`{"Action":"fail","Package":"p","Elapsed":0}`,
			},
			want: []string{
				"  \x1b[38;5;9m[FAILED]\x1b[0m in [It] - a_test.go:7 @ 12:00",
				"  \x1b[38;5;9m[FAILED] Timed out after 1s.", "  Expected", "      <string>: no",
				"  \x1b[38;5;9mIn \x1b[1m[It]\x1b[0m\x1b[38;5;9m at: \x1b[1ma_test.go:7\x1b[0m @ 12:00", "FAIL! -- 12 Passed | 1 Failed | 0 Pending",
				"FAIL  p  0.0s  12 passed, 1 failed", "failed: p TestSuite", "failed: a_test.go:7: Timed out after 1s. Expected <string>: no", "12 passed, 1 failed",
			},
			err: errFailed,
		},
		"Specs": {
			reason: "a ginkgo suite counts as its specs, colours or not",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestSuite"}`,
				`{"Action":"output","Package":"p","Test":"TestSuite","Output":"\u001b[1mSUCCESS!\u001b[0m -- \u001b[32m12 Passed\u001b[0m | 0 Failed | 0 Pending\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestSuite"}`,
				`{"Action":"pass","Package":"p","Elapsed":1}`,
			},
			want: []string{"ok    p  1.0s  12 passed", "12 passed, 0 failed"},
		},
		"FailedSpecs": {
			reason: "the suite's own failure is not counted on top of its specs",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestSuite"}`,
				`{"Action":"output","Package":"p","Test":"TestSuite","Output":"FAIL! -- 3 Passed | 2 Failed | 0 Pending\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestSuite"}`,
				`{"Action":"fail","Package":"p","Elapsed":1}`,
			},
			want: []string{
				"FAIL! -- 3 Passed | 2 Failed | 0 Pending",
				"FAIL  p  1.0s  3 passed, 2 failed", "failed: p TestSuite", "3 passed, 2 failed",
			},
			err: errFailed,
		},
		"NoBuild": {
			reason: "a package that does not build is one failure and says why",
			in: []string{
				`{"ImportPath":"p","Action":"build-output","Output":"p.go:1: undefined\n"}`,
				`{"ImportPath":"p","Action":"build-fail"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}`,
				`{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}`,
			},
			want: []string{
				"p.go:1: undefined", "FAIL\tp [build failed]",
				"FAIL  p  0.0s  0 passed, 1 failed", "failed: p", "0 passed, 1 failed",
			},
			err: errFailed,
		},
		"TimedOut": {
			reason: "a test that never ended shows what it said",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"waiting\n"}`,
				`{"Action":"fail","Package":"p","Elapsed":9}`,
			},
			want: []string{"waiting", "FAIL  p  9.0s  0 passed, 1 failed", "failed: p", "0 passed, 1 failed"},
			err:  errFailed,
		},
		"Nothing": {
			reason: "a run without tests is an error, and lines that are no events stay",
			in:     []string{`go: warning`, `{"Action":"skip","Package":"p"}`},
			want:   []string{"go: warning", "0 passed, 0 failed"},
			err:    errNothing,
		},
		"Skipped": {
			reason: "a skipped test is neither passed nor failed, and is said",
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"skip","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestB"}`,
				`{"Action":"pass","Package":"p","Test":"TestB"}`,
				`{"Action":"pass","Package":"p","Elapsed":0}`,
			},
			want: []string{"ok    p  0.0s  1 passed", "1 skipped", "1 passed, 0 failed"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(strings.NewReader(strings.Join(tc.in, "\n")+"\n"), &out)
			if !errors.Is(err, tc.err) {
				t.Errorf("%s: error %v, want %v", tc.reason, err, tc.err)
			}
			if want := strings.Join(tc.want, "\n") + "\n"; out.String() != want {
				t.Errorf("%s: got\n%swant\n%s", tc.reason, out.String(), want)
			}
		})
	}
}
