package pageserver

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestPagesOfAnotherNamespace_AreNotFound: the watch cache of an operator with --watch-namespace has no object of
// another namespace, and answers such a read with an error.
func TestPagesOfAnotherNamespace_AreNotFound(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "hello"}},
		&v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}},
		&v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "fleet"}},
	).Build()
	door := NewLocalDoor()
	pages, err := New(Options{Hub: hub, Door: door, Base: "/", Watched: "team", Poll: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(pages.Handler())
	t.Cleanup(server.Close)
	b := newBrowser(t, server)
	b.do("POST", "/login", url.Values{"token": {door.Key()}})
	for path, want := range map[string]int{"/sources/team/fleet": http.StatusOK, "/sources/other/fleet": http.StatusNotFound, "/rollouts/other/hello": http.StatusNotFound} {
		if code, _, text := b.do("GET", path, nil); code != want || want == http.StatusNotFound && !strings.Contains(text, "of namespace team only") {
			t.Errorf("%s: %d, want %d\n%s", path, code, want, text)
		}
	}
}

func TestRolloutPage_NamesAnOrderThatWaits(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.AddOnRollout{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello", UID: "1"},
			Spec:       v1alpha1.AddOnRolloutSpec{Target: &v1alpha1.Target{Source: "fleet", Commit: "main@sha1:" + strings.Repeat("2", 40)}},
		},
		&v1alpha1.AddOnOrder{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "o"}, Spec: v1alpha1.AddOnOrderSpec{RolloutUID: "1", Verb: v1alpha1.OrderAbort, Author: "ann"}},
	).Build()
	for want, may := range map[string]rights{
		"The rollout waits for the operator to answer the order of ann: abort.": {rolloutsResource, ordersResource},
		"The operator has not planned the newest commit yet.":                   {rolloutsResource},
	} {
		pages, err := New(Options{Hub: hub, Door: may, Base: "/", Poll: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(pages.Handler())
		t.Cleanup(server.Close)
		code, _, text := newBrowser(t, server).do("GET", "/rollouts/team/hello/2222222", nil)
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%v: %d, want %q\n%s", may, code, want, text)
		}
		code, _, text = newBrowser(t, server).do("GET", "/", nil)
		if code != http.StatusOK || strings.Contains(text, "order of ann: abort") != strings.Contains(want, "order of ann") {
			t.Errorf("the page of all rollouts, %v: %d\n%s", may, code, text)
		}
	}
}
