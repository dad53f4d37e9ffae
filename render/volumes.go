package render

import (
	"fmt"
	"maps"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// volume is a volume that every container of a pod mounts.
type volume struct {
	name, path string
	source     map[string]any
}

// registrationVolumes are the volumes with the credentials that the registration agent stores for the add-on on the
// managed cluster.
func registrationVolumes(addOn string, registrations []addonv1alpha1.RegistrationSpec) ([]volume, error) {
	var volumes []volume
	for i, r := range registrations {
		switch {
		case r.Type == addonv1alpha1.RegistrationTypeKubeClient:
			volumes = append(volumes, secretVolume("hub-kubeconfig", "/managed/hub-kubeconfig", addOn+"-hub-kubeconfig"))
		case r.Type == addonv1alpha1.RegistrationTypeCustomSigner && r.CustomSigner == nil:
			return nil, fmt.Errorf("registration[%d] is of type CustomSigner without customSigner", i)
		case r.Type == addonv1alpha1.RegistrationTypeCustomSigner:
			signer := strings.ReplaceAll(r.CustomSigner.SignerName, "/", "-")
			volumes = append(volumes, secretVolume(
				"cert-"+strings.ReplaceAll(signer, ".", "-"), "/managed/"+signer, addOn+"-"+signer+"-client-cert"))
		}
	}
	return volumes, nil
}

func secretVolume(name, path, secret string) volume {
	return volume{name: name, path: path, source: map[string]any{
		"secret": map[string]any{"secretName": secret},
	}}
}

// mount adds volumes to the pod and mounts them in every container. A volume that the pod already has, or a path that
// a container already mounts, stays as declared, because the managed cluster would refuse a second one.
func (p *pod) mount(volumes []volume) {
	if len(p.containers) == 0 {
		return
	}
	for _, v := range volumes {
		if !has(p.spec, "volumes", "name", v.name) {
			entry := map[string]any{"name": v.name}
			maps.Copy(entry, v.source)
			appendTo(p.spec, "volumes", entry)
		}
		for _, c := range p.containers {
			if !has(c.fields, "volumeMounts", "mountPath", v.path) {
				appendTo(c.fields, "volumeMounts", map[string]any{"name": v.name, "mountPath": v.path})
			}
		}
	}
}
