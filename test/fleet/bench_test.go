package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/hub"
)

// BenchmarkAnswer answers one change of the content of 1000 works per
// iteration; the writes of the works themselves are in the time.
func BenchmarkAnswer(b *testing.B) {
	f, err := fleet.New(hubConfig, fleet.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer f.Wait()
	defer cancel()
	// A benchmark is called several times; each has its own clusters.
	clusters := fleet.Numbered(fmt.Sprintf("bench%d", b.N), 1000)
	if err := errors.Join(f.Start(ctx), f.AddClusters(ctx, clusters...)); err != nil {
		b.Fatal(err)
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	b.ResetTimer()
	for i := range b.N {
		if err := writeAll(ctx, b, clusters, fmt.Sprintf("v%d", i)); err != nil {
			b.Fatal(err)
		}
		written := b.Elapsed()
		for f.StatusWrites(fleet.AllClusters) < (i+1)*len(clusters) {
			<-ticker.C
		}
		b.Logf("written after %s, answered %s later", written, b.Elapsed()-written)
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/1000")
}

func writeAll(ctx context.Context, b *testing.B, clusters []fleet.Cluster, version string) error {
	b.Helper()
	c, err := client.New(hubConfig, client.Options{Scheme: hub.NewScheme()})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for _, cluster := range clusters {
		group.Go(func() error { return write(ctx, c, cluster.Name, workSpec(b, "hello:"+version, version)) })
	}
	return group.Wait()
}

func write(ctx context.Context, c client.Client, cluster string, spec workv1.ManifestWorkSpec) error {
	work := &workv1.ManifestWork{}
	work.Name, work.Namespace, work.Spec = "addon-hello-deploy-0", cluster, spec
	err := c.Create(ctx, work)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	before := &workv1.ManifestWork{}
	before.Name, before.Namespace = work.Name, work.Namespace
	return c.Patch(ctx, work, client.MergeFrom(before))
}
