package variable

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseConfigVariables(t *testing.T) {
	got, err := ParseFromConfigs("\n ZONE=zones.example.com{.spec.zones[0]['a.b']}\n\nLEVEL=configmaps{.data.log\\.level}\n")
	want := []FromConfig{
		{Name: "LEVEL", Resource: "configmaps", Path: `{.data.log\.level}`},
		{Name: "ZONE", Group: "example.com", Resource: "zones", Path: `{.spec.zones[0]['a.b']}`},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("error %v (-want +got):\n%s", err, diff)
	}
	bad := map[string]string{
		"A": "is not NAME", "A=configmaps": "is not NAME", "={.a}": "is not NAME", "a-b=c{.a}": "is not NAME", "A={.a}": "is not NAME", "A=.example.com{.a}": "is not NAME",
		"CLUSTER_NAME=c{.a}": "is built in", "CLUSTER_LABEL_x=c{.a}": "is built in", "HUB_KUBECONFIG=c{.a}": "is built in",
		"A=c{.a}\nA=c{.b}": "declared twice", "A=c{.a": "not a JSONPath", "A=c{}": "not a JSONPath", "A=c{.}": "not a JSONPath",
		"A=c{.a..b}": "a name is empty", "A=c{.a[*]}": "neither a position", "A=c{.a[-1]}": "neither a position",
		"A=c{.a[?(@.b)]}": "neither a position", "A=c{.*}": "cannot be used", "A=c{a}": "begins with neither", "A=c{.a['b}": "no end of",
	}
	for text, says := range bad {
		if _, err := ParseFromConfigs(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q", text, err, says)
		}
	}
}

// FuzzAnnotations: the declarations of variables are refused, or each has a name that a template can use.
func FuzzAnnotations(f *testing.F) {
	f.Add("LEVEL=configmaps{.data.level}\nREGION=regions.example.com{.spec.zones[0]['name']}")
	f.Add("REPLICAS=integer,DEBUG=boolean")
	f.Add(`A=b{.data.log\.level}`)
	body := map[string]any{"data": map[string]any{"level": "debug", "log.level": int64(1)}, "spec": map[string]any{"zones": []any{map[string]any{"name": true}}}}
	f.Fuzz(func(t *testing.T, value string) {
		if list, err := ParseFromConfigs(value); err == nil {
			for _, v := range list {
				if !IsName(v.Name) || v.Resource == "" {
					t.Errorf("%q declares %+v", value, v)
				}
				_, _ = v.Read(body)
			}
		}
		if typed, err := ParseTyped(value); err == nil {
			for name, kind := range typed {
				if !IsName(name) || kind != TypeInteger && kind != TypeNumber && kind != TypeBoolean {
					t.Errorf("%q declares %s as %s", value, name, kind)
				}
			}
		}
	})
}
