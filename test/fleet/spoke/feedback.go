package spoke

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/jsonpath"
	workv1 "open-cluster-management.io/api/work/v1"
)

// feedbackCondition is OCM's name of the condition; its API module has none.
const feedbackCondition = "StatusFeedbackSynced"

// reader evaluates feedback rules. It keeps parsed paths, because a fleet reads the same few on
// a thousand clusters. Parsed paths have state, so a reader serves one caller at a time.
type reader struct {
	paths map[string]*jsonpath.JSONPath
}

func newReader() *reader { return &reader{paths: map[string]*jsonpath.JSONPath{}} }

// read returns the values of the rules. As with the agent, an absent path gives neither a value
// nor an error. A value that is not a scalar, a path that cannot be parsed and a kind without
// well-known status give an error and the other values.
func (r *reader) read(live *unstructured.Unstructured, rules []workv1.FeedbackRule) ([]workv1.FeedbackValue, metav1.Condition) {
	if len(rules) == 0 {
		return nil, metav1.Condition{Type: feedbackCondition, Status: metav1.ConditionTrue, Reason: "NoStatusFeedbackSynced"}
	}
	var values []workv1.FeedbackValue
	var errs []error
	for _, rule := range rules {
		found, err := r.readRule(live, rule)
		values = append(values, found...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		return values, metav1.Condition{
			Type:    feedbackCondition,
			Status:  metav1.ConditionFalse,
			Reason:  "StatusFeedbackSyncFailed",
			Message: fmt.Sprintf("Sync status feedback failed with error %v", err),
		}
	}
	return values, metav1.Condition{Type: feedbackCondition, Status: metav1.ConditionTrue, Reason: "StatusFeedbackSynced"}
}

func (r *reader) readRule(live *unstructured.Unstructured, rule workv1.FeedbackRule) ([]workv1.FeedbackValue, error) {
	gvk := live.GroupVersionKind()
	paths := rule.JsonPaths
	if rule.Type == workv1.WellKnownStatusType {
		if paths = wellKnown(gvk.GroupVersion().String() + "/" + gvk.Kind); len(paths) == 0 {
			return nil, fmt.Errorf("cannot find the wellknown statuses for resource with gvk %s", gvk)
		}
	}
	var values []workv1.FeedbackValue
	var errs []error
	for _, path := range paths {
		if path.Version != "" && path.Version != gvk.Version {
			errs = append(errs, fmt.Errorf("version set in the path %s is not matched for the related resource", path.Name))
			continue
		}
		value, err := r.readPath(live, path)
		if err != nil {
			errs = append(errs, err)
		}
		if value != nil {
			values = append(values, workv1.FeedbackValue{Name: path.Name, Value: *value})
		}
	}
	return values, utilerrors.NewAggregate(errs)
}

func (r *reader) readPath(live *unstructured.Unstructured, path workv1.JsonPath) (*workv1.FieldValue, error) {
	parsed, err := r.parsed(path)
	if err != nil {
		return nil, fmt.Errorf("failed to parse json path %s of %s with error: %w", path.Path, path.Name, err)
	}
	results, err := parsed.FindResults(live.Object)
	if err != nil {
		return nil, fmt.Errorf("failed to find value for %s with error: %w", path.Name, err)
	}
	if len(results) == 0 || len(results[0]) == 0 {
		return nil, nil
	}
	// Of several results the agent takes the first.
	value := results[0][0].Interface()
	if value == nil {
		return nil, nil
	}
	switch v := value.(type) {
	case int64:
		return &workv1.FieldValue{Type: workv1.Integer, Integer: &v}, nil
	case string:
		return &workv1.FieldValue{Type: workv1.String, String: &v}, nil
	case bool:
		return &workv1.FieldValue{Type: workv1.Boolean, Boolean: &v}, nil
	}
	// Lists and objects, with the agent's feature RawFeedbackJsonString off.
	return nil, fmt.Errorf("the type %v of the value for %s is not found", reflect.TypeOf(value), path.Name)
}

func (r *reader) parsed(path workv1.JsonPath) (*jsonpath.JSONPath, error) {
	if known := r.paths[path.Path]; known != nil {
		return known, nil
	}
	parsed := jsonpath.New(path.Name).AllowMissingKeys(true)
	if err := parsed.Parse("{" + path.Path + "}"); err != nil {
		return nil, err
	}
	r.paths[path.Path] = parsed
	return parsed, nil
}

// wellKnown lists the agent's WellKnownStatus paths of a kind.
func wellKnown(kind string) []workv1.JsonPath {
	switch kind {
	case "apps/v1/Deployment":
		return []workv1.JsonPath{
			{Name: "ReadyReplicas", Path: ".status.readyReplicas"},
			{Name: "Replicas", Path: ".status.replicas"},
			{Name: "AvailableReplicas", Path: ".status.availableReplicas"},
		}
	case "apps/v1/DaemonSet":
		return []workv1.JsonPath{
			{Name: "NumberReady", Path: ".status.numberReady"},
			{Name: "DesiredNumberScheduled", Path: ".status.desiredNumberScheduled"},
			{Name: "NumberAvailable", Path: ".status.numberAvailable"},
		}
	case "batch/v1/Job":
		return []workv1.JsonPath{
			{Name: "JobComplete", Path: `.status.conditions[?(@.type=="Complete")].status`},
			{Name: "JobSucceeded", Path: ".status.succeeded"},
		}
	case "v1/Pod":
		return []workv1.JsonPath{
			{Name: "PodReady", Path: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "PodPhase", Path: ".status.phase"},
		}
	}
	return nil
}
