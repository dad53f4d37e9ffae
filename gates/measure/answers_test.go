package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
)

func FuzzReadNumber(f *testing.F) {
	f.Add(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1435781451.781,"0.5"]}]}}`, 0.5)
	f.Add(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"0x1p-2"]}}`, -0.5)
	f.Add(422, `{"status":"error","errorType":"execution","error":"many-to-many"}`, math.MaxFloat64)
	f.Add(200, `{"status":"success","data":{"resultType":"vector","result":[{"histogram":[1,{}]}]}}`, 1e-300)
	f.Fuzz(func(t *testing.T, status int, body string, value float64) {
		if got, err := readNumber(status, []byte(body)); err == nil && (math.IsNaN(got) || math.IsInf(got, 0) || status != http.StatusOK) {
			t.Errorf("%q is read as %v", body, got)
		}
		text := strconv.FormatFloat(value, 'g', -1, 64)
		answer := fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,%q]}]}}`, text)
		got, err := readNumber(http.StatusOK, []byte(answer))
		if finite := !math.IsNaN(value) && !math.IsInf(value, 0); (err == nil) != finite || finite && got != value {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	})
}

func FuzzReadVerdict(f *testing.F) {
	f.Add(200, `{"state":"Passed","message":"3 of 3"}`, "Passed", "3 of 3")
	f.Add(200, `{"State":"Failed"}{}`, "Error", "\x00\xff")
	f.Fuzz(func(t *testing.T, status int, body, state, message string) {
		known := func(s v1alpha1.GateState) bool {
			return s == v1alpha1.GatePassed || s == v1alpha1.GateFailed || s == v1alpha1.GateWaiting
		}
		if got, err := readVerdict(status, []byte(body)); err == nil && (!known(got.State) || status != http.StatusOK) {
			t.Errorf("%d %q is %v", status, body, got)
		}
		answer, err := json.Marshal(map[string]string{"state": state, "message": message})
		if err != nil {
			t.Fatal(err)
		}
		got, err := readVerdict(http.StatusOK, answer)
		if known(v1alpha1.GateState(state)) != (err == nil) || err == nil && got != (gates.Verdict{State: v1alpha1.GateState(state), Reason: strings.ToValidUTF8(message, "\uFFFD")}) && !strings.Contains(string(answer), `\ufffd`) {
			t.Errorf("%s is %v, %v", answer, got, err)
		}
	})
}

// FuzzMatcher: a cluster with any name matches itself and no other.
func FuzzMatcher(f *testing.F) {
	f.Add("eu.1", "eux1")
	f.Add(`a"b\d|c`, "c")
	f.Add("\x00\u2028", "a\n")
	f.Fuzz(func(t *testing.T, name, other string) {
		text := strings.TrimPrefix(matcher("", []string{name, "c1"}), "cluster=~")
		pattern, err := strconv.Unquote(text)
		if err != nil {
			t.Fatalf("%s is not a string of PromQL: %v", text, err)
		}
		anchored, err := regexp.Compile("^(?s:" + pattern + ")$")
		if err != nil {
			return // a name that is not UTF-8
		}
		for _, s := range []string{name, other} {
			if anchored.MatchString(s) != (s == name || s == "c1") {
				t.Errorf("%s, but %q: %v", text, s, anchored.MatchString(s))
			}
		}
	})
}

// FuzzAddress: an address that a gate calls has a host, and no credentials in it; a Secret for it is read or refused.
func FuzzAddress(f *testing.F) {
	f.Add("https://prometheus.example:9090/x", "token\n", "user", "password", "-----BEGIN CERTIFICATE-----\n")
	f.Add("http://[::1]:0/?a=b#c", "", "", "x\r", "")
	f.Fuzz(func(t *testing.T, raw, bearer, user, password, ca string) {
		for _, kind := range []v1alpha1.GateType{v1alpha1.GatePrometheus, v1alpha1.GateWebhook} {
			if parsed, err := parseAddress(raw, kind, Options{}); err == nil && (parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.User != nil || hostOf(parsed) == "") {
				t.Errorf("%q is called as %v", raw, parsed)
			}
			_, err := parseCredentials(kind, &Secret{Keys: map[string][]byte{
				bearerTokenKey: []byte(bearer), usernameKey: []byte(user), passwordKey: []byte(password), caKey: []byte(ca), signingKey: []byte(bearer),
			}})
			if err != nil && len(bearer) > 8 && strings.Contains(err.Error(), bearer) {
				t.Errorf("%q shows a credential", err)
			}
		}
	})
}
