package fleet

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultClusterSet is where OCM puts a cluster that joins.
const (
	clusterSetLabel   = "cluster.open-cluster-management.io/clusterset"
	defaultClusterSet = "default"
)

// kubeVersion is what every cluster reports.
const kubeVersion = "v1.33.2"

// Cluster is a cluster that joins.
type Cluster struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
}

// Numbered returns n clusters called prefix-001 and so on, with as many digits
// as n needs and three at least.
func Numbered(prefix string, n int) []Cluster {
	width := max(3, len(strconv.Itoa(n)))
	clusters := make([]Cluster, n)
	for i := range clusters {
		clusters[i] = Cluster{Name: fmt.Sprintf("%s-%0*d", prefix, width, i+1)}
	}
	return clusters
}

// AddClusters creates clusters: ManagedCluster, accepted, joined and available, and the
// namespace of that name. An existing cluster gets the labels, annotations and conditions of a
// fresh one. Agents answer from then on. Placements with a selector select the clusters on
// Refresh.
func (f *Fleet) AddClusters(ctx context.Context, clusters ...Cluster) error {
	return f.parallel(ctx, len(clusters), func(ctx context.Context, i int) error {
		if err := f.join(ctx, clusters[i]); err != nil {
			return fmt.Errorf("cannot add cluster %q: %w", clusters[i].Name, err)
		}
		return nil
	})
}

func (f *Fleet) parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(f.opts.Workers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

func (f *Fleet) join(ctx context.Context, c Cluster) error {
	managed := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Annotations: c.Annotations, Labels: joinLabels(c)},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 60},
	}
	err := f.hub.Create(ctx, managed)
	if apierrors.IsAlreadyExists(err) {
		existing := &clusterv1.ManagedCluster{}
		if err := f.hub.Get(ctx, client.ObjectKey{Name: c.Name}, existing); err != nil {
			return err
		}
		managed.ResourceVersion, managed.Status = existing.ResourceVersion, existing.Status
		err = f.hub.Update(ctx, managed)
	}
	if err != nil {
		return err
	}
	managed.Status.Version.Kubernetes = kubeVersion
	for _, condition := range healthy() {
		meta.SetStatusCondition(&managed.Status.Conditions, condition)
	}
	if err := f.hub.Status().Update(ctx, managed); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: c.Name, Labels: map[string]string{clusterv1.ClusterNameLabelKey: c.Name},
	}}
	if err := f.hub.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	f.admit(c.Name, managed.Labels)
	return nil
}

func joinLabels(c Cluster) map[string]string {
	labels := map[string]string{
		clusterSetLabel:               defaultClusterSet,
		clusterv1.ClusterNameLabelKey: c.Name,
	}
	maps.Copy(labels, c.Labels)
	return labels
}

func (f *Fleet) admit(name string, labels map[string]string) {
	m := f.member(name)
	m.mu.Lock()
	m.joined, m.detached, m.labels = true, false, maps.Clone(labels)
	m.mood.gone = false
	m.mu.Unlock()
	f.wake(m)
}

// healthy are a joined cluster's conditions, in the words of OCM's
// registration.
func healthy() []metav1.Condition {
	return []metav1.Condition{
		{
			Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue,
			Reason: "HubClusterAdminAccepted", Message: "Accepted by hub cluster admin",
		},
		{
			Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue,
			Reason: "ManagedClusterJoined", Message: "Managed cluster joined",
		},
		reachable(),
	}
}

func reachable() metav1.Condition {
	return metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue,
		Reason: "ManagedClusterAvailable", Message: "Managed cluster is available",
	}
}

func unreachable() metav1.Condition {
	return metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionUnknown,
		Reason: "ManagedClusterLeaseUpdateStopped", Message: "Registration agent stopped updating its lease.",
	}
}

// RemoveCluster deletes the ManagedCluster and takes the cluster out of every placement. Its
// namespace stays, as in OCM; works in it that are being deleted lose their finalizer.
func (f *Fleet) RemoveCluster(ctx context.Context, name string) error {
	managed := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreNotFound(f.hub.Delete(ctx, managed)); err != nil {
		return fmt.Errorf("cannot remove cluster %q: %w", name, err)
	}
	m := f.member(name)
	m.mu.Lock()
	m.joined, m.detached = false, true
	m.mu.Unlock()
	f.wake(m)
	return f.dropFromPlacements(ctx, name)
}

// Relabel changes a cluster's labels; an empty value removes one. Placements with a selector
// follow on Refresh.
func (f *Fleet) Relabel(ctx context.Context, name string, labels map[string]string) error {
	managed := &clusterv1.ManagedCluster{}
	if err := f.hub.Get(ctx, client.ObjectKey{Name: name}, managed); err != nil {
		return fmt.Errorf("cannot relabel cluster %q: %w", name, err)
	}
	before := managed.DeepCopy()
	for key, value := range labels {
		if value == "" {
			delete(managed.Labels, key)
			continue
		}
		metav1.SetMetaDataLabel(&managed.ObjectMeta, key, value)
	}
	if err := f.hub.Patch(ctx, managed, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot relabel cluster %q: %w", name, err)
	}
	m := f.member(name)
	m.mu.Lock()
	m.labels = maps.Clone(managed.Labels)
	m.mu.Unlock()
	return nil
}

// Disappear cuts a cluster off: its agent is silent and, as after OCM's lease grace period, its
// ManagedCluster is Available=Unknown and tainted unreachable. It stays in its placements, as
// if those tolerated the taint; Leave takes it out.
func (f *Fleet) Disappear(ctx context.Context, cluster string) error {
	f.change(cluster, func(m *mood) { m.gone = true })
	return f.setReachable(ctx, cluster, unreachable())
}

// Return brings a cluster back: Available, and its agent catches up.
func (f *Fleet) Return(ctx context.Context, cluster string) error {
	err := f.setReachable(ctx, cluster, reachable())
	f.change(cluster, func(m *mood) { m.gone = false })
	return err
}

func (f *Fleet) setReachable(ctx context.Context, cluster string, condition metav1.Condition) error {
	names := f.joined()
	if cluster != AllClusters {
		names = []string{cluster}
	}
	return f.parallel(ctx, len(names), func(ctx context.Context, i int) error {
		if err := f.reportCluster(ctx, names[i], condition); err != nil {
			return fmt.Errorf("cannot report cluster %q: %w", names[i], err)
		}
		return nil
	})
}

func (f *Fleet) reportCluster(ctx context.Context, name string, condition metav1.Condition) error {
	managed := &clusterv1.ManagedCluster{}
	if err := f.hub.Get(ctx, client.ObjectKey{Name: name}, managed); err != nil {
		return err
	}
	before := managed.DeepCopy()
	meta.SetStatusCondition(&managed.Status.Conditions, condition)
	if err := f.hub.Status().Patch(ctx, managed, client.MergeFrom(before)); err != nil {
		return err
	}
	before = managed.DeepCopy()
	managed.Spec.Taints = nil
	if condition.Status != metav1.ConditionTrue {
		managed.Spec.Taints = []clusterv1.Taint{{
			Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect,
			TimeAdded: metav1.NewTime(time.Now().Truncate(time.Second)),
		}}
	}
	return f.hub.Patch(ctx, managed, client.MergeFrom(before))
}
