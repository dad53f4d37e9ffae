package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/demo"
)

const (
	hookSecret = "bench-hook"
	hookToken  = "bench-token"
	// pushes are how often the time from a push to the first work is taken; odd, for the median.
	pushes = 5
	// promised is what the median must not exceed.
	promised = time.Second
)

// declareHook gives the source a webhook.
func declareHook(ctx context.Context, hub client.Client, source *v1alpha1.AddOnSource) error {
	source.Spec.Webhook = &v1alpha1.WebhookSpec{Type: "github", SecretRef: fluxmeta.LocalObjectReference{Name: hookSecret}}
	return hub.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace, Name: hookSecret}, StringData: map[string]string{"token": hookToken},
	})
}

// fromPush takes the time from the end of a push, with the forge's webhook, to the first work that the operator wrote.
func (b *bench) fromPush(ctx context.Context) error {
	for i := range pushes {
		took, err := b.untilFirstWork(ctx, fmt.Sprintf("push-%d", i), func(sha string) error { return b.hook(ctx, sha) })
		if err != nil {
			return fmt.Errorf("cannot measure a push: %w", err)
		}
		b.pushed = append(b.pushed, took)
		if err := b.concluded(ctx, demo.AddOn); err != nil {
			return err
		}
	}
	fmt.Printf("  ✔ %-34s %4.2fs\n", "push to first work, by webhook", median(b.pushed).Seconds())
	return nil
}

// untilFirstWork commits a content and measures the time from the commit to the first ManifestWork that the operator
// wrote. act runs after the commit.
func (b *bench) untilFirstWork(ctx context.Context, tag string, act func(sha string) error) (time.Duration, error) {
	tree, err := demo.HelloTree(tag, time.Second)
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, 1100*time.Millisecond); err != nil { // conditions have times in seconds, and looks are a second apart
		return 0, err
	}
	var list workv1.ManifestWorkList
	if err := b.world.Client.List(ctx, &list); err != nil {
		return 0, err
	}
	before := map[client.ObjectKey]int64{}
	for i := range list.Items {
		before[client.ObjectKeyFromObject(&list.Items[i])] = list.Items[i].Generation
	}
	works, err := b.world.Client.Watch(ctx, &list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return 0, err
	}
	defer works.Stop()
	sha, err := b.world.Repo.Commit(tag, tree)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := act(sha); err != nil {
		return 0, err
	}
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case event, open := <-works.ResultChan():
			if !open {
				return 0, errors.New("the watch of works ended")
			}
			work, ok := event.Object.(*workv1.ManifestWork)
			if ok && event.Type == watch.Modified && work.Generation > before[client.ObjectKeyFromObject(work)] {
				return time.Since(begun), nil
			}
		}
	}
}

// hook sends what GitHub sends after a push.
func (b *bench) hook(ctx context.Context, sha string) error {
	var source v1alpha1.AddOnSource
	if err := b.world.Client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: demo.SourceName}, &source); err != nil {
		return err
	}
	body := fmt.Sprintf(`{"ref":"refs/heads/main","after":%q}`, sha)
	mac := hmac.New(sha256.New, []byte(hookToken))
	mac.Write([]byte(body))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.hookAddress+source.Status.WebhookPath, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the webhook was answered %s", response.Status)
	}
	return nil
}
