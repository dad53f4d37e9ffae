package registration

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// Registrations returns ManagedClusterAddOn.status.registrations of one add-on on
// one cluster, in the template's order. A KubeClient registration, and a
// CustomSigner one without a subject, get OCM's default subject. found is what the
// status holds already: what the agent is known by there is kept, because a
// token-based agent writes its own subject (OCM behaviour, row 85).
//
// A block without the section its type needs is an error; loading a commit refuses
// it earlier, with the line.
func Registrations(specs []addonv1alpha1.RegistrationSpec, addOn, cluster string, found []addonv1alpha1.RegistrationConfig) ([]addonv1alpha1.RegistrationConfig, error) {
	var out []addonv1alpha1.RegistrationConfig
	for i, spec := range specs {
		config, err := configuration(spec, addOn, cluster)
		if err != nil {
			return nil, fmt.Errorf("registration[%d]: %w", i, err)
		}
		if config.SignerName == certificatesv1.KubeAPIServerClientSignerName {
			config.Subject = keepSubject(config, found)
		}
		out = append(out, config)
	}
	return out, nil
}

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
		config := addonv1alpha1.RegistrationConfig{
			SignerName: spec.CustomSigner.SignerName,
			Subject:    DefaultSubject(addOn, cluster),
		}
		if spec.CustomSigner.Subject != nil {
			config.Subject = *spec.CustomSigner.Subject.DeepCopy()
		}
		return config, nil
	}
	return addonv1alpha1.RegistrationConfig{}, fmt.Errorf("unknown type %q", spec.Type)
}

// DefaultSubject is the identity an agent has unless its template names another:
// one user, and a group for its cluster and one for all clusters.
func DefaultSubject(addOn, cluster string) addonv1alpha1.Subject {
	perCluster := fmt.Sprintf("system:open-cluster-management:cluster:%s:addon:%s", cluster, addOn)
	return addonv1alpha1.Subject{
		User:   fmt.Sprintf("%s:agent:%s-agent", perCluster, addOn),
		Groups: []string{perCluster, "system:open-cluster-management:addon:" + addOn},
	}
}

// keepSubject returns the subject an agent with another driver than ours wrote, if
// the status has one for the same signer, else ours.
func keepSubject(config addonv1alpha1.RegistrationConfig, found []addonv1alpha1.RegistrationConfig) addonv1alpha1.Subject {
	i := slices.IndexFunc(found, func(f addonv1alpha1.RegistrationConfig) bool { return f.SignerName == config.SignerName })
	if i < 0 || found[i].Subject.User == "" {
		return config.Subject
	}
	return *found[i].Subject.DeepCopy()
}
