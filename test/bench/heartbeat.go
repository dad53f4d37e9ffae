package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// heartbeats write the status of every ManagedCluster once in a period, as registration agents do that report what their
// cluster can allocate.
type heartbeats struct{ written, failed atomic.Int64 }

// writers are as many at once as a busy hub needs to take the heartbeats of 10,000 clusters in time.
const writers = 16

// beat writes until ctx ends.
func beat(ctx context.Context, hub client.Client, names []string, period time.Duration) *heartbeats {
	h := &heartbeats{}
	if period == 0 {
		return h
	}
	for first := range writers {
		go h.write(ctx, hub, names, first, time.NewTicker(period*writers/time.Duration(len(names))))
	}
	return h
}

// write writes every writers-th cluster, beginning with the first, one at each tick.
func (h *heartbeats) write(ctx context.Context, hub client.Client, names []string, first int, ticker *time.Ticker) {
	defer ticker.Stop()
	for i := first; ; i += writers {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: names[i%len(names)]}}
		patch := fmt.Appendf(nil, `{"status":{"allocatable":{"memory":"%dMi"}}}`, 1024+i/len(names))
		switch err := hub.Status().Patch(ctx, cluster, client.RawPatch("application/merge-patch+json", patch)); {
		case err == nil:
			h.written.Add(1)
		case ctx.Err() == nil:
			h.failed.Add(1)
		}
	}
}
