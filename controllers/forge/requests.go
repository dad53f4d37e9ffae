package forge

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// PlanContextName returns the context of the plans of a source.
func (d *Desk) PlanContextName(source *v1alpha1.AddOnSource) string {
	if d.separate {
		return commitstatus.ContextName("addonflow-plan", source.Namespace, source.Name)
	}
	return commitstatus.ContextName("addonflow-plan", source.Name)
}

// Requests returns the pull requests of the repository to which a source reports, and the forge for
// their statuses. They share the token's limit of requests with all other statuses. The error is fit for an
// event: it shows no secret.
func (d *Desk) Requests(ctx context.Context, source *v1alpha1.AddOnSource) (commitstatus.Requests, commitstatus.Forge, error) {
	owner, err := d.owner(ctx, source)
	if err != nil {
		return nil, nil, err
	}
	if owner != client.ObjectKeyFromObject(source) {
		return nil, nil, fmt.Errorf("the commit status context belongs to source %s, which reports to the same repository", owner)
	}
	by, err := loginOf(ctx, d.secrets, source)
	if err != nil {
		return nil, nil, err
	}
	config, err := configOf(source, by, d.tokens, d.http)
	if err != nil {
		return nil, nil, err
	}
	config.Ref = "" // the commit is of the request's branch
	config.Limiter = d.limiter(config.Provider, digestOf(config.Provider, by.identity()))
	requests, err := commitstatus.NewRequests(config)
	if err != nil {
		return nil, nil, err
	}
	forge, err := commitstatus.New(config)
	return requests, forge, err
}

// Branch returns the branch that a source follows; "": it follows something else.
func Branch(source *v1alpha1.AddOnSource) string {
	if ref := source.Spec.Reference; ref != nil && ref.Tag != "" {
		return ""
	}
	return refOf(source)
}
