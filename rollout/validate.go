package rollout

import (
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Reasons of a FieldError.
const (
	// InvalidRolloutStrategy: a strategy or stage for which no plan can be made.
	InvalidRolloutStrategy = v1alpha1.InvalidRolloutStrategyReason
	// InvalidDuration: a value that is not a duration.
	InvalidDuration = "InvalidDuration"
	// DuplicatePlacement: a placement that is listed twice.
	DuplicatePlacement = "DuplicatePlacement"
	// InvalidLabelSelector: an invalid selector, or a selector together with placements.
	InvalidLabelSelector = "InvalidLabelSelector"
	// InvalidDependency: a dependency on an add-on on which this one cannot depend, for instance because of a cycle.
	InvalidDependency = "InvalidDependency"
	// DuplicateStage: two stages with the same name.
	DuplicateStage = "DuplicateStage"
)

// FieldError is one error in a policy. Field is relative to the spec of the AddOnRollout. If
// it starts with installStrategy, it is relative to the spec of the ClusterManagementAddOn.
type FieldError struct {
	Field, Reason, Message, Hint string
}

// Error returns field: message; hint.
func (e FieldError) Error() string {
	text := e.Field + ": " + e.Message
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Hints that several fields share.
const (
	hintConcurrency = "give a number from 1 or a percentage from 1% to 100%, or omit it for the default"
	hintQuantity    = "give a whole number such as 5, or a percentage such as 25%"
	hintDeadline    = "such as 30m or 1h30m, or None"
	hintAll         = "use type Progressive, which has a failure budget to stop at"
)

// Limits of the AddOnRollout's schema.
const (
	maxStages    = 31
	maxStageName = 40
)

var stageNameText = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// findings collects the errors of a policy.
type findings []FieldError

func (f *findings) add(field, message, hint string) {
	*f = append(*f, FieldError{Field: field, Reason: InvalidRolloutStrategy, Message: message, Hint: hint})
}

// Validate returns all errors of a policy, in order of the fields; nil: New can plan for it. It does not check
// whether placements and mandatory groups exist.
//
// A typed value loses a part of the user's input: in OCM's strategies, a 0 looks like an absent field.
// ValidateDeclared sees the difference.
func Validate(spec v1alpha1.AddOnRolloutSpec) []FieldError {
	var f findings
	if spec.Strategy != nil && len(spec.Stages) > 0 {
		f.add("strategy", "strategy and stages exclude each other", "keep one of them")
	}
	if spec.Strategy != nil {
		f.strategy("strategy", *spec.Strategy)
	}
	f.stages(spec.Stages)
	f.dependencies(spec.DependsOn)
	if limit := spec.RevisionHistoryLimit; limit != nil && *limit < 0 {
		f.add("revisionHistoryLimit", fmt.Sprintf("%d: %s", *limit, errNegative), "give the number of revisions to keep, or omit it for 10")
	}
	f.selector(spec)
	if spec.Install != nil {
		f.install(*spec.Install)
	}
	return f
}

// selector checks clusterLabelSelector, which would conflict with placements.
func (f *findings) selector(spec v1alpha1.AddOnRolloutSpec) {
	const field = "clusterLabelSelector"
	if spec.ClusterLabelSelector == nil {
		return
	}
	found := validation.ValidateLabelSelector(spec.ClusterLabelSelector,
		validation.LabelSelectorValidationOptions{}, nil)
	for _, err := range found {
		*f = append(*f, FieldError{
			Field: field + "." + err.Field, Reason: InvalidLabelSelector, Message: err.ErrorBody(),
			Hint: "labels and operators are those of a Kubernetes label selector",
		})
	}
	if spec.Install != nil && spec.Install.Type == installPlacements {
		*f = append(*f, FieldError{
			Field: field, Reason: InvalidLabelSelector,
			Message: "the ClusterManagementAddOn installs by placements, which exclude it",
			Hint:    "set its installStrategy.type to Manual, or select by labels in a Placement",
		})
	}
}

func (f *findings) stages(stages []v1alpha1.Stage) {
	if len(stages) > maxStages {
		f.add("stages", fmt.Sprintf("%d stages, at most %d are allowed", len(stages), maxStages), "put several placements' clusters into one stage")
	}
	seen := map[string]bool{}
	for i, st := range stages {
		field := fmt.Sprintf("stages[%d]", i)
		if seen[st.Name] {
			*f = append(*f, FieldError{
				Field: field + ".name", Reason: DuplicateStage, Message: fmt.Sprintf("stage %q is listed twice", st.Name),
				Hint: "a stage's name is the name of its commit status",
			})
		}
		seen[st.Name] = true
		f.stageName(field+".name", st.Name)
		if st.Placement.Name == "" || st.Placement.Namespace == "" {
			f.add(field+".placement", "a stage needs a placement with namespace and name", "")
		}
		switch st.WhenEmpty {
		case "", v1alpha1.WhenEmptyHold, v1alpha1.WhenEmptyPass:
		default:
			f.add(field+".whenEmpty", fmt.Sprintf("%q is unknown", st.WhenEmpty), "use Hold or Pass")
		}
		if st.MaxConcurrency != nil {
			f.quantity(field+".maxConcurrency", *st.MaxConcurrency)
		}
		if st.MaxFailures != nil {
			f.quantity(field+".maxFailures", *st.MaxFailures)
		}
		f.soak(field+".minSuccessTime", st.MinSuccessTime.Duration)
		f.deadline(field+".progressDeadline", st.ProgressDeadline)
		f.gates(field+".gates", st.Gates)
		if i == 0 {
			f.neverMoved(field+".gates", st.Gates)
		}
	}
}

// dependencies refuses an add-on that is listed twice.
func (f *findings) dependencies(all []v1alpha1.Dependency) {
	seen := map[string]bool{}
	for i, d := range all {
		field := fmt.Sprintf("dependsOn[%d].addOn", i)
		switch {
		case d.AddOn == "":
			*f = append(*f, FieldError{Field: field, Reason: InvalidDependency, Message: "a dependency needs the name of an add-on"})
		case seen[d.AddOn]:
			*f = append(*f, FieldError{Field: field, Reason: InvalidDependency, Message: fmt.Sprintf("add-on %q is listed twice", d.AddOn), Hint: "keep one"})
		}
		seen[d.AddOn] = true
	}
}

// stageName checks a name against the AddOnRollout's schema.
func (f *findings) stageName(field, name string) {
	switch {
	case name == "":
		f.add(field, "a stage needs a name", "")
	case len(name) > maxStageName:
		f.add(field, fmt.Sprintf("%d characters, at most %d are allowed", len(name), maxStageName), "")
	case !stageNameText.MatchString(name):
		f.add(field, fmt.Sprintf("%q cannot be the name of a stage", name), "use lower-case letters, digits and -, beginning and ending with a letter or digit")
	}
}

func (f *findings) install(in v1alpha1.Install) {
	switch in.Type {
	case "", "Manual", installPlacements:
	default:
		f.add("installStrategy.type", fmt.Sprintf("unknown type %q", in.Type), "Manual or Placements")
	}
	seen := map[v1alpha1.PlacementReference]bool{}
	for i, ip := range in.Placements {
		field := fmt.Sprintf("installStrategy.placements[%d]", i)
		if seen[ip.PlacementReference] {
			*f = append(*f, FieldError{
				Field: field, Reason: DuplicatePlacement, Hint: "keep one; if two placements select a cluster, the last one applies",
				Message: fmt.Sprintf("placement %s/%s is listed twice", ip.Namespace, ip.Name),
			})
		}
		seen[ip.PlacementReference] = true
		f.ocmStrategy(field+".rolloutStrategy", fromOCM(ip.RolloutStrategy))
	}
}

// ocmStrategy checks the strategy of a ClusterManagementAddOn. It has OCM's types only: the
// API server refuses the additional types of an AddOnRollout.
func (f *findings) ocmStrategy(field string, s v1alpha1.RolloutStrategy) {
	hint := ""
	switch s.Type {
	case "", v1alpha1.StrategyAll, v1alpha1.StrategyProgressive, v1alpha1.StrategyProgressivePerGroup:
		f.strategy(field, s)
		return
	case v1alpha1.StrategyUpdateAll:
		hint = "write All"
	case v1alpha1.StrategyRollingUpdateWithPlacement:
		hint = "declare it as the strategy of an AddOnRollout"
	default:
		hint = "All, Progressive or ProgressivePerGroup"
	}
	f.add(field+".type", fmt.Sprintf("%q is not a type that a ClusterManagementAddOn can have", s.Type), hint)
	s.Type = ""
	f.blocks(field, s)
}

func fromOCM(s clusterv1alpha1.RolloutStrategy) v1alpha1.RolloutStrategy {
	return v1alpha1.RolloutStrategy{
		Type: v1alpha1.StrategyType(s.Type), All: s.All, Progressive: s.Progressive, ProgressivePerGroup: s.ProgressivePerGroup,
	}
}

// strategy checks the type and its block, and that no block of another type is set.
func (f *findings) strategy(field string, s v1alpha1.RolloutStrategy) {
	blocks := []struct {
		name  string
		types []v1alpha1.StrategyType
		set   bool
	}{
		{"all", []v1alpha1.StrategyType{v1alpha1.StrategyAll, v1alpha1.StrategyUpdateAll, ""}, s.All != nil},
		{"progressive", []v1alpha1.StrategyType{v1alpha1.StrategyProgressive}, s.Progressive != nil},
		{"progressivePerGroup", []v1alpha1.StrategyType{v1alpha1.StrategyProgressivePerGroup}, s.ProgressivePerGroup != nil},
		{"rollingUpdateWithPlacement", []v1alpha1.StrategyType{v1alpha1.StrategyRollingUpdateWithPlacement}, s.RollingUpdateWithPlacement != nil},
	}
	known := s.Type == ""
	var beside []string
	for _, b := range blocks {
		for _, t := range b.types {
			if t == s.Type {
				known, b.set = true, false
			}
		}
		if b.set {
			beside = append(beside, b.name)
		}
	}
	if known {
		for _, name := range beside {
			f.wrongBlock(field, name, s.Type)
		}
	} else {
		f.add(field+".type", fmt.Sprintf("unknown type %q", s.Type),
			"All, UpdateAll, Progressive, ProgressivePerGroup or RollingUpdateWithPlacement")
	}
	f.blocks(field, s)
}

func (f *findings) wrongBlock(field, block string, t v1alpha1.StrategyType) {
	used := "type is " + string(t)
	if t == "" {
		used = "type is not set, so that strategy All is used"
	}
	f.add(field+"."+block, used+" and "+block+" would be ignored", "set type, or remove "+block)
}

// blocks checks the content of all blocks, also of types that are not used.
func (f *findings) blocks(field string, s v1alpha1.RolloutStrategy) {
	if s.All != nil {
		f.all(field+".all", s.All.RolloutConfig)
	}
	if p := s.Progressive; p != nil {
		f.pace(field+".progressive", p.RolloutConfig)
		f.concurrency(field+".progressive.maxConcurrency", p.MaxConcurrency)
		f.mandatory(field+".progressive", p.MandatoryDecisionGroups)
	}
	if p := s.ProgressivePerGroup; p != nil {
		f.pace(field+".progressivePerGroup", p.RolloutConfig)
		f.mandatory(field+".progressivePerGroup", p.MandatoryDecisionGroups)
	}
	switch ru := s.RollingUpdateWithPlacement; {
	case ru != nil:
		field += ".rollingUpdateWithPlacement"
		if ru.Name == "" || ru.Namespace == "" {
			f.add(field, "it needs a placement with namespace and name", "")
		}
		if v := ru.MaxConcurrentlyUpdating; v != nil {
			f.concurrency(field+".maxConcurrentlyUpdating", *v)
			if *v == (intstr.IntOrString{}) {
				f.add(field+".maxConcurrentlyUpdating", "must be at least 1", hintConcurrency)
			}
		}
	case s.Type == v1alpha1.StrategyRollingUpdateWithPlacement:
		f.add(field+".rollingUpdateWithPlacement", "missing", "name the placement to take the share from")
	}
}

// all refuses a failure budget and a soak, because strategy All has no later clusters that they could protect.
func (f *findings) all(field string, c clusterv1alpha1.RolloutConfig) {
	if c.MinSuccessTime.Duration != 0 {
		f.add(field+".minSuccessTime", "strategy All has no soak", hintAll)
	}
	if q, err := parseQuantity(c.MaxFailures); err != nil || q.n != 0 {
		f.add(field+".maxFailures", "strategy All has no failure budget: every cluster is moved at once", hintAll)
	}
	f.deadline(field+".progressDeadline", c.ProgressDeadline)
}

// mandatory refuses negative indexes, which no decision group has. It does not check whether a group exists: only the
// placement's decisions say that.
func (f *findings) mandatory(field string, groups clusterv1alpha1.MandatoryDecisionGroups) {
	for i, g := range groups.MandatoryDecisionGroups {
		if g.GroupName == "" && g.GroupIndex < 0 {
			f.add(fmt.Sprintf("%s.mandatoryDecisionGroups[%d].groupIndex", field, i), fmt.Sprintf("%d: must be at least 0", g.GroupIndex),
				"the first decision group has index 0")
		}
	}
}

func (f *findings) pace(field string, c clusterv1alpha1.RolloutConfig) {
	f.soak(field+".minSuccessTime", c.MinSuccessTime.Duration)
	f.deadline(field+".progressDeadline", c.ProgressDeadline)
	f.quantity(field+".maxFailures", c.MaxFailures)
}

func (f *findings) quantity(field string, v intstr.IntOrString) {
	if _, err := parseQuantity(v); err != nil {
		f.add(field, fmt.Sprintf("%s: %s", v.String(), err), hintQuantity)
	}
}

// concurrency refuses 0 in a strategy: it would hold the rollout for ever, and in OCM it
// moves all clusters at once.
func (f *findings) concurrency(field string, v intstr.IntOrString) {
	q, err := parseQuantity(v)
	switch {
	case err != nil:
		f.add(field, fmt.Sprintf("%s: %s", v.String(), err), hintConcurrency)
	case q.n == 0 && declared(v):
		f.add(field, v.String()+": must be at least 1", hintConcurrency)
	}
}

func (f *findings) soak(field string, d time.Duration) {
	if d < 0 {
		*f = append(*f, FieldError{
			Field: field, Reason: InvalidDuration, Message: d.String() + ": " + errNegative.Error(), Hint: "such as 10m",
		})
	}
}

func (f *findings) deadline(field, text string) {
	if _, err := parseDeadline(text); err != nil {
		f.add(field, fmt.Sprintf("%q: %s", text, err), hintDeadline)
	}
}
