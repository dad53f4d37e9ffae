package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// parsedTemplate is an AddOnTemplate, read once for every cluster that gets it.
type parsedTemplate struct {
	name  string
	typed map[string]string
	// fromConfigs are the variables that configurations give.
	fromConfigs []variable.FromConfig
	// newer are the names of fields that a newer Kubernetes adds.
	newer []string
	// referenced are the variables that the template names. ofCluster are those of them, or of a package's variables,
	// that are labels or claims of the cluster.
	referenced, ofCluster map[string]bool
	sum                   string // of all parts that rendering reads

	manifests     []any
	configs       []workv1.ManifestConfigOption
	deleteOption  *workv1.DeleteOption
	executor      *workv1.ManifestWorkExecutor
	registration  []addonv1alpha1.RegistrationSpec
	registers     bool // there is a registration block, even an empty one
	registrations []volume

	// pkg is rendered instead of manifests; nil for a template. With a package, name is empty.
	pkg *parsedPackage
	// configsAt is the field of configs.
	configsAt flaw.Path

	found findings
}

// parseTemplate reads a template. Its errors are in found.
func parseTemplate(addOn string, t Template) *parsedTemplate {
	p, err := readTemplate(t)
	if err != nil {
		p.found.addAll(Finding{Template: t.Name}, flaw.Flaw{Field: specKey, Reason: flaw.ReasonInvalidTemplate, Message: err.Error()})
		return p
	}
	p.registrations, err = registrationVolumes(addOn, p.registration)
	if err != nil {
		p.found.addAll(Finding{Template: t.Name}, flaw.Flaw{Field: "spec.registration", Reason: flaw.ReasonInvalidRegistration, Message: err.Error()})
	}
	p.noteVariables(t.Spec["agentSpec"])
	p.found.addAll(Finding{Template: t.Name}, p.flaws()...)
	return p
}

func readTemplate(t Template) (*parsedTemplate, error) {
	p := &parsedTemplate{name: t.Name, typed: t.Typed, fromConfigs: t.FromConfigs, newer: t.Newer, configsAt: "spec.agentSpec.manifestConfigs"}
	text, err := json.Marshal(t)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(text)
	p.sum = hex.EncodeToString(sum[:])

	// It is decoded again, so that numbers are always int64 or float64 and no part is shared with the content.
	var raw struct {
		Spec struct {
			AgentSpec struct {
				Workload struct {
					Manifests []any `json:"manifests"`
				} `json:"workload"`
			} `json:"agentSpec"`
			Registration any `json:"registration"`
		} `json:"spec"`
	}
	var typed struct {
		Spec addonv1alpha1.AddOnTemplateSpec `json:"spec"`
	}
	if err := cmp.Or(utiljson.Unmarshal(text, &raw), json.Unmarshal(text, &typed)); err != nil {
		return p, err
	}
	p.manifests = raw.Spec.AgentSpec.Workload.Manifests
	p.registers = raw.Spec.Registration != nil
	p.registration = typed.Spec.Registration
	p.configs = typed.Spec.AgentSpec.ManifestConfigs
	p.deleteOption = typed.Spec.AgentSpec.DeleteOption
	p.executor = typed.Spec.AgentSpec.Executor
	return p, nil
}

// noteVariables collects the variables that an agentSpec names.
func (p *parsedTemplate) noteVariables(agentSpec any) {
	p.referenced, p.ofCluster = map[string]bool{}, map[string]bool{}
	referencedIn(p.referenced, agentSpec)
	for name := range p.referenced {
		if variable.ClusterGives(name) {
			p.ofCluster[name] = true
		}
	}
}

// flaws returns the errors of a template that do not depend on a configuration.
func (p *parsedTemplate) flaws() []flaw.Flaw {
	var flaws []flaw.Flaw
	add := func(at flaw.Path, reason problem.Reason, message, hint string) {
		flaws = append(flaws, flaw.Flaw{Field: at, Reason: reason, Message: message, Hint: hint})
	}
	if len(p.manifests) == 0 {
		add(manifestsField, flaw.ReasonInvalidManifest, "is empty", "the hub accepts no work without manifests")
	}
	if p.deleteOption != nil && p.deleteOption.TTLSecondsAfterFinished != nil {
		add("spec.agentSpec.deleteOption.ttlSecondsAfterFinished", ReasonNotSupported,
			"would delete a work that is kept for as long as the add-on is installed", "leave it out")
	}
	if p.executor != nil && p.executor.Subject.Type == workv1.ExecutorSubjectTypeServiceAccount && p.executor.Subject.ServiceAccount == nil {
		add("spec.agentSpec.executor.subject.serviceAccount", flaw.ReasonInvalidTemplate,
			"is required with type ServiceAccount: the hub refuses works without it", "give it name and namespace, or leave executor out")
	}
	// The manifests are checked one by one when variables are replaced.
	if rest, err := json.Marshal([]any{p.configs, p.deleteOption, p.executor, p.registration}); err == nil {
		if strings.Contains(string(rest), `\u0000`) {
			add(specKey, flaw.ReasonInvalidTemplate, "character NUL cannot be used", "")
		}
	}
	return append(flaws, p.configFlaws()...)
}

// configFlaws finds feedback rules in manifestConfigs that are reserved for AddonFlow.
func (p *parsedTemplate) configFlaws() []flaw.Flaw {
	var flaws []flaw.Flaw
	for i, c := range p.configs {
		for _, rule := range c.FeedbackRules {
			for _, path := range rule.JsonPaths {
				if reservedValue(path.Name) {
					flaws = append(flaws, flaw.Flaw{
						Field: p.configsAt.Index(i).Child("feedbackRules"), Reason: flaw.ReasonInvalidTemplate,
						Message: fmt.Sprintf("name %q is reserved", path.Name), Hint: "choose a name that does not begin with " + valuePrefix,
					})
				}
			}
		}
	}
	return flaws
}
