package addonrollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOverlay(t *testing.T) {
	at := func(version string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "w", UID: "u", ResourceVersion: version}}
	}
	all := func(*workv1.ManifestWork) bool { return true }
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	o := newOverlay[*workv1.ManifestWork](clock)

	if got := o.newest(at("5")); got.ResourceVersion != "5" {
		t.Errorf("without a write the watched object counts, got version %s", got.ResourceVersion)
	}
	o.put(at("7"))
	if got := o.newest(at("6")); got.ResourceVersion != "7" {
		t.Errorf("a watch that lags shows what was written, got version %s", got.ResourceVersion)
	}
	if got := o.unseen(map[client.ObjectKey]bool{}, all); len(got) != 1 {
		t.Errorf("an object the watch does not know yet is there all the same, got %d", len(got))
	}
	if got := o.newest(at("10")); got.ResourceVersion != "10" {
		t.Errorf("a watch that is ahead wins; versions are numbers, not text: got %s", got.ResourceVersion)
	}
	if got := o.unseen(map[client.ObjectKey]bool{}, all); len(got) != 0 {
		t.Errorf("what the watch caught up with is forgotten, got %d", len(got))
	}

	o.put(at("11"))
	clock.SetTime(time.Unix(0, 0).Add(time.Hour))
	if got := o.unseen(map[client.ObjectKey]bool{}, all); len(got) != 0 {
		t.Errorf("a write the watch never shows is forgotten in the end, got %d", len(got))
	}
	recreated := at("12")
	o.put(at("20"))
	recreated.UID = "other"
	if got := o.newest(recreated); got.ResourceVersion != "12" {
		t.Errorf("another object of the same name is not the one written, got version %s", got.ResourceVersion)
	}
}
