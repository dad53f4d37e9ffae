package variable

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTypedVariables(t *testing.T) {
	cases := map[string]struct {
		reason, in string
		want       map[string]string
		wantErr    bool
	}{
		"pairs":        {"spaces do not matter", " A=integer, B=boolean,C=number ", map[string]string{"A": "integer", "B": "boolean", "C": "number"}, false},
		"nothing":      {"is nothing", " ", nil, false},
		"unknown type": {"is refused", "A=int", nil, true},
		"no type":      {"is refused", "A", nil, true},
		"no name":      {"is refused", "=integer", nil, true},
		"twice":        {"is refused", "A=integer,A=integer", nil, true},
		"built in":     {"is a string", "CLUSTER_NAME=integer", nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseTyped(c.in)
			if (err != nil) != c.wantErr {
				t.Fatalf("%s: error %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
