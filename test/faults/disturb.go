package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/faults/oracle"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/forge"
	"github.com/addonflow/addonflow/test/hub"
)

// disturbance happens beside a step. It returns after its changes have ended.
type disturbance func(ctx context.Context, w *workload, step string) error

// seeds is how many runs a random class has.
const seeds = 20

// dice are those of a point and a step, so that the same name makes the same faults.
func dice(name, step string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + "\x00" + step)) // a hash refuses no write
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// pause waits, or returns the reason why not.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// between is a random duration.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// rarely is true in a third of the steps, and in the upgrade in any case, so that no point does nothing. Clients wait
// longer and longer, up to a minute, for a server that ends their watches all the time, and forget it only after two minutes.
func rarely(r *rand.Rand, step string) bool { return r.IntN(3) == 0 || step == upgradeStep }

// pick chooses one of a list by a name. If the list grows, a choice stays, or is one of the new elements.
func pick[T any](name string, of []T, called func(T) string) T {
	var chosen T
	best := uint64(0)
	for _, one := range of {
		if n := dice(name, called(one)).Uint64(); n >= best {
			chosen, best = one, n
		}
	}
	return chosen
}

// itself is the name of a name.
func itself(name string) string { return name }

// twins are two operators without leader election, whose caches lag at random.
func twins(r *reference) []point {
	var all []point
	for seed := range seeds {
		name := fmt.Sprintf("two operators, seed %d", seed+1)
		all = append(all, point{name: name, class: "two operators", operators: 2, disturb: func(ctx context.Context, w *workload, step string) error {
			dice := dice(name, step)
			for i := range 3 {
				resource := pick(fmt.Sprint(name, step, i), r.Watched, itself)
				w.stroke()
				w.api.Freeze(resource)
				err := pause(ctx, between(dice, 200*time.Millisecond, 2*time.Second))
				w.api.Thaw(resource)
				if err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return all
}

// watches are caches that are old, that miss what was in between, or that are read again.
func watches(r *reference) []point {
	// stale is how long a cache is old in each step.
	const stale = 4 * time.Second
	var all []point
	for _, resource := range r.Watched {
		all = append(all,
			point{name: "stale cache of " + resource, class: "stale caches", disturb: func(ctx context.Context, w *workload, _ string) error {
				w.stroke()
				w.api.Freeze(resource)
				defer w.api.Thaw(resource)
				return pause(ctx, stale)
			}},
			point{name: "unobserved changes of " + resource, class: "watch 410", disturb: func(ctx context.Context, w *workload, step string) error {
				if !rarely(dice("unobserved changes of "+resource, step), step) {
					return nil
				}
				w.stroke()
				w.api.Freeze(resource)
				defer w.api.Thaw(resource)
				err := pause(ctx, stale)
				w.api.Gone(resource)
				return err
			}},
		)
	}
	return append(all,
		point{name: "late events", class: "stale caches", disturb: func(_ context.Context, w *workload, step string) error {
			w.stroke()
			for _, resource := range r.Watched {
				w.api.Delay(resource, between(dice("late events of "+resource, step), 0, 600*time.Millisecond))
			}
			return nil
		}},
		point{name: "410 on every watch", class: "watch 410", disturb: func(ctx context.Context, w *workload, step string) error {
			dice := dice("410 on every watch", step)
			if !rarely(dice, step) {
				return nil
			}
			for range 2 {
				if err := pause(ctx, between(dice, 0, 2*time.Second)); err != nil {
					return err
				}
				w.stroke()
				for _, resource := range r.Watched {
					w.api.Gone(resource)
				}
			}
			return nil
		}},
	)
}

// servers are an API server and an etcd that end, or stand still.
func servers() []point {
	var all []point
	for _, server := range []hub.Server{hub.APIServer, hub.Etcd} {
		for seed := range 5 {
			name := fmt.Sprintf("%s killed, seed %d", server, seed+1)
			all = append(all, point{name: name, class: "API server and etcd", disturb: func(ctx context.Context, w *workload, step string) error {
				dice := dice(name, step)
				if !rarely(dice, step) {
					return nil
				}
				if err := pause(ctx, between(dice, 0, 4*time.Second)); err != nil {
					return err
				}
				w.stroke()
				return w.Hub.Crash(ctx, server, between(dice, 0, 3*time.Second))
			}})
			slow := fmt.Sprintf("%s frozen, seed %d", server, seed+1)
			all = append(all, point{name: slow, class: "API server and etcd", disturb: func(ctx context.Context, w *workload, step string) error {
				dice := dice(slow, step)
				for range 2 {
					if err := pause(ctx, between(dice, 0, 2*time.Second)); err != nil {
						return err
					}
					w.stroke()
					if err := w.Hub.Freeze(server); err != nil {
						return err
					}
					err := pause(ctx, between(dice, time.Second, 4*time.Second))
					if err := errors.Join(w.Hub.Thaw(server), err); err != nil {
						return err
					}
				}
				return nil
			}})
		}
	}
	for seed := range 5 {
		late := fmt.Sprintf("%s answers late, seed %d", hub.APIServer, seed+1)
		all = append(all, point{name: late, class: "API server and etcd", disturb: func(ctx context.Context, w *workload, step string) error {
			w.stroke()
			w.api.Late(between(dice(late, step), 100*time.Millisecond, 2*time.Second))
			defer w.api.Late(0)
			return pause(ctx, 4*time.Second)
		}})
	}
	for seed := range 5 {
		name := fmt.Sprintf("etcd full, seed %d", seed+1)
		all = append(all, point{name: name, class: "API server and etcd", disturb: func(ctx context.Context, w *workload, step string) error {
			dice := dice(name, step)
			if err := pause(ctx, between(dice, 0, 2*time.Second)); err != nil {
				return err
			}
			w.stroke()
			if err := w.Hub.Fill(ctx); err != nil {
				return err
			}
			err := pause(ctx, between(dice, time.Second, 4*time.Second))
			return errors.Join(w.Hub.Empty(context.WithoutCancel(ctx)), err)
		}})
	}
	return all
}

// outside are faults of the Git server and the forge, for four seconds in each step.
func outside() []point {
	faults := []struct {
		name       string
		begin, end func(*workload)
	}{
		{"Git answers 500", func(w *workload) { w.Git.FailWith(http.StatusInternalServerError) }, heal},
		{"Git answers 404", func(w *workload) { w.Git.FailWith(http.StatusNotFound) }, heal},
		{"Git answers 401", func(w *workload) { w.Git.FailWith(http.StatusUnauthorized) }, heal},
		{"Git answers 429", func(w *workload) { w.Git.FailWith(http.StatusTooManyRequests) }, heal},
		{"Git hangs", func(w *workload) { w.Git.Hang() }, heal},
		{"Git is slow", func(w *workload) { w.Git.Throttle(200) }, heal},
		{"gates' servers answer 500", func(w *workload) { w.measures.fail(measureFails) }, healGates},
		{"gates' servers answer 401", func(w *workload) { w.measures.fail(measureRefuses) }, healGates},
		{"gates' servers hang", func(w *workload) { w.measures.fail(measureHangs) }, healGates},
		{"gates' servers answer garbage", func(w *workload) { w.measures.fail(measureGarbage) }, healGates},
		{"gates' servers have no data", func(w *workload) { w.measures.fail(measureNoData) }, healGates},
		{"the forge is down", func(w *workload) { w.note(w.Forge.Down()) }, func(w *workload) { w.note(w.Forge.Up()) }},
	}
	for _, kind := range []forge.FaultKind{
		forge.InternalError, forge.Unavailable, forge.AcceptedThenError, forge.AcceptedThenCut, forge.TooManyRequests, forge.SecondaryLimit,
		forge.PrimaryLimit, forge.Forbidden, forge.Garbage, forge.Hang,
	} {
		faults = append(faults, struct {
			name       string
			begin, end func(*workload)
		}{
			"forge " + string(kind),
			func(w *workload) { w.Forge.Set(forge.Fault{Kind: kind, RetryAfter: time.Second}) }, func(w *workload) { w.Forge.Set(forge.Fault{}) },
		})
	}
	var all []point
	for _, f := range faults {
		all = append(all, point{name: f.name, class: "Git, forge and gates", disturb: func(ctx context.Context, w *workload, _ string) error {
			w.stroke()
			f.begin(w)
			err := pause(ctx, 4*time.Second)
			f.end(w)
			return err
		}})
	}
	return all
}

func heal(w *workload) { w.Git.Heal() }

func healGates(w *workload) { w.measures.heal() }

// flapping is an agent that reports every other time that its content does not run.
const flapping = "flapping"

// agents are silent, lie or flap for a while in each step, on one cluster or all.
func agents() []point {
	kinds := []struct {
		name       string
		begin, end func(*fleet.Fleet, string)
	}{
		{"silent", (*fleet.Fleet).Silence, (*fleet.Fleet).Speak},
		{"lying", (*fleet.Fleet).Lie, (*fleet.Fleet).Honest},
		{"outdated", (*fleet.Fleet).Outdate, (*fleet.Fleet).Update},
		{flapping, (*fleet.Fleet).Flap, (*fleet.Fleet).Steady},
	}
	var all []point
	for _, kind := range kinds {
		// One cluster of each stage, and all: those of a stage are alike.
		for _, cluster := range append(slices.Clone(clusterNames()[:2]), clusterNames()[3], fleet.AllClusters) {
			of := "on " + cluster
			victims := []string{cluster}
			if cluster == fleet.AllClusters {
				of, victims = "everywhere", clusterNames()
			}
			all = append(all, point{name: "agent " + kind.name + " " + of, class: "agents", flaps: kind.name == flapping, disturb: func(ctx context.Context, w *workload, step string) error {
				if kind.name == "lying" && step == revertStep {
					return nil // the broken content runs: to lie about it is to say that it recovered
				}
				w.stroke()
				for _, v := range victims {
					kind.begin(w.Fleet, v)
				}
				err := pause(ctx, 4*time.Second)
				for _, v := range victims {
					kind.end(w.Fleet, v)
				}
				return err
			}})
		}
	}
	return all
}

// mixed are runs in each of whose steps another fault of these points happens.
func mixed(of []point) []point {
	of = slices.DeleteFunc(slices.Clone(of), func(p point) bool { return p.disturb == nil })
	var all []point
	for seed := range seeds {
		name := fmt.Sprintf("another fault in each step, seed %d", seed+1)
		p := point{name: name, class: "mixed", repeats: 100, shrinks: true, restores: true, forgets: []string{alpha, beta}, forges: true, flaps: true, leaves: true, prunes: true, disturb: func(ctx context.Context, w *workload, step string) error {
			return pick(name+step, of, func(p point) string { return p.name }).disturb(ctx, w, step)
		}}
		for _, o := range of {
			p.gone = append(p.gone, o.gone...)
		}
		all = append(all, p)
	}
	return all
}

// edit is a change by hand.
type edit struct {
	name string
	kind schema.GroupVersionKind
	// where is the object; without a name: each of the add-on's, which is beta's if it has none.
	where client.ObjectKey
	of    string
	// patch is a merge patch; empty: the object is deleted.
	patch string
	// status: the patch is of the status.
	status bool
	// loses: the operator forgets what it posted and may post it again.
	repeats int
	// forgets: the status is a rollout's, and lost, or the past has one more rollout: content without its quarantine is
	// rolled out and back again. forges: it says that the rollout failed. atGate: the rollout waits for
	// an approval.
	forgets, forges, atGate bool
	// in are the steps, nil: all but the first and the last ones. after waits until the object is as it is to be.
	in    []string
	after func(context.Context, *workload) error
	// refused: the API server refuses the change, since the object never changes again.
	refused bool
	// undo is how many writes undo the edit, by kind; nil: one of the object.
	undo map[string]int
}

// noCommit is a commit that the repository does not have.
const noCommit = "main@sha1:0000000000000000000000000000000000000000"

// kindVersion is the version of most kinds.
const kindVersion = "v1alpha1"

// edits are hand edits of everything that the operator writes, in the middle of each step.
func edits() []point {
	var (
		addOn    = schema.GroupVersionKind{Group: "addon.open-cluster-management.io", Version: kindVersion, Kind: "ManagedClusterAddOn"}
		owner    = schema.GroupVersionKind{Group: addOn.Group, Version: addOn.Version, Kind: "ClusterManagementAddOn"}
		tmpl     = schema.GroupVersionKind{Group: addOn.Group, Version: addOn.Version, Kind: "AddOnTemplate"}
		work     = schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"}
		rollout  = v1alpha1.GroupVersion.WithKind("AddOnRollout")
		source   = v1alpha1.GroupVersion.WithKind("AddOnSource")
		revision = v1alpha1.GroupVersion.WithKind("AddOnRevision")
		order    = v1alpha1.GroupVersion.WithKind("AddOnOrder")
		approval = v1alpha1.GroupVersion.WithKind("AddOnApproval")
		binding  = schema.GroupVersionKind{Group: rbacv1.GroupName, Version: "v1", Kind: "RoleBinding"}
	)
	first := clusterNames()[0]
	global := client.ObjectKey{Name: beta}
	in := func(namespace, name string) client.ObjectKey {
		return client.ObjectKey{Namespace: namespace, Name: name}
	}
	const betaWork = "addon-beta-deploy-0"
	betaBinding := registration.BindingName(beta, registration.Role{Kind: "ClusterRole", Name: betaReader})
	const addOns, owners = "managedclusteraddons", "clustermanagementaddons"
	// A rollout whose status is lost notes again that its content succeeded.
	lost := map[string]int{"addonrollouts": 1, "addonrevisions": 1}
	// A ManagedClusterAddOn takes its RoleBinding with it, which the operator deletes if it is first. OCM may have acted
	// on an owner without the fence, so that the operator takes it over: the fence first, then the rest. An owner that
	// is deleted waits for the operator's finalizer, and is then made anew.
	list := []edit{
		{name: "content of a work", kind: work, where: in(first, betaWork), patch: `{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"edited","namespace":"default"}}]}}}`},
		{name: "digest of a work", kind: work, where: in(first, betaWork), patch: `{"metadata":{"annotations":{"addonflow.io/digest":"` + oracle.Edited + `"}}}`},
		{name: "revision of a work", kind: work, where: in(first, betaWork), patch: `{"metadata":{"annotations":{"addonflow.io/revision":null}}}`},
		{name: "labels of a work", kind: work, where: in(first, betaWork), patch: `{"metadata":{"labels":{"open-cluster-management.io/addon-name":null}}}`},
		{name: "a work deleted", kind: work, where: in(first, betaWork)},
		{name: "labels of an add-on", kind: addOn, where: in(first, beta), patch: `{"metadata":{"labels":{"addonflow.io/managed-by":null}}}`},
		{name: "status of an add-on", kind: addOn, where: in(first, beta), patch: `{"status":{"configReferences":null,"healthCheck":null}}`, status: true},
		{name: "an add-on deleted", kind: addOn, where: in(first, beta), undo: map[string]int{addOns: 1, "rolebindings": 2}},
		{name: "spec of the owner", kind: owner, where: global, patch: `{"spec":{"addOnMeta":{"displayName":"edited"}}}`},
		{name: "fence of the owner", kind: owner, where: global, patch: `{"metadata":{"annotations":{"addon.open-cluster-management.io/lifecycle":null}}}`, undo: map[string]int{owners: 2}},
		{name: "finalizers of the owner", kind: owner, where: global, patch: `{"metadata":{"finalizers":null}}`},
		{name: "an owner deleted", kind: owner, where: global, undo: map[string]int{owners: 2}},
		{name: "a template", kind: tmpl, where: global, patch: `{"spec":{"agentSpec":{"workload":{"manifests":[]}}}}`},
		{name: "a template deleted", kind: tmpl, where: global},
		{name: "subjects of a binding", kind: binding, where: in(first, betaBinding), patch: `{"subjects":[]}`},
		{name: "a binding deleted", kind: binding, where: in(first, betaBinding)},
		{name: "spec of a rollout", kind: rollout, where: in(demo.Namespace, beta), patch: `{"spec":{"revisionHistoryLimit":3}}`},
		{name: "target of a rollout", kind: rollout, where: in(demo.Namespace, beta), patch: `{"spec":{"target":{"commit":"` + noCommit + `"}}}`},
		{name: "phase of a rollout", kind: rollout, where: in(demo.Namespace, beta), patch: `{"status":{"phase":"Failed","message":"edited","outcome":"failure"}}`, status: true, forges: true},
		{name: "finalizers of a rollout", kind: rollout, where: in(demo.Namespace, beta), patch: `{"metadata":{"finalizers":null}}`},
		{name: "annotations of a rollout", kind: rollout, where: in(demo.Namespace, beta), patch: `{"metadata":{"annotations":null}}`},
		{name: "a rollout's status lost", kind: rollout, where: in(demo.Namespace, beta), patch: `{"status":null}`, status: true, repeats: 100, forgets: true, undo: lost},
		{name: "a source's status lost", kind: source, where: in(demo.Namespace, demo.SourceName), patch: `{"status":null}`, status: true, repeats: 100},
		{name: "finalizers of a source", kind: source, where: in(demo.Namespace, demo.SourceName), patch: `{"metadata":{"finalizers":null}}`},
		{name: "success of revisions", kind: revision, where: in(demo.Namespace, ""), patch: `{"metadata":{"annotations":{"addonflow.io/succeeded-at":null}}}`},
		{name: "annotations of revisions", kind: revision, where: in(demo.Namespace, ""), patch: `{"metadata":{"annotations":null}}`},
		{name: "revisions deleted", kind: revision, where: in(demo.Namespace, "")},
		{name: "status of a rollout at a gate lost", kind: rollout, where: in(demo.Namespace, alpha), patch: `{"status":null}`, status: true, repeats: 100, forgets: true, atGate: true, undo: lost},
		{name: "ledger of a rollout at a gate lost", kind: rollout, where: in(demo.Namespace, alpha), patch: `{"status":{"ledger":null}}`, status: true, repeats: 100, forgets: true, atGate: true},
		{name: "stages of a rollout at a gate lost", kind: rollout, where: in(demo.Namespace, alpha), patch: `{"status":{"stages":null}}`, status: true, repeats: 100, atGate: true},
		{name: "phase of a rollout at a gate", kind: rollout, where: in(demo.Namespace, alpha), patch: `{"status":{"phase":"Failed","message":"edited","outcome":"failure"}}`, status: true, forges: true, atGate: true},
		{name: "override of a rollout lost", kind: rollout, where: in(demo.Namespace, alpha), patch: `{"status":{"override":null}}`, status: true, in: []string{"rollback", "recall"}, after: overridden},
		{name: "quarantine of a revision", kind: revision, where: in(demo.Namespace, ""), of: alpha, patch: `{"metadata":{"annotations":{"addonflow.io/quarantined":null}}}`, forgets: true, in: []string{"rollback"}, after: overridden},
		{name: "owner of a work", kind: work, where: in(first, "addon-alpha-deploy-0"), patch: `{"metadata":{"ownerReferences":null}}`},
		{name: "owner of an add-on", kind: addOn, where: in(first, alpha), patch: `{"metadata":{"ownerReferences":null}}`},
		{name: "owner of a binding", kind: binding, where: in(first, betaBinding), patch: `{"metadata":{"ownerReferences":null}}`},
		{name: "an order deleted", kind: order, where: in(demo.Namespace, alpha+"-promote-1"), in: []string{"good upgrade"}},
		{name: "approvals deleted after their use", kind: approval, where: in(demo.Namespace, ""), of: alpha, in: []string{upgradeStep, "good upgrade"}, after: admitted},
		{name: "answer of an order", kind: order, where: in(demo.Namespace, alpha+"-promote-1"), patch: `{"status":null}`, status: true, refused: true},
	}
	var all []point
	for _, e := range list {
		p := point{name: "hand edit: " + e.name, class: "hand edits", repeats: e.repeats, forges: e.forges, prunes: e.kind == revision && e.of == ""}
		if e.forgets {
			p.forgets = []string{cmp.Or(e.of, e.where.Name)}
		}
		if e.atGate {
			p.atGate = e.make
		} else {
			p.disturb = e.disturb
		}
		all = append(all, p)
	}
	return all
}

// disturb edits in the middle of a step.
func (e edit) disturb(ctx context.Context, w *workload, step string) error {
	if e.in != nil && !slices.Contains(e.in, step) || slices.Contains([]string{"begin", "install", "removal"}, step) {
		return nil // it is not there yet, or it is not needed there
	}
	if e.after != nil {
		if err := e.after(ctx, w); err != nil {
			return err
		}
	} else if err := pause(ctx, between(dice(e.name, step), 0, 5*time.Second)); err != nil {
		return err
	}
	return e.make(ctx, w)
}

// overridden waits until alpha runs other content than Git declares.
func overridden(ctx context.Context, w *workload) error {
	_, err := w.rollout(ctx, func(r *v1alpha1.AddOnRollout) bool { return r.Status.Override != nil })
	return err
}

// admitted waits until the approval of alpha's newest commit has let a cluster pass.
func admitted(ctx context.Context, w *workload) error {
	before, err := w.rollout(ctx, func(*v1alpha1.AddOnRollout) bool { return true })
	if err != nil {
		return err
	}
	_, err = w.rollout(ctx, func(r *v1alpha1.AddOnRollout) bool {
		i := slices.IndexFunc(r.Status.Stages, func(s v1alpha1.StageStatus) bool { return s.Name == earlyStage })
		return r.Status.Target != nil && before.Status.Target != nil && r.Status.Target.Commit != before.Status.Target.Commit && i >= 0 &&
			approvalState(r) == v1alpha1.GatePassed && r.Status.Stages[i].Counts.InFlight+r.Status.Stages[i].Counts.Updated > 0
	})
	return err
}

// make edits by hand. An object that is to be deleted is marked first, so that the history shows
// that it may go.
func (e edit) make(ctx context.Context, w *workload) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(e.kind)
	o.SetNamespace(e.where.Namespace)
	o.SetName(e.where.Name)
	if e.where.Name != "" {
		return e.makeOn(ctx, w, o)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(e.kind.GroupVersion().WithKind(e.kind.Kind + "List"))
	err := w.Client.List(ctx, list, client.InNamespace(e.where.Namespace))
	for i := range list.Items {
		o := &list.Items[i]
		rollout, _, _ := unstructured.NestedString(o.Object, "spec", "rollout")
		if of := cmp.Or(e.of, beta); o.GetLabels()[v1alpha1.AddOnLabel] == of || rollout == of {
			err = errors.Join(err, e.makeOn(ctx, w, o))
		}
	}
	return err
}

func (e edit) makeOn(ctx context.Context, w *workload, o *unstructured.Unstructured) error {
	undo := e.undo
	if undo == nil {
		undo = map[string]int{kindOf(e.kind): 1}
	}
	w.edited(undo)
	patch := e.patch
	if patch == "" {
		patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, oracle.GivenUp)
	}
	raw := client.RawPatch("application/merge-patch+json", []byte(patch))
	var err error
	if e.status {
		if err = w.Client.Status().Patch(ctx, o, raw); e.refused && apierrors.IsInvalid(err) {
			err = nil
		}
	} else if err = w.Client.Patch(ctx, o, raw); err == nil && e.patch == "" {
		err = w.Client.Delete(ctx, o)
	}
	if err == nil {
		w.stroke() // an edit of an object that is not there is none
	}
	return client.IgnoreNotFound(err)
}

// kindOf is the kind in the account of writes.
func kindOf(kind schema.GroupVersionKind) string { return strings.ToLower(kind.Kind) + "s" }
