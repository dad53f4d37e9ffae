package registration

import (
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// Found is the current registration in a ManagedClusterAddOn's status.
type Found struct {
	Registrations []addonv1alpha1.RegistrationConfig
	// Driver is status.kubeClientDriver, which the klusterlet writes.
	Driver string
}

// Registrations returns ManagedClusterAddOn.status.registrations of one add-on on one cluster,
// in the template's order. A KubeClient registration, and a CustomSigner one without a subject,
// get OCM's default subject. Two things in the current status are kept, because a klusterlet
// drops an agent's credentials when its registration changes: the user of a token-based agent,
// if it is the one that the hub computes, and the group system:authenticated, which OCM before
// 1.3 lists and which grants nothing. All other differences are overwritten, because an agent
// may write its own status.
//
// A block without the section for its type is an error; loading a commit refuses it earlier,
// with the line.
func Registrations(specs []addonv1alpha1.RegistrationSpec, addOn, cluster string, found Found) ([]addonv1alpha1.RegistrationConfig, error) {
	var out []addonv1alpha1.RegistrationConfig
	for i, spec := range specs {
		config, err := configuration(spec, addOn, cluster)
		if err != nil {
			return nil, fmt.Errorf("registration[%d]: %w", i, err)
		}
		out = append(out, keep(config, addOn, cluster, found))
	}
	return out, nil
}

// kubernetesSigners begins the names of signers whose certificates the hub itself trusts: a
// template could name any user of the hub with one of them. Loading a commit refuses them as
// well, but a template that exists only on the hub is never loaded.
const kubernetesSigners = "kubernetes.io/"

func configuration(spec addonv1alpha1.RegistrationSpec, addOn, cluster string) (addonv1alpha1.RegistrationConfig, error) {
	switch spec.Type {
	case addonv1alpha1.RegistrationTypeKubeClient:
		return addonv1alpha1.RegistrationConfig{
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Subject:    DefaultSubject(addOn, cluster),
		}, nil
	case addonv1alpha1.RegistrationTypeCustomSigner:
		if spec.CustomSigner == nil {
			return addonv1alpha1.RegistrationConfig{}, fmt.Errorf("type %s needs the section customSigner", spec.Type)
		}
		if strings.HasPrefix(spec.CustomSigner.SignerName, kubernetesSigners) {
			return addonv1alpha1.RegistrationConfig{}, fmt.Errorf("signer %q belongs to Kubernetes", spec.CustomSigner.SignerName)
		}
		return addonv1alpha1.RegistrationConfig{
			SignerName: spec.CustomSigner.SignerName,
			Subject:    customSubject(spec.CustomSigner.Subject, addOn, cluster),
		}, nil
	}
	return addonv1alpha1.RegistrationConfig{}, fmt.Errorf("unknown type %q", spec.Type)
}

// customSubject is the subject that a template names, or the default one. Without a user a
// klusterlet would invent one that contains its own agent's name.
func customSubject(named *addonv1alpha1.Subject, addOn, cluster string) addonv1alpha1.Subject {
	subject := DefaultSubject(addOn, cluster)
	if named == nil {
		return subject
	}
	if named.User != "" {
		subject.User = named.User
	}
	subject.Groups = slices.Clone(named.Groups)
	subject.OrganizationUnits = slices.Clone(named.OrganizationUnits)
	return subject
}

// keep copies the parts of the found registration that must not change into config.
func keep(config addonv1alpha1.RegistrationConfig, addOn, cluster string, found Found) addonv1alpha1.RegistrationConfig {
	i := slices.IndexFunc(found.Registrations, func(f addonv1alpha1.RegistrationConfig) bool { return f.SignerName == config.SignerName })
	if i < 0 {
		return config
	}
	subject := found.Registrations[i].Subject
	byToken := config.SignerName == certificatesv1.KubeAPIServerClientSignerName &&
		found.Driver != driverCertificate && subject.User == tokenUser(addOn, cluster)
	if byToken && within(subject.Groups, config.Subject.Groups) {
		config.Subject.User = subject.User
		config.Subject.Groups = slices.Clone(subject.Groups)
	}
	if sameGroups(subject.Groups, config.Subject.Groups) {
		config.Subject.Groups = slices.Clone(subject.Groups)
	}
	return config
}

// within reports whether every group is wanted, or is system:authenticated.
func within(groups, wanted []string) bool {
	return !slices.ContainsFunc(withoutAuthenticated(groups), func(g string) bool { return !slices.Contains(wanted, g) })
}
