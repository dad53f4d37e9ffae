package render

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// templateFlaws judges the values of a normalised AddOnTemplate, apart from its
// manifests, which are rendered to be judged.
func templateFlaws(object *unstructured.Unstructured) []flaw {
	var flaws []flaw
	if _, err := ParseTypedVariables(object.GetAnnotations()[TypedVariablesAnnotation]); err != nil {
		at := fieldPath("metadata.annotations").child(TypedVariablesAnnotation)
		flaws = append(flaws, flaw{field: at, reason: ReasonInvalidTemplate, message: err.Error(), hint: "write NAME=type pairs: REPLICAS=integer,DEBUG=boolean"})
	}
	if _, err := ParseConfigVariables(object.GetAnnotations()[ConfigVariablesAnnotation]); err != nil {
		flaws = append(flaws, flaw{field: configVariablesAt, reason: ReasonInvalidVariable, message: err.Error(), hint: configVariablesHint})
	}
	var typed struct {
		Spec addonv1alpha1.AddOnTemplateSpec `json:"spec"`
	}
	if err := convert(object.Object, &typed); err != nil {
		return append(flaws, flaw{field: specKey, reason: ReasonInvalidTemplate, message: err.Error()})
	}
	if typed.Spec.AddonName == "" {
		flaws = append(flaws, flaw{field: "spec.addonName", reason: ReasonInvalidTemplate, message: isEmpty, hint: "name the ClusterManagementAddOn it belongs to"})
	}
	flaws = append(flaws, registrationFlaws(typed.Spec.Registration)...)
	if len(flaws) == 0 {
		spec, _ := object.Object[specKey].(map[string]any)
		for _, f := range checkTemplate(typed.Spec.AddonName, Template{Name: object.GetName(), Spec: spec}) {
			flaws = append(flaws, flawOfFinding(f))
		}
	}
	return firstPerField(append(flaws, conditionRuleFlaws("spec.agentSpec.manifestConfigs", typed.Spec.AgentSpec.ManifestConfigs)...))
}

// conditionRuleFlaws is the one rule of the embedded CRDs that is written in CEL;
// a test makes sure it stays the only one.
func conditionRuleFlaws(at fieldPath, configs []workv1.ManifestConfigOption) []flaw {
	var flaws []flaw
	for i, config := range configs {
		for j, rule := range config.ConditionRules {
			if rule.Type == workv1.CelConditionExpressionsType && rule.Condition == "" {
				flaws = append(flaws, flaw{
					field:  at.index(i).child("conditionRules").index(j).child("condition"),
					reason: ReasonInvalidTemplate, message: "Condition is required for CEL rules",
				})
			}
		}
	}
	return flaws
}

// registrationFlaws checks the shape of registration blocks: each has the block of
// its type and no other, and no two ask for the same credentials.
func registrationFlaws(registrations []addonv1alpha1.RegistrationSpec) []flaw {
	var flaws []flaw
	first := map[string]int{}
	for i, r := range registrations {
		at := fieldPath("spec.registration").index(i)
		signer := "kubeClient"
		if r.Type == addonv1alpha1.RegistrationTypeCustomSigner {
			flaws = append(flaws, customSignerFlaws(at, r)...)
			if r.CustomSigner != nil {
				signer = r.CustomSigner.SignerName
			}
		} else {
			flaws = append(flaws, kubeClientFlaws(at, r)...)
		}
		if before, twice := first[signer]; twice {
			flaws = append(flaws, flaw{
				field: at, reason: ReasonInvalidRegistration,
				message: fmt.Sprintf("registers %s like registration[%d]: both would write one secret", signer, before), hint: "merge the two",
			})
			continue
		}
		first[signer] = i
	}
	return flaws
}

func invalidRegistration(at fieldPath, message, hint string) flaw {
	return flaw{field: at, reason: ReasonInvalidRegistration, message: message, hint: hint}
}

