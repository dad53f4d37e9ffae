package pageserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/dashboard"
	"github.com/addonflow/addonflow/show"
)

// Resources that pages show.
const (
	rolloutsResource  = "addonrollouts"
	sourcesResource   = "addonsources"
	revisionsResource = "addonrevisions"
	ordersResource    = "addonorders"
)

func ours(resource, namespace, name string) Access {
	return Access{v1alpha1.GroupVersion.Group, resource, namespace, name}
}

// clusterRights are the rights to read the objects that explain a cluster's state; "": of all clusters.
func clusterRights(cluster string) []Access {
	return []Access{
		{clusterv1.GroupName, "managedclusters", "", cluster},
		{addonv1alpha1.GroupName, "managedclusteraddons", cluster, ""},
		{workv1.GroupName, "manifestworks", cluster, ""},
	}
}

// must returns a refusal unless the viewer has every right.
func (r *request) must(rights ...Access) error {
	missing, err := r.missing(rights...)
	if err != nil || missing == "" {
		return err
	}
	return &refusal{code: http.StatusForbidden, title: "Not allowed", text: "You may not get " + missing + "."}
}

// missing names the first right that the viewer does not have; "": none.
func (r *request) missing(rights ...Access) (string, error) {
	for _, a := range rights {
		ok, err := r.viewer.May(r.Context(), a)
		if err != nil {
			return "", err
		}
		if !ok {
			return a.String(), nil
		}
	}
	return "", nil
}

// String names the objects.
func (a Access) String() string {
	text := a.Resource
	if a.Name != "" {
		text += " " + a.Name
	}
	switch {
	case a.Namespace != "":
		return text + " in namespace " + a.Namespace
	case a.Name == "" && a.Resource != "managedclusters":
		return text + " in all namespaces"
	}
	return text
}

// optional reads an object without which a page can still be shown; false: it does not exist, or the viewer may not
// get it.
func (s *Server) optional(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	err := s.Hub.Get(ctx, key, into)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}

// object reads the rollout or source of the address.
func (s *Server) object(r *request, resource string, into client.Object) error {
	if err := named(r.Request, "namespace", "name"); err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if err := r.must(ours(resource, key.Namespace, key.Name)); err != nil {
		return err
	}
	if s.Watched != "" && key.Namespace != s.Watched {
		return &refusal{code: http.StatusNotFound, title: "Not found", text: "These pages show the rollouts and sources of namespace " + s.Watched + " only."}
	}
	return s.Hub.Get(r.Context(), key, into)
}

// subject reads the rollout of the address, and its source.
func (s *Server) subject(r *request) (dashboard.Subject, error) {
	subject := dashboard.Subject{Rollout: &v1alpha1.AddOnRollout{}, Now: time.Now()}
	if err := s.object(r, rolloutsResource, subject.Rollout); err != nil || subject.Rollout.Spec.Target == nil {
		return subject, err
	}
	if err := s.orders(r, &subject); err != nil {
		return subject, err
	}
	key := client.ObjectKey{Namespace: subject.Rollout.Namespace, Name: subject.Rollout.Spec.Target.Source}
	if missing, err := r.missing(ours(sourcesResource, key.Namespace, key.Name)); err != nil || missing != "" {
		return subject, err
	}
	source := &v1alpha1.AddOnSource{}
	found, err := s.optional(r.Context(), key, source)
	if found {
		subject.Source = source
	}
	return subject, err
}

// orders adds the orders without an answer of the operator, if the viewer may list them.
func (s *Server) orders(r *request, subject *dashboard.Subject) error {
	missing, err := r.missing(ours(ordersResource, subject.Rollout.Namespace, ""))
	if err != nil || missing != "" {
		return err
	}
	var orders v1alpha1.AddOnOrderList
	if err := s.Hub.List(r.Context(), &orders, client.InNamespace(subject.Rollout.Namespace)); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	subject.Rollout = show.WithOrders(subject.Rollout, orders.Items)
	return nil
}

// plan adds the plan, if the viewer may get the objects from which it is made.
func (s *Server) plan(r *request, subject *dashboard.Subject) (Inspection, error) {
	ro := subject.Rollout
	if ro.Spec.Target == nil {
		subject.Unplanned = "The source has not declared the add-on yet."
		return Inspection{}, nil
	}
	missing, err := r.missing(clusterRights("")...)
	if err != nil {
		return Inspection{}, err
	}
	if missing != "" {
		subject.Unplanned = "Single clusters are not shown: you may not get " + missing + "."
		return Inspection{}, nil
	}
	inspection, err := s.inspect(r.Context(), client.ObjectKeyFromObject(ro), ro.ResourceVersion)
	switch {
	case r.Context().Err() != nil:
		return Inspection{}, r.Context().Err()
	case apierrors.IsForbidden(err):
		subject.Unplanned = "Single clusters are not shown: the hub does not let you list what they are planned from."
		return Inspection{}, nil
	case err != nil:
		subject.Unplanned = "Single clusters are not shown: the rollout cannot be planned now. Its message above says why if the operator cannot either."
		return Inspection{}, nil //nolint:nilerr // the page has the error instead
	}
	subject.Plan, subject.Unplanned = &inspection.Plan, inspection.Note
	return inspection, nil
}

