package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/demo"
)

const (
	// viewer is the ServiceAccount that looks at pages.
	viewer = "bench-viewer"
	// promisedPage is how long the first view of a page may take, the browser's part included.
	promisedPage = time.Second
	// promisedBytes are what is sent for it at most.
	promisedBytes = 150 << 10
)

// pageLoad is what the operator takes to send the page of the rollout.
type pageLoad struct {
	// first is the duration of the first view, which computes the plan, and again that of the second view.
	first, again time.Duration
	bytes        int
}

// views takes the times of two views of the page of the rollout.
func (b *bench) views(ctx context.Context) error {
	token, err := b.viewerToken(ctx)
	if err != nil {
		return err
	}
	if b.page.first, b.page.bytes, err = b.view(ctx, token); err != nil {
		return err
	}
	b.page.again, _, err = b.view(ctx, token)
	return err
}

// viewerToken is a token of a user who may get everything.
func (b *bench) viewerToken(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: viewer}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: viewer}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: demo.Namespace, Name: viewer}},
	}
	for _, o := range []client.Object{account, binding} {
		if err := b.world.Client.Create(ctx, o); err != nil {
			return "", err
		}
	}
	request := &authenticationv1.TokenRequest{}
	err := b.world.Client.SubResource("token").Create(ctx, account, request)
	return request.Status.Token, err
}

// view gets the page of the rollout once.
func (b *bench) view(ctx context.Context, token string) (took time.Duration, size int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/rollouts/%s/%s/-", b.pagesAddress, demo.Namespace, demo.AddOn), http.NoBody)
	if err != nil {
		return 0, 0, err
	}
	// A browser sends this cookie over TLS only.
	request.Header.Set("Cookie", "__Host-addonflow-token="+token)
	begun := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the page of the rollout was answered %s", answer.Status)
	}
	return time.Since(begun), len(text), err
}
