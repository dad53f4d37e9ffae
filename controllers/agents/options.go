package agents

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/registration"
)

// indexName is the field that names an object; addonrollout indexes it for
// ManagedClusterAddOns and AddOnRollouts.
const indexName = "metadata.name"

// Options of the controllers of this package.
type Options struct {
	// Client reads from the watch cache and writes as field manager addonflow.
	Client client.Client
	// Live reads uncached: roles, and the Secrets of signing CAs, by name.
	Live client.Reader
	// Recorder of events.
	Recorder record.EventRecorder
	// Book holds what agents request.
	Book *Book
	// Clock of approvals and certificates.
	Clock clock.PassiveClock
	// Random source of serial numbers and signatures.
	Random io.Reader
	// Roles that may be given to agents.
	Roles registration.RolePolicy
	// SigningNamespaces are the namespaces of signing CAs that a template may name.
	SigningNamespaces []string
}

// apply applies a whole object server-side and takes over fields of other managers.
func (o *Options) apply(ctx context.Context, object client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	u := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields})
	return o.Client.Apply(ctx, u, client.ForceOwnership, client.FieldOwner(v1alpha1.FieldManager))
}

// managed reports whether AddonFlow has a rollout of an add-on; OCM is responsible for agents
// of other add-ons.
func (o *Options) managed(ctx context.Context, addOn string) (bool, error) {
	var list v1alpha1.AddOnRolloutList
	if err := o.Client.List(ctx, &list, client.MatchingFields{indexName: addOn}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("cannot list rollouts of %s: %w", addOn, err)
	}
	return len(list.Items) > 0, nil
}

func stateOf(obj metav1.Object, err error) (registration.State, error) {
	switch {
	case apierrors.IsNotFound(err):
		return registration.Absent, nil
	case err != nil:
		return "", err
	case obj.GetDeletionTimestamp() != nil:
		return registration.Leaving, nil
	}
	return registration.Present, nil
}

// facts gathers what the hub knows about an agent.
func (o *Options) facts(ctx context.Context, key Key) (registration.Facts, error) {
	facts := registration.Facts{}
	cluster := &clusterv1.ManagedCluster{}
	var err error
	if facts.Cluster, err = stateOf(cluster, o.Client.Get(ctx, client.ObjectKey{Name: key.Cluster}, cluster)); err != nil {
		return facts, fmt.Errorf("cannot read cluster %s: %w", key.Cluster, err)
	}
	if facts.Cluster == registration.Present && !cluster.Spec.HubAcceptsClient {
		facts.Cluster = registration.Unaccepted
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	where := client.ObjectKey{Namespace: key.Cluster, Name: key.AddOn}
	if facts.AddOn, err = stateOf(addOn, o.Client.Get(ctx, where, addOn)); err != nil {
		return facts, fmt.Errorf("cannot read add-on %s of %s: %w", key.AddOn, key.Cluster, err)
	}
	facts.Asked, _ = o.Book.asked(key)
	return facts, nil
}