func customSignerFlaws(at fieldPath, r addonv1alpha1.RegistrationSpec) []flaw {
	var flaws []flaw
	if r.KubeClient != nil {
		flaws = append(flaws, invalidRegistration(at.child("kubeClient"), "does not belong to type CustomSigner", removeIt))
	}
	if r.CustomSigner == nil {
		return append(flaws, invalidRegistration(at.child("customSigner"), "is required with type CustomSigner", ""))
	}
	block := at.child("customSigner")
	if strings.HasPrefix(r.CustomSigner.SignerName, "kubernetes.io/") {
		flaws = append(flaws, flaw{
			field: block.child("signerName"), reason: ReasonInvalidSigner,
			message: fmt.Sprintf("%q belongs to Kubernetes", r.CustomSigner.SignerName), hint: "use type KubeClient, or a signer of your own domain",
		})
	}
	if r.CustomSigner.SigningCA.Name == "" {
		flaws = append(flaws, flaw{field: block.child("signingCA").child(nameKey), reason: ReasonInvalidSigner, message: isEmpty, hint: "name the Secret that holds the signing CA"})
	}
	return flaws
}

func kubeClientFlaws(at fieldPath, r addonv1alpha1.RegistrationSpec) []flaw {
	var flaws []flaw
	if r.CustomSigner != nil {
		flaws = append(flaws, invalidRegistration(at.child("customSigner"), "does not belong to type KubeClient", removeIt))
	}
	if r.KubeClient == nil {
		return flaws // the agent gets a client without permissions
	}
	for i, permission := range r.KubeClient.HubPermissions {
		flaws = append(flaws, hubPermissionFlaws(at.child("kubeClient").child("hubPermissions").index(i), permission)...)
	}
	return flaws
}

func hubPermissionFlaws(at fieldPath, p addonv1alpha1.HubPermissionConfig) []flaw {
	if p.Type == addonv1alpha1.HubPermissionsBindingCurrentCluster {
		return currentClusterFlaws(at, p)
	}
	return singleNamespaceFlaws(at, p)
}

func currentClusterFlaws(at fieldPath, p addonv1alpha1.HubPermissionConfig) []flaw {
	var flaws []flaw
	if p.SingleNamespace != nil {
		flaws = append(flaws, invalidRegistration(at.child("singleNamespace"), "does not belong to type CurrentCluster", removeIt))
	}
	switch {
	case p.CurrentCluster == nil:
		flaws = append(flaws, invalidRegistration(at.child("currentCluster"), "is required with type CurrentCluster", ""))
	case p.CurrentCluster.ClusterRoleName == "":
		flaws = append(flaws, invalidRegistration(at.child("currentCluster").child("clusterRoleName"), "is empty", ""))
	}
	return flaws
}

func singleNamespaceFlaws(at fieldPath, p addonv1alpha1.HubPermissionConfig) []flaw {
	var flaws []flaw
	if p.CurrentCluster != nil {
		flaws = append(flaws, invalidRegistration(at.child("currentCluster"), "does not belong to type SingleNamespace", removeIt))
	}
	block := at.child("singleNamespace")
	if p.SingleNamespace == nil {
		return append(flaws, invalidRegistration(block, "is required with type SingleNamespace", ""))
	}
	if p.SingleNamespace.Namespace == "" {
		flaws = append(flaws, invalidRegistration(block.child(namespaceKey), "is empty", ""))
	}
	role := p.SingleNamespace.RoleRef
	if role.Kind != "Role" && role.Kind != "ClusterRole" {
		flaws = append(flaws, invalidRegistration(block.child("roleRef").child(kindKey), fmt.Sprintf("%q is neither Role nor ClusterRole", shown(role.Kind)), ""))
	}
	if role.APIGroup != rbacv1.GroupName {
		flaws = append(flaws, invalidRegistration(block.child("roleRef").child("apiGroup"), "must be "+rbacv1.GroupName, ""))
	}
	if role.Name == "" {
		flaws = append(flaws, invalidRegistration(block.child("roleRef").child(nameKey), "is empty", ""))
	}
	return flaws
}
