package hubclient

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Updates passes the updates of objects of one kind for which changed is true, and no other event.
func Updates[T client.Object](changed func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(T)
			after, also := e.ObjectNew.(T)
			return ok && also && changed(before, after)
		},
	}
}
