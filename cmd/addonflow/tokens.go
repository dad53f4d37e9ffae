package main

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/addonflow/addonflow/controllers/agents"
)

// setupTokens registers the controller of the objects for tokens, with its own watch cache, because in coexist mode
// none of them is watched. Without the rights of manifests/replace, only this controller is off.
func setupTokens(ctx context.Context, mgr ctrl.Manager, options agents.Options, workers controller.Options) error {
	granted, err := mayWatchTokens(ctx, mgr.GetClient())
	if err != nil {
		return err
	}
	if !granted {
		ctrl.Log.WithName("setup").Info("Agents that come with a token get no account: apply manifests/replace, which grants it")
		return nil
	}
	objects, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: agents.TokenSelector(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return fmt.Errorf("cannot watch the objects behind tokens: %w", err)
	}
	if err := mgr.Add(objects); err != nil {
		return err
	}
	return (&agents.Tokens{Options: options}).SetupWithManager(mgr, objects, workers)
}

// mayWatchTokens checks on the hub whether the operator may watch the objects that the controller reads.
func mayWatchTokens(ctx context.Context, hub client.Client) (bool, error) {
	for _, resource := range []authorizationv1.ResourceAttributes{
		{Verb: "watch", Resource: "serviceaccounts"},
		{Verb: "watch", Group: rbacv1.GroupName, Resource: "roles"},
		{Verb: "watch", Group: rbacv1.GroupName, Resource: "rolebindings"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &resource}}
		if err := hub.Create(ctx, review); err != nil {
			return false, fmt.Errorf("cannot ask what the operator may do: %w", err)
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}