// change adds the change on one cluster by the content of the page.
func (s *Server) change(r *request, subject *dashboard.Subject, inspection Inspection) error {
	content := dashboard.Content(subject.Rollout)
	if subject.Plan == nil || content == nil || inspection.Change == nil {
		return nil
	}
	ro := subject.Rollout
	missing, err := r.missing(ours(revisionsResource, ro.Namespace, ""), Access{addonv1alpha1.GroupName, "addondeploymentconfigs", "", ""})
	if err != nil {
		return err
	}
	if missing != "" {
		subject.Unchanged = "What changes is not shown: you may not get " + missing + "."
		return nil
	}
	if subject.Change, err = inspection.Change(r.Context(), *content); err != nil {
		subject.Unchanged = "What changes is not shown: the content before, or the one after it, is not kept or cannot be rendered."
		return nil //nolint:nilerr // the page has the error, and all other parts
	}
	return nil
}

// rollout is the page of a rollout at a commit.
func (s *Server) rollout(r *request) (any, error) {
	subject, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	ro := subject.Rollout
	newest := dashboard.CurrentCommit(ro)
	asked := r.PathValue("commit")
	if asked == "" || asked == "-" {
		if newest != "" {
			return nil, &redirection{dashboard.RolloutPath(ro.Namespace, ro.Name, newest)}
		}
	} else {
		subject.Asked = asked
		current, past := dashboard.Concerns(ro, subject.Source, asked)
		switch {
		case past >= 0:
			return dashboard.NewPast(r.frame, subject, past), nil
		case !current:
			return nil, &refusal{
				code: http.StatusNotFound, title: "No longer kept",
				text: fmt.Sprintf("This commit is neither rolled out now nor among the last %d rollouts of %s, which are kept.", len(ro.Status.History), ro.Name),
				to:   dashboard.Link{Text: "The current rollout", To: dashboard.RolloutPath(ro.Namespace, ro.Name, "")},
			}
		}
	}
	inspection, err := s.plan(r, &subject)
	if err == nil {
		err = s.change(r, &subject, inspection)
	}
	if err != nil {
		return nil, err
	}
	return dashboard.NewRollout(r.frame, subject), nil
}

func (s *Server) clusters(r *request) (any, error) {
	subject, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	if _, err := s.plan(r, &subject); err != nil {
		return nil, err
	}
	if subject.Plan == nil {
		return nil, &refusal{code: http.StatusForbidden, title: "Not shown", text: subject.Unplanned}
	}
	query := r.URL.Query()
	return dashboard.NewClusters(r.frame, subject, dashboard.ClustersOf{Stage: query.Get("stage"), State: query.Get("state"), From: query.Get("from")}), nil
}

// fleet is the page of all objects that the viewer may get.
func (s *Server) fleet(r *request) (any, error) {
	rollouts, sources, notes, err := s.everything(r)
	if err != nil {
		return nil, err
	}
	return dashboard.NewFleet(r.frame, rollouts, sources, notes, time.Now()), nil
}

// everything lists the rollouts and sources of the namespaces in which the viewer may get them. The rollouts have the
// orders without an answer of the operator, if the viewer may list them. Orders are read first, so that no rollout is
// older than the answers.
func (s *Server) everything(r *request) (rollouts []v1alpha1.AddOnRollout, sources []v1alpha1.AddOnSource, notes []string, err error) {
	var orders v1alpha1.AddOnOrderList
	if err := s.list(r.Context(), &orders); err != nil && !apierrors.IsForbidden(err) {
		return nil, nil, nil, err
	}
	var allRollouts v1alpha1.AddOnRolloutList
	if err := s.list(r.Context(), &allRollouts); err != nil {
		return nil, nil, nil, err
	}
	var allSources v1alpha1.AddOnSourceList
	switch err := s.list(r.Context(), &allSources); {
	case apierrors.IsForbidden(err):
		notes = append(notes, "Sources are not shown: the hub does not let you list them.")
	case err != nil:
		return nil, nil, nil, err
	}
	allowed := func(resource, namespace string) bool {
		// With a right to all namespaces, the right to each of them need not be checked.
		for _, in := range []string{"", namespace} {
			ok, asked := r.viewer.May(r.Context(), ours(resource, in, ""))
			if asked != nil {
				err = asked
			}
			if ok {
				return true
			}
		}
		return false
	}
	rollouts = slices.DeleteFunc(allRollouts.Items, func(ro v1alpha1.AddOnRollout) bool { return err != nil || !allowed(rolloutsResource, ro.Namespace) })
	sources = slices.DeleteFunc(allSources.Items, func(so v1alpha1.AddOnSource) bool { return err != nil || !allowed(sourcesResource, so.Namespace) })
	open := slices.DeleteFunc(orders.Items, func(o v1alpha1.AddOnOrder) bool {
		return o.Status.State != "" || err != nil || !allowed(ordersResource, o.Namespace)
	})
	for i := range rollouts {
		rollouts[i] = *show.WithOrders(&rollouts[i], open)
	}
	if len(rollouts) == 0 && len(allRollouts.Items) > 0 {
		notes = append(notes, "You may not list the rollouts of any namespace.")
	}
	if len(sources) == 0 && len(allSources.Items) > 0 {
		notes = append(notes, "You may not list the sources of any namespace.")
	}
	return rollouts, sources, notes, err
}

