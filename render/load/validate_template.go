package load

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
	"github.com/addonflow/addonflow/render/variable"
)

// templateFlaws checks the values of a normalised AddOnTemplate, but not its manifests, which must be rendered first.
func templateFlaws(object *unstructured.Unstructured) []flaw.Flaw {
	var flaws []flaw.Flaw
	if _, err := variable.ParseTyped(object.GetAnnotations()[variable.TypedAnnotation]); err != nil {
		at := flaw.Path("metadata.annotations").Child(variable.TypedAnnotation)
		flaws = append(flaws, flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidTemplate, Message: err.Error(), Hint: "write NAME=type pairs: REPLICAS=integer,DEBUG=boolean"})
	}
	flaws = append(flaws, contentAnnotationFlaws(object.GetAnnotations())...)
	var typed struct {
		Spec addonv1alpha1.AddOnTemplateSpec `json:"spec"`
	}
	if err := strict.Convert(object.Object, &typed); err != nil {
		return append(flaws, flaw.Flaw{Field: specKey, Reason: flaw.ReasonInvalidTemplate, Message: err.Error()})
	}
	if typed.Spec.AddonName == "" {
		flaws = append(flaws, flaw.Flaw{Field: "spec.addonName", Reason: flaw.ReasonInvalidTemplate, Message: isEmpty, Hint: "name the ClusterManagementAddOn it belongs to"})
	}
	flaws = append(flaws, registrationFlaws(typed.Spec.Registration)...)
	if len(flaws) == 0 {
		spec, _ := object.Object[specKey].(map[string]any)
		for _, f := range render.CheckTemplate(typed.Spec.AddonName, render.Template{Name: object.GetName(), Spec: spec}) {
			flaws = append(flaws, flawOfFinding(f))
		}
	}
	return flaw.FirstPerField(flaws)
}

// contentAnnotationFlaws checks the annotations that AddOnTemplates and AddOnPackages have in
// common.
func contentAnnotationFlaws(annotations map[string]string) []flaw.Flaw {
	var flaws []flaw.Flaw
	if _, err := variable.ParseFromConfigs(annotations[variable.FromConfigsAnnotation]); err != nil {
		flaws = append(flaws, flaw.Flaw{Field: variable.FromConfigsField, Reason: flaw.ReasonInvalidVariable, Message: err.Error(), Hint: variable.FromConfigsHint})
	}
	if _, err := strict.ParseNewerNames(annotations[strict.NewerNamesAnnotation]); err != nil {
		at := flaw.Path("metadata.annotations").Child(strict.NewerNamesAnnotation)
		flaws = append(flaws, flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidManifest, Message: err.Error(), Hint: strict.NewerNamesHint})
	}
	return flaws
}

// registrationFlaws checks the shape of registration blocks: each has only the block of its type, and no two request
// the same credentials.
func registrationFlaws(registrations []addonv1alpha1.RegistrationSpec) []flaw.Flaw {
	var flaws []flaw.Flaw
	first := map[string]int{}
	for i, r := range registrations {
		at := flaw.Path("spec.registration").Index(i)
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
			flaws = append(flaws, flaw.Flaw{
				Field: at, Reason: flaw.ReasonInvalidRegistration,
				Message: fmt.Sprintf("registers %s like registration[%d]: both would write one secret", signer, before), Hint: "merge the two",
			})
			continue
		}
		first[signer] = i
	}
	return flaws
}

func invalidRegistration(at flaw.Path, message, hint string) flaw.Flaw {
	return flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidRegistration, Message: message, Hint: hint}
}

