package forge

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// Requests returns the pull requests of the repository to which a source reports, and the forge for their statuses.
// They share the token's limit of requests with all other statuses. The error is fit for an event, because it
// contains no secret.
func (d *Desk) Requests(ctx context.Context, source *v1alpha1.AddOnSource) (commitstatus.Requests, commitstatus.Forge, error) {
	config, err := d.config(ctx, source)
	if err != nil {
		return nil, nil, err
	}
	requests, err := commitstatus.NewRequests(config)
	if err != nil {
		return nil, nil, err
	}
	forge, err := commitstatus.New(config)
	return requests, forge, err
}

// Proposals returns the proposals to the repository of a source. The error is as that of Requests.
func (d *Desk) Proposals(ctx context.Context, source *v1alpha1.AddOnSource) (commitstatus.Proposals, error) {
	config, err := d.config(ctx, source)
	if err != nil {
		return nil, err
	}
	return commitstatus.NewProposals(config)
}

// Comments returns the comments on the pull requests of the repository to which a source reports. The
// error is as that of Requests.
func (d *Desk) Comments(ctx context.Context, source *v1alpha1.AddOnSource) (commitstatus.Comments, error) {
	config, err := d.config(ctx, source)
	if err != nil {
		return nil, err
	}
	return commitstatus.NewComments(config)
}

// config is the configuration of the forge of a source, for statuses that are not of its branch.
func (d *Desk) config(ctx context.Context, source *v1alpha1.AddOnSource) (commitstatus.Config, error) {
	owner, err := d.owner(ctx, source)
	if err != nil {
		return commitstatus.Config{}, err
	}
	if owner != client.ObjectKeyFromObject(source) {
		return commitstatus.Config{}, fmt.Errorf("the commit status context belongs to source %s, which reports to the same repository", owner)
	}
	by, err := loginOf(ctx, d.options.Secrets, source)
	if err != nil {
		return commitstatus.Config{}, err
	}
	config, err := d.configOf(source, by)
	config.Ref = "" // the commit is of another branch
	config.Limiter = d.limiter(config.Provider, digestOf(config.Provider, by.identity()))
	return config, err
}

// Branch returns the branch that a source follows; "": it follows a tag, a commit or another reference.
func Branch(source *v1alpha1.AddOnSource) string {
	if ref := source.Spec.Reference; ref != nil && ref.Tag != "" {
		return ""
	}
	return refOf(source)
}
