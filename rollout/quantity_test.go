package rollout

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestQuantityOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		in     intstr.IntOrString
		total  int
		want   int
	}{
		"number":        {"a number is itself", intstr.FromInt(3), 10, 3},
		"beyond":        {"more than there are is all there are, never OCM's default", intstr.FromInt(12), 10, 10},
		"numberAsText":  {"OCM's schema admits the string, so it is the number", intstr.FromString("10"), 40, 10},
		"percentUp":     {"percentages round up", intstr.FromString("25%"), 10, 3},
		"percentTiny":   {"any percentage of a cluster is a cluster", intstr.FromString("1%"), 10, 1},
		"percentExact":  {"nothing is added to a whole result", intstr.FromString("50%"), 10, 5},
		"percentAll":    {"100% is every cluster", intstr.FromString("100%"), 7, 7},
		"percentNone":   {"0% is no cluster, never every cluster", intstr.FromString("0%"), 7, 0},
		"zero":          {"0 is no cluster, never every cluster", intstr.FromInt(0), 7, 0},
		"percentOfNone": {"of no cluster, none", intstr.FromString("25%"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := parseQuantity(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if got := q.of(tc.total); got != tc.want {
				t.Errorf("%s: %s of %d is %d, want %d", tc.reason, tc.in.String(), tc.total, got, tc.want)
			}
		})
	}
}

func TestDeadlineForOCM(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "None": "None", "10m": "10m", "1h30m": "1h30m",
		"1.5h": "1h30m0s", ".5h": "30m0s", "1.5s": "1500ms", "300us": "1ms", "5000000us": "5s",
	} {
		got := DeadlineForOCM(in)
		if got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
		if in != "" && !ocmDeadline.MatchString(got) {
			t.Errorf("OCM's schema refuses %q, which %q becomes", got, in)
		}
	}
}

func TestQuantityRefused(t *testing.T) {
	for _, v := range []intstr.IntOrString{
		intstr.FromInt(-1), intstr.FromString("-5%"), intstr.FromString("101%"), intstr.FromString("5.5%"), intstr.FromString("ten"),
		intstr.FromString(""), intstr.FromString("1e3"), intstr.FromString("%"), intstr.FromString(" 5"), intstr.FromString("5 %"),
	} {
		if q, err := parseQuantity(v); err == nil {
			t.Errorf("%q was taken as %+v", v.String(), q)
		}
	}
}

func TestDeadline(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "None": 0, "30m": 30 * time.Minute, "1h30m": 90 * time.Minute, "90s": 90 * time.Second, "1.5h": 90 * time.Minute,
	} {
		if got, err := parseDeadline(text); err != nil || got != want {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"5mX", "5|", "xNone", "5d", "-5m", "0s", "0", "none", "30", "NoneX", " 5m", "+5m"} {
		if d, err := parseDeadline(text); err == nil {
			t.Errorf("%q was taken as %s", text, d)
		}
	}
}

// FuzzQuantity: every accepted quantity is a number of clusters from 0 to all.
func FuzzQuantity(f *testing.F) {
	for _, text := range []string{"10", "25%", "-1", "100%", "1e9", "0%"} {
		f.Add(text, 7)
	}
	f.Fuzz(func(t *testing.T, text string, total int) {
		total = max(0, total%1_000_000)
		q, err := parseQuantity(intstr.FromString(text))
		if err != nil {
			return
		}
		n := q.of(total)
		if n < 0 || n > total {
			t.Errorf("%q of %d is %d", text, total, n)
		}
		if q.percent && q.n > 0 && total > 0 && (n == 0 || (n-1)*100 >= q.n*total) {
			t.Errorf("%q of %d is %d, not the next above %f", text, total, n, float64(q.n*total)/100)
		}
	})
}
