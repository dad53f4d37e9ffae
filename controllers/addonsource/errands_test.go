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

func TestErrands_HangingServersLeavePlacesToOthers(t *testing.T) {
	e := newErrands()
	defer e.stopAll()
	for i := range 10 * errandsPerHost {
		e.send(t.Context(), sourceNo(i), hanging("hangs.example", false, nil))
	}
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

func TestErrands_SourcesThatFailedLeaveHalfOfTheirHost(t *testing.T) {
	e := newErrands()
	defer e.stopAll()
	started := make(chan struct{}, 2*errandsPerHost)
	for i := range errandsPerHost {
		e.send(t.Context(), sourceNo(i), hanging("git.example", true, started))
	}
	for range errandsPerHost / 2 {
		<-started
	}
	e.mu.Lock()
	if n := len(e.waiting); n != errandsPerHost/2 {
		t.Errorf("%d wait, want %d", n, errandsPerHost/2)
	}
	e.mu.Unlock()
	for i := range 3 * errandsPerHost {
		good := answeringServer("git.example")
		e.send(t.Context(), sourceNo(1000+i), good)
		<-good.done
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