func customSignerFlaws(at flaw.Path, r addonv1alpha1.RegistrationSpec) []flaw.Flaw {
	var flaws []flaw.Flaw
	if r.KubeClient != nil {
		flaws = append(flaws, invalidRegistration(at.Child("kubeClient"), "does not belong to type CustomSigner", flaw.RemoveIt))
	}
	if r.CustomSigner == nil {
		return append(flaws, invalidRegistration(at.Child("customSigner"), "is required with type CustomSigner", ""))
	}
	block := at.Child("customSigner")
	if strings.HasPrefix(r.CustomSigner.SignerName, "kubernetes.io/") {
		flaws = append(flaws, flaw.Flaw{
			Field: block.Child("signerName"), Reason: flaw.ReasonInvalidSigner,
			Message: fmt.Sprintf("%q belongs to Kubernetes", r.CustomSigner.SignerName), Hint: "use type KubeClient, or a signer of your own domain",
		})
	}
	if r.CustomSigner.SigningCA.Name == "" {
		flaws = append(flaws, flaw.Flaw{Field: block.Child("signingCA").Child(nameKey), Reason: flaw.ReasonInvalidSigner, Message: isEmpty, Hint: "name the Secret that holds the signing CA"})
	}
	return flaws
}

func kubeClientFlaws(at flaw.Path, r addonv1alpha1.RegistrationSpec) []flaw.Flaw {
	var flaws []flaw.Flaw
	if r.CustomSigner != nil {
		flaws = append(flaws, invalidRegistration(at.Child("customSigner"), "does not belong to type KubeClient", flaw.RemoveIt))
	}
	if r.KubeClient == nil {
		return flaws // the agent gets a client without permissions
	}
	for i, permission := range r.KubeClient.HubPermissions {
		flaws = append(flaws, hubPermissionFlaws(at.Child("kubeClient").Child("hubPermissions").Index(i), permission)...)
	}
	return flaws
}

func hubPermissionFlaws(at flaw.Path, p addonv1alpha1.HubPermissionConfig) []flaw.Flaw {
	if p.Type == addonv1alpha1.HubPermissionsBindingCurrentCluster {
		return currentClusterFlaws(at, p)
	}
	return singleNamespaceFlaws(at, p)
}

func currentClusterFlaws(at flaw.Path, p addonv1alpha1.HubPermissionConfig) []flaw.Flaw {
	var flaws []flaw.Flaw
	if p.SingleNamespace != nil {
		flaws = append(flaws, invalidRegistration(at.Child("singleNamespace"), "does not belong to type CurrentCluster", flaw.RemoveIt))
	}
	switch {
	case p.CurrentCluster == nil:
		flaws = append(flaws, invalidRegistration(at.Child("currentCluster"), "is required with type CurrentCluster", ""))
	case p.CurrentCluster.ClusterRoleName == "":
		flaws = append(flaws, invalidRegistration(at.Child("currentCluster").Child("clusterRoleName"), "is empty", ""))
	}
	return flaws
}

func singleNamespaceFlaws(at flaw.Path, p addonv1alpha1.HubPermissionConfig) []flaw.Flaw {
	var flaws []flaw.Flaw
	if p.CurrentCluster != nil {
		flaws = append(flaws, invalidRegistration(at.Child("currentCluster"), "does not belong to type SingleNamespace", flaw.RemoveIt))
	}
	block := at.Child("singleNamespace")
	if p.SingleNamespace == nil {
		return append(flaws, invalidRegistration(block, "is required with type SingleNamespace", ""))
	}
	if p.SingleNamespace.Namespace == "" {
		flaws = append(flaws, invalidRegistration(block.Child(namespaceKey), "is empty", ""))
	}
	role := p.SingleNamespace.RoleRef
	if role.Kind != "Role" && role.Kind != "ClusterRole" {
		flaws = append(flaws, invalidRegistration(block.Child("roleRef").Child(kindKey), fmt.Sprintf("%q is neither Role nor ClusterRole", flaw.Shown(role.Kind)), ""))
	}
	if role.APIGroup != rbacv1.GroupName {
		flaws = append(flaws, invalidRegistration(block.Child("roleRef").Child("apiGroup"), "must be "+rbacv1.GroupName, ""))
	}
	if role.Name == "" {
		flaws = append(flaws, invalidRegistration(block.Child("roleRef").Child(nameKey), "is empty", ""))
	}
	return flaws
}
