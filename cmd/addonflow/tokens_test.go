package main

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestTokensNeedTheirGrant: an operator that replaces OCM's addon-manager with the rights
// of the other mode goes on without accounts for tokens, instead of not starting.
func TestTokensNeedTheirGrant(t *testing.T) {
	for denied, want := range map[string]bool{"": true, "serviceaccounts": false, "roles": false, "rolebindings": false} {
		hub := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				if review, ok := obj.(*authorizationv1.SelfSubjectAccessReview); ok {
					review.Status.Allowed = review.Spec.ResourceAttributes.Resource != denied
				}
				return nil
			},
		}).Build()
		if got, err := mayWatchTokens(t.Context(), hub); got != want || err != nil {
			t.Errorf("without %q: %v, %v, want %v", denied, got, err, want)
		}
	}
}
