package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/test/rights"
)

// exchange replaces the definitions and the policy of the hub with those in a directory with manifests, as if an
// admin had installed that version. newer restores those of this tree, as the admin does before the upgrade.
func exchange(ctx context.Context, admin client.Client, directory string) (newer func(context.Context) error, err error) {
	var names []string
	for _, pattern := range []string{"crds/*_*.yaml", "admission/policy.yaml", "admission/binding.yaml"} {
		found, err := filepath.Glob(filepath.Join(directory, pattern))
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no manifests", directory)
	}
	var present []*unstructured.Unstructured
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		older := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &older.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(older.GroupVersionKind())
		if err := admin.Get(ctx, client.ObjectKeyFromObject(older), live); err != nil {
			return nil, fmt.Errorf("cannot replace %s %s: %w", older.GetKind(), older.GetName(), err)
		}
		present = append(present, live)
		if err := replaceSpec(ctx, admin, older); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		for _, o := range present {
			if err := replaceSpec(ctx, admin, o); err != nil {
				return err
			}
		}
		return rights.AwaitPolicy(ctx, admin)
	}, rights.AwaitPolicy(ctx, admin)
}

// replaceSpec makes the spec of an object on the hub that of another version of it.
func replaceSpec(ctx context.Context, admin client.Client, version *unstructured.Unstructured) error {
	err := insist(ctx, func() error {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(version.GroupVersionKind())
		if err := admin.Get(ctx, client.ObjectKeyFromObject(version), live); err != nil {
			return err
		}
		live.Object["spec"] = version.Object["spec"]
		return admin.Update(ctx, live)
	})
	if err != nil {
		return fmt.Errorf("cannot replace %s %s: %w", version.GetKind(), version.GetName(), err)
	}
	return nil
}
