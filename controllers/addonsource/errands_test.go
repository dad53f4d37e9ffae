package addonsource

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/gitsource"
)

// sourceNo names a source.
func sourceNo(n int) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("source-%d", n)}
}

// hanging is an errand that only its context ends. It reports its start.
func hanging(host string, doubtful bool, started chan<- struct{}) *errand {
	return &errand{host: host, doubtful: doubtful, run: func(ctx context.Context) fetchResult {
		if started != nil {
			started <- struct{}{}
		}
		<-ctx.Done()
		return fetchResult{err: ctx.Err()}
	}}
}

// answeringServer is an errand to a server that answers at once.
func answeringServer(host string) *errand {
	return &errand{host: host, run: func(context.Context) fetchResult { return fetchResult{head: gitsource.Revision{Commit: host}} }}
}

// TestErrands_NoNamespaceAndNoHostTakesAllPlaces: more errands hang than there are places. They are
// those of one namespace or of several, to one host or to several.
func TestErrands_NoNamespaceAndNoHostTakesAllPlaces(t *testing.T) {
	cases := map[string]struct{ namespaces, hosts, each int }{
		"4 hosts x 32 sources of one namespace": {1, 4, 32},
		"400 hosts of one namespace":            {1, 400, 1},
		"one host of one namespace":             {1, 1, 400},
		"the host of the others":                {1, 1, 400},
		"one host of 20 namespaces":             {20, 1, 40},
		"4 hosts of each of 5 namespaces":       {5, 4, 32},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := newErrands()
			defer e.stopAll()
			for n := range c.namespaces {
				for i := range c.hosts * c.each {
					source := types.NamespacedName{Namespace: fmt.Sprintf("evil-%d", n), Name: fmt.Sprint(i)}
					e.send(t.Context(), source, hanging(fmt.Sprintf("hangs-%d.example:443", i/c.each), false, nil))
				}
			}
			host := "answers.example:443"
			if name == "the host of the others" {
				host = "hangs-0.example:443"
			}
			for i := range 2 * errandsAtOnce {
				good := answeringServer(host)
				e.send(t.Context(), sourceNo(i), good)
				if _, waits := e.waitsSince(sourceNo(i)); waits {
					t.Fatalf("good source %d waits", i)
				}
				<-good.done
			}
		})
	}
}

// TestErrands_AFreePlaceIsForTheNamespaceThatRunsFewest: as many namespaces as there are places take all of them. Each
// has another errand that waits.
func TestErrands_AFreePlaceIsForTheNamespaceThatRunsFewest(t *testing.T) {
	e := newErrands()
	defer e.stopAll()
	evil := func(n int) types.NamespacedName {
		return types.NamespacedName{Namespace: fmt.Sprintf("evil-%d", n%errandsAtOnce), Name: fmt.Sprint(n)}
	}
	for n := range 2 * errandsAtOnce {
		e.send(t.Context(), evil(n), hanging(fmt.Sprintf("hangs-%d.example", n), false, nil))
	}
	good := answeringServer("answers.example")
	e.send(t.Context(), sourceNo(0), good)
	if _, waits := e.waitsSince(sourceNo(0)); !waits {
		t.Fatal("a place is free")
	}
	e.stop(evil(errandsAtOnce))
	e.stop(evil(0))
	<-good.done
}

func TestErrands_AnAnswerIsTakenOnce(t *testing.T) {
	e := newErrands()
	defer e.stopAll()
	good := answeringServer("answers.example")
	e.send(t.Context(), sourceNo(-1), good)
	<-good.done
	if b, ok := e.take(sourceNo(-1), errandKey{}); !ok || b.head.Commit != "answers.example" {
		t.Errorf("got %v and %v", b, ok)
	}
	if _, ok := e.take(sourceNo(-1), errandKey{}); ok {
		t.Error("the same answer twice")
	}
}

func TestErrands_SourcesThatFailedLeavePlacesOfTheirHost(t *testing.T) {
	e := newErrands()
	defer e.stopAll()
	started := make(chan struct{}, errandsAtOnce)
	for i := range errandsAtOnce {
		e.send(t.Context(), sourceNo(i), hanging("git.example", true, started))
	}
	<-started
	for i := range errandsAtOnce {
		good := answeringServer("git.example")
		e.send(t.Context(), sourceNo(1000+i), good)
		<-good.done
	}
	e.mu.Lock()
	before := e.running[group{}]
	e.mu.Unlock()
	for range before - 1 {
		<-started
	}
	// A freed place goes to an errand that waits for it.
	e.stop(sourceNo(0))
	<-started
}

func TestErrands_AnotherOrderEndsTheErrandUnderWay(t *testing.T) {
	e := newErrands()
	defer e.stopAll()
	started := make(chan struct{}, 1)
	first := hanging("git.example", false, started)
	e.send(t.Context(), sourceNo(0), first)
	<-started
	second := answeringServer("git.example")
	second.key = errandKey{generation: 2}
	e.send(t.Context(), sourceNo(0), second)
	<-first.done
	<-second.done
	if e.awaits(sourceNo(0), errandKey{}) {
		t.Error("the first errand is still awaited")
	}
	if _, ok := e.take(sourceNo(0), errandKey{generation: 2}); !ok {
		t.Error("the second errand brought nothing")
	}
}

func TestErrands_APanicIsTheFailureOfOneSource(t *testing.T) {
	e := newErrands()
	broken := &errand{run: func(context.Context) fetchResult { panic("kustomize") }}
	e.send(t.Context(), sourceNo(0), broken)
	<-broken.done
	b, ok := e.take(sourceNo(0), errandKey{})
	if !ok || b.err == nil || !strings.Contains(b.err.Error(), "internal error") {
		t.Errorf("got %v and %v", b, ok)
	}
}
