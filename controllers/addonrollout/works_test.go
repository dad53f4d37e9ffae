package addonrollout

import (
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// leaving marks an object as being deleted, and keeps it.
func (s *scene) leaving(o client.Object, key client.ObjectKey) {
	s.t.Helper()
	if err := s.hub.Get(s.t.Context(), key, o); err != nil {
		s.t.Fatal(err)
	}
	o.SetFinalizers(append(o.GetFinalizers(), "example.com/held"))
	s.update(o)
	s.delete(o)
}

// While a cluster or its add-on is being deleted, or the cluster does not exist, its works stay as they
// are. The other clusters move.
func TestWorksOfADepartingClusterAreLeftAlone(t *testing.T) {
	cases := map[string]func(s *scene){
		"cluster deleting": func(s *scene) { s.leaving(&clusterv1.ManagedCluster{}, client.ObjectKey{Name: "c1"}) },
		"cluster gone": func(s *scene) {
			c := &clusterv1.ManagedCluster{}
			c.Name = "c1"
			s.delete(c)
		},
		"add-on deleting": func(s *scene) { s.leaving(s.addOn("c1"), client.ObjectKey{Namespace: "c1", Name: "hello"}) },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			v1 := s.target("v1")
			s.settle()
			change(s)
			before := s.works()["c1"].ResourceVersion
			v2 := s.target("v2")
			for range 5 {
				s.turn()
				s.report("c2")
			}
			works := s.works()
			if got := works["c1"].Annotations[v1alpha1.RevisionAnnotation]; got != v1 || works["c1"].ResourceVersion != before {
				t.Errorf("the work was written, and is at %s", got)
			}
			if got := works["c2"].Annotations[v1alpha1.RevisionAnnotation]; got != v2 {
				t.Errorf("the other cluster is at %s", got)
			}
		})
	}
}

// A work is written only if it differs, preconditioned on the version that was read. Labels of other
// writers stay.
func TestWorksAreWrittenWhereTheyDiffer(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	w := s.works()["c1"]
	w.Labels["team"] = "x"
	s.update(w)
	version := s.works()["c1"].ResourceVersion
	s.turns(3)
	if got := s.works()["c1"]; got.ResourceVersion != version {
		t.Error("a label of another writer made a write")
	}
	w = s.works()["c1"]
	w.Spec.Workload.Manifests = nil
	s.update(w)
	s.turns(3)
	repaired := s.works()["c1"]
	if len(repaired.Spec.Workload.Manifests) != 1 || repaired.Labels["team"] != "x" {
		t.Errorf("what drifted is %d manifests, labels %v", len(repaired.Spec.Workload.Manifests), repaired.Labels)
	}
}

// A work that is deleted by hand is created again under its own name, even if its agent removes the
// finalizer slowly.
func TestDeletedWorkIsCreatedAgainUnderItsName(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	const name = "addon-hello-deploy-0"
	key := client.ObjectKey{Namespace: "c1", Name: name}
	s.leaving(&workv1.ManifestWork{}, key)
	s.turns(3)
	var works workv1.ManifestWorkList
	if err := s.hub.List(t.Context(), &works, client.InNamespace("c1")); err != nil {
		t.Fatal(err)
	}
	if len(works.Items) != 1 || works.Items[0].DeletionTimestamp == nil {
		t.Errorf("the former one is waited for: %d works", len(works.Items))
	}
	if why, _ := s.plan().Why("c1"); why.Reason != "admitted: ManifestWork c1/addon-hello-deploy-0, which is being deleted, is not gone yet" {
		t.Errorf("why says %s %q", why.State, why.Reason)
	}
	former := works.Items[0].DeepCopy()
	former.Finalizers = nil
	s.update(former)
	s.settle()
	if back := s.works()["c1"]; back == nil || back.Name != name || back.DeletionTimestamp != nil {
		t.Errorf("it is back: %+v", back)
	}
}
