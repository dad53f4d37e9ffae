package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/fluxcd/pkg/runtime/events"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// eventBurst events of one object are written at once, and then one in ten seconds. With client-go's limits, 25
	// and then one in five minutes, the end of a rollout with many stages would be lost.
	eventBurst = 200
	eventQPS   = 0.1
	// eventsWaiting is how many events wait for a receiver that is slow or down.
	eventsWaiting = 1000
)

// eventSender records events on the hub, and passes them on to a receiver such as Flux's
// notification-controller. A receiver that hangs delays no reconcile.
type eventSender struct {
	record.EventRecorder
	broadcaster record.EventBroadcaster
	scheme      *runtime.Scheme
	log         logr.Logger
	// receiver is nil if there is no address.
	receiver record.EventRecorder
	waiting  chan eventToSend
	// notifier is nil if there is no address.
	notifier *notifier
}

type eventToSend struct {
	object                *metav1.PartialObjectMetadata
	metadata              map[string]string
	kind, reason, message string
}

// newEventSender returns a sender that records with the manager's client. Add it to the
// manager: it passes events on while it runs.
func newEventSender(mgr ctrl.Manager, address string) (*eventSender, error) {
	hub, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	broadcaster := record.NewBroadcaster(record.WithCorrelatorOptions(eventCorrelation()))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: hub.Events("")})
	s := &eventSender{
		EventRecorder: broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: controllerName}),
		broadcaster:   broadcaster, scheme: mgr.GetScheme(), log: mgr.GetLogger().WithName("events"),
	}
	return s, s.passOnTo(address)
}

// passOnTo sets the receiver; "": none.
func (s *eventSender) passOnTo(address string) error {
	if address == "" {
		return nil
	}
	receiver, err := events.NewRecorderForScheme(s.scheme, discarded{}, s.log, address, controllerName)
	if err != nil {
		return err
	}
	s.receiver, s.waiting = receiver, make(chan eventToSend, eventsWaiting)
	return nil
}

// eventCorrelation prevents the merge of events with different messages: client-go would merge more than ten events
// with one reason into "(combined from similar events)", with the text of the last one.
func eventCorrelation() record.CorrelatorOptions {
	return record.CorrelatorOptions{
		BurstSize: eventBurst, QPS: eventQPS,
		KeyFunc: func(e *corev1.Event) (aggregate, local string) {
			aggregate, _ = record.EventAggregatorByReasonFunc(e)
			return aggregate + e.Message, e.Message
		},
	}
}

// Start passes events on until ctx ends.
func (s *eventSender) Start(ctx context.Context) error {
	defer s.broadcaster.Shutdown()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-s.waiting:
			posted := make(chan struct{})
			go func() { // it retries, and ignores ctx
				defer close(posted)
				s.receiver.AnnotatedEventf(e.object, e.metadata, e.kind, e.reason, "%s", e.message)
			}()
			select {
			case <-posted:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// NeedLeaderElection is false. A follower runs the sender, too, but has no events to send.
func (s *eventSender) NeedLeaderElection() bool { return false }

// Event implements record.EventRecorder.
func (s *eventSender) Event(object runtime.Object, kind, reason, message string) {
	s.AnnotatedEventf(object, nil, kind, reason, "%s", message)
}

// Eventf implements record.EventRecorder.
func (s *eventSender) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	s.AnnotatedEventf(object, nil, kind, reason, format, args...)
}

// AnnotatedEventf records an event with metadata. The receiver accepts only events of namespaced objects.
func (s *eventSender) AnnotatedEventf(object runtime.Object, metadata map[string]string, kind, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	s.EventRecorder.AnnotatedEventf(object, metadata, kind, reason, "%s", message)
	if s.receiver == nil && s.notifier == nil {
		return
	}
	about, err := s.about(object)
	if err != nil {
		s.log.Error(err, "Cannot pass an event on", "reason", reason, "message", message)
		return
	}
	if about.Namespace == "" {
		return
	}
	event := eventToSend{about, metadata, kind, reason, message}
	if s.notifier != nil {
		s.notifier.notify(event)
	}
	if s.receiver == nil {
		return
	}
	select {
	case s.waiting <- event:
	default:
		s.log.Info("Dropped an event: its receiver is down or too slow", "reason", reason, "message", message)
	}
}

// about is the reference to an object in the form for the receiver.
func (s *eventSender) about(object runtime.Object) (*metav1.PartialObjectMetadata, error) {
	ref, err := reference.GetReference(s.scheme, object)
	if err != nil {
		return nil, fmt.Errorf("cannot name the object of an event: %w", err)
	}
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, ResourceVersion: ref.ResourceVersion,
	}}
	about.SetGroupVersionKind(ref.GroupVersionKind())
	accessor, err := meta.Accessor(object)
	if err != nil {
		return about, nil //nolint:nilerr // a reference has no annotations to pass on
	}
	about.Annotations = maps.Clone(accessor.GetAnnotations())
	maps.DeleteFunc(about.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, eventv1.Group+"/") })
	return about, nil
}

// discarded is the recorder on the hub for a recorder that only posts.
type discarded struct{}

func (discarded) Event(runtime.Object, string, string, string) {}

func (discarded) Eventf(runtime.Object, string, string, string, ...any) {}

func (discarded) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {}
