package registration

import (
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// Found is what a ManagedClusterAddOn's status says about registration already.
type Found struct {
	Registrations []addonv1alpha1.RegistrationConfig
	// Driver is status.kubeClientDriver, which the klusterlet writes.
	Driver string
}

// Registrations returns ManagedClusterAddOn.status.registrations of one add-on on
// one cluster, in the template's order. A KubeClient registration, and a
// CustomSigner one without a subject, get OCM's default subject. Of what the status
// holds already two things are kept, because a klusterlet drops an agent's
// credentials when its registration changes: the user of a token-based agent, where
// it is the very one the hub computes, and the group
// system:authenticated, which OCM before 1.3 lists and which grants nothing. Every
// other difference is overwritten: an agent may write its own status.
//
// A block without the section its type needs is an error; loading a commit refuses
// it earlier, with the line.
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

// kubernetesSigners begins the names of signers whose certificates the hub itself
// trusts: with one of them a template could name any user of the hub. Loading a commit
// refuses it as well; a template that stands on the hub only was never loaded.
const kubernetesSigners = "kubernetes.io/"

// configuration translates one block.
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

// customSubject is the subject a template names, or the default one. Without a user
// a klusterlet would make one up that contains its own agent's name.
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

// keep returns config with what of the found registration of its signer is kept.
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

// within reports whether every group is one of the wanted, or the one everybody has.
func within(groups, wanted []string) bool {
	return !slices.ContainsFunc(withoutAuthenticated(groups), func(g string) bool { return !slices.Contains(wanted, g) })
}
