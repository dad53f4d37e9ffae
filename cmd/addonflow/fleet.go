package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/proposal"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/forecast"
)

// readFleet reads ManagedClusters, and the objects that decide which of them a placement selects, in the form of
// `kubectl get -o yaml`. Objects of other kinds are omitted. The path "" has no fleet.
func readFleet(path string) (*forecast.Known, error) {
	if path == "" {
		return nil, nil // without a file there is neither a fleet nor an error
	}
	var known forecast.Known
	text, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if err == nil {
		var objects []map[string]any
		if objects, err = objectsOf(text); err == nil {
			known, err = knownFleet(objects)
		}
	}
	if err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("cannot read --fleet=%s: %w", path, err)}
	}
	if len(known.Clusters) == 0 {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("cannot use --fleet=%s: there is no ManagedCluster", path)}
	}
	return &known, nil
}

// objectsOf returns the objects of a YAML or JSON text: documents, the items of Lists, and the
// elements of sequences.
func objectsOf(text []byte) ([]map[string]any, error) {
	var objects []map[string]any
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		var value any
		if err := yaml.Unmarshal(document, &value); err != nil {
			return nil, err
		}
		objects = append(objects, objectsIn(value, "", "")...)
	}
}

// objectsIn returns the objects of a value. In a list of one kind, in the form of the API server, the items have no
// version and kind.
func objectsIn(value any, version, kind string) []map[string]any {
	var objects []map[string]any
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			objects = append(objects, objectsIn(item, version, kind)...)
		}
	case map[string]any:
		o := unstructured.Unstructured{Object: value}
		if o.GetKind() == "" && kind != "" {
			o.SetAPIVersion(version)
			o.SetKind(kind)
		}
		if items, isList := value["items"]; isList && strings.HasSuffix(o.GetKind(), "List") {
			return objectsIn(items, o.GetAPIVersion(), strings.TrimSuffix(o.GetKind(), "List"))
		}
		objects = append(objects, value)
	}
	return objects
}

// knownFleet sorts objects by their kinds.
func knownFleet(objects []map[string]any) (forecast.Known, error) {
	var known forecast.Known
	decisions := map[v1alpha1.PlacementReference][]clusterv1beta1.PlacementDecision{}
	for _, object := range objects {
		var err error
		o := unstructured.Unstructured{Object: object}
		if o.GroupVersionKind().Group != clusterv1.GroupName {
			continue
		}
		switch o.GetKind() {
		case "ManagedCluster":
			known.Clusters, err = appended(known.Clusters, object)
		case "Placement":
			known.Observed, err = appended(known.Observed, object)
		case "PlacementDecision":
			ref := v1alpha1.PlacementReference{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1beta1.PlacementLabel]}
			decisions[ref], err = appended(decisions[ref], object)
		case "ManagedClusterSet":
			known.Sets, err = appended(known.Sets, object)
		case "ManagedClusterSetBinding":
			known.Bindings, err = appended(known.Bindings, object)
		}
		if err != nil {
			return known, err
		}
	}
	known.Decisions = decisionsAbout(decisions)
	return known, nil
}

func decisionsAbout(decisions map[v1alpha1.PlacementReference][]clusterv1beta1.PlacementDecision) []rollout.Placement {
	var out []rollout.Placement
	for ref, list := range decisions {
		out = append(out, rollout.Placement{Namespace: ref.Namespace, Name: ref.Name, Groups: addonrollout.DecisionGroups(list)})
	}
	return out
}

// hubFleet reads the fleet from a hub. Cluster sets are not read, because the decisions already depend on them. A
// placement without decisions selects from the sets that are bound to its namespace, as on the hub.
func hubFleet(ctx context.Context, hub client.Reader) (proposal.Fleet, error) {
	var clusters clusterv1.ManagedClusterList
	var placements clusterv1beta1.PlacementList
	var list clusterv1beta1.PlacementDecisionList
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	var addOns addonv1alpha1.ManagedClusterAddOnList
	for _, l := range []client.ObjectList{&clusters, &placements, &list, &bindings, &addOns} {
		if err := hub.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
			return proposal.Fleet{}, fmt.Errorf("cannot read the fleet: %w", err)
		}
	}
	decisions := map[v1alpha1.PlacementReference][]clusterv1beta1.PlacementDecision{}
	for _, d := range list.Items {
		ref := v1alpha1.PlacementReference{Namespace: d.Namespace, Name: d.Labels[clusterv1beta1.PlacementLabel]}
		decisions[ref] = append(decisions[ref], d)
	}
	installed := map[string]map[string]bool{}
	for i := range addOns.Items {
		name := addOns.Items[i].Name
		if installed[name] == nil {
			installed[name] = map[string]bool{}
		}
		installed[name][addOns.Items[i].Namespace] = true
	}
	return proposal.Fleet{Known: forecast.Known{
		Clusters: clusters.Items, Observed: placements.Items, Decisions: decisionsAbout(decisions), Bindings: bindings.Items, AllBindings: true,
	}, Installed: installed}, nil
}

func appended[T any](list []T, object map[string]any) ([]T, error) {
	var value T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &value); err != nil {
		o := unstructured.Unstructured{Object: object}
		return list, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return append(list, value), nil
}

// withDeclared is the fleet with the placements and bindings of cluster sets of a commit.
func withDeclared(fleet forecast.Known, objects []*unstructured.Unstructured) (forecast.Known, error) {
	plain := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		plain = append(plain, o.Object)
	}
	declared, err := knownFleet(plain)
	fleet.Declared = declared.Observed
	fleet.Bindings = slices.Concat(fleet.Bindings, declared.Bindings)
	return fleet, err
}