// list lists all objects of a kind, or those of one namespace if the credentials may not list all.
func (s *Server) list(ctx context.Context, into client.ObjectList) error {
	err := s.Hub.List(ctx, into)
	if apierrors.IsForbidden(err) && s.Namespace != "" {
		return s.Hub.List(ctx, into, client.InNamespace(s.Namespace))
	}
	return err
}

func (s *Server) source(r *request) (any, error) {
	source := &v1alpha1.AddOnSource{}
	if err := s.object(r, sourcesResource, source); err != nil {
		return nil, err
	}
	return dashboard.NewSource(r.frame, source), nil
}

// cluster is the page of a cluster, with every add-on that it has.
func (s *Server) cluster(r *request) (any, error) {
	if err := named(r.Request, "cluster"); err != nil {
		return nil, err
	}
	name := r.PathValue("cluster")
	if err := r.must(clusterRights(name)...); err != nil {
		return nil, err
	}
	rollouts, err := s.rolloutsOn(r, name)
	if err == nil && len(rollouts) == 0 {
		err = s.Hub.Get(r.Context(), client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	}
	if err != nil {
		return nil, err
	}
	var on []dashboard.On
	var notes []string
	for i := range rollouts {
		ro := &rollouts[i]
		inspection, err := s.inspect(r.Context(), client.ObjectKeyFromObject(ro), ro.ResourceVersion)
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		if err != nil {
			notes = append(notes, ro.Namespace+"/"+ro.Name+" cannot be planned now, or you lack the rights.")
			continue
		}
		if c, ok := inspection.Plan.Why(name); ok {
			on = append(on, dashboard.On{Rollout: ro, Plan: c})
		}
	}
	return dashboard.NewCluster(r.frame, name, on, notes), nil
}

// rolloutsOn are the rollouts of the add-ons of a cluster that the viewer may get.
func (s *Server) rolloutsOn(r *request, cluster string) ([]v1alpha1.AddOnRollout, error) {
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := s.Hub.List(r.Context(), &addOns, client.InNamespace(cluster)); err != nil {
		return nil, err
	}
	var rollouts v1alpha1.AddOnRolloutList
	if err := s.list(r.Context(), &rollouts); err != nil {
		return nil, err
	}
	var failed error
	return slices.DeleteFunc(rollouts.Items, func(ro v1alpha1.AddOnRollout) bool {
		there := slices.ContainsFunc(addOns.Items, func(a addonv1alpha1.ManagedClusterAddOn) bool { return a.Name == ro.Name })
		if !there || ro.Spec.Target == nil || failed != nil {
			return true
		}
		missing, err := r.missing(ours(rolloutsResource, ro.Namespace, ro.Name))
		failed = err
		return err != nil || missing != ""
	}), failed
}

// version identifies the content of a page, so that a change is noticed. The viewer needs the same rights as for the
// page.
func (s *Server) version(r *request, path string) (string, error) {
	parts := strings.Split(path, "/")
	var versions []string
	add := func(o client.Object) { versions = append(versions, string(o.GetUID())+o.GetResourceVersion()) }
	if len(parts) >= 3 {
		r.SetPathValue("namespace", parts[1])
		r.SetPathValue("name", parts[2])
	}
	switch {
	case parts[0] == "rollouts" && len(parts) >= 3:
		subject, err := s.subject(r)
		if err != nil {
			return "", err
		}
		add(subject.Rollout)
		for _, order := range subject.Rollout.Status.CarriedOut {
			versions = append(versions, order.Name)
		}
		if subject.Source != nil {
			add(subject.Source)
		}
	case parts[0] == "sources" && len(parts) >= 3:
		source := &v1alpha1.AddOnSource{}
		if err := s.object(r, sourcesResource, source); err != nil {
			return "", err
		}
		add(source)
	case parts[0] == "clusters" && len(parts) == 2:
		if err := r.must(clusterRights(parts[1])...); err != nil {
			return "", err
		}
		rollouts, err := s.rolloutsOn(r, parts[1])
		if err != nil {
			return "", err
		}
		for i := range rollouts {
			add(&rollouts[i])
		}
	case path == "":
		rollouts, sources, _, err := s.everything(r)
		if err != nil {
			return "", err
		}
		for i := range rollouts {
			add(&rollouts[i])
			for _, order := range rollouts[i].Status.CarriedOut {
				versions = append(versions, order.Name)
			}
		}
		for i := range sources {
			add(&sources[i])
		}
	default:
		return "", &refusal{code: http.StatusNotFound, title: "Not found", text: "This page does not change."}
	}
	slices.Sort(versions) // lists have no defined order
	return strings.Join(versions, " "), nil
}
