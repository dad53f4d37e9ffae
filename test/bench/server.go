package main

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// request is a kind of request as the API server counts them.
type request struct{ verb, resource, code string }

// counts are requests by kind.
type counts map[request]float64

// snapshot is what was counted up to a moment.
type snapshot struct {
	requests counts
	cpu      cpuTimes
}

// snapshot reads the API server's counters and the CPU time of every program.
func (b *bench) snapshot(ctx context.Context) (snapshot, error) {
	requests, err := serverRequests(ctx, b)
	if err != nil {
		return snapshot{}, err
	}
	cpu, err := cpuOfChildren()
	return snapshot{requests: requests, cpu: cpu}, err
}

// since is what happened since a snapshot.
func (b *bench) since(ctx context.Context, before snapshot) (result, error) {
	now, err := b.snapshot(ctx)
	if err != nil {
		return result{}, err
	}
	r := result{requests: counts{}, cpu: cpuTimes{}}
	for k, v := range now.requests {
		if d := v - before.requests[k]; d > 0 && !k.foreign() {
			r.requests[k] = d
		}
	}
	for program, cpu := range now.cpu {
		r.cpu[program] = cpu - before.cpu[program]
	}
	r.memory, err = memoryOf(b.world.Operator.PID())
	return r, err
}

// foreign reports whether a request is not the operator's: only the agents write the status of
// works and clusters, watches come last, and the bench itself reads the rollout and the source and requests
// reconciles.
func (r request) foreign() bool {
	switch {
	case r.resource == "manifestworks/status", r.resource == "managedclusters/status", r.verb == "WATCH", r.verb == "LIST", r.verb == "CONNECT":
		return true
	case r.verb == "GET" && r.resource == "addonsources", r.verb == "GET" && r.resource == "addonrollouts":
		return true
	case r.resource == "leases", r.resource == "endpoints", r.resource == "endpointslices":
		return true // the API server's own; the operator runs without a lease here
	}
	return r.resource == "" || strings.HasPrefix(r.resource, "/") || r.verb == ""
}

// serverRequests reads apiserver_request_total.
func serverRequests(ctx context.Context, b *bench) (counts, error) {
	c, err := kubernetes.NewForConfig(b.config())
	if err != nil {
		return nil, err
	}
	text, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("cannot parse the API server's metrics: %w", err)
	}
	out := counts{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		l := labelsOf(m)
		resource := l["resource"]
		if l["subresource"] != "" {
			resource += "/" + l["subresource"]
		}
		out[request{verb: l["verb"], resource: resource, code: l["code"]}] += m.GetCounter().GetValue()
	}
	return out, nil
}

func labelsOf(m *dto.Metric) map[string]string {
	out := map[string]string{}
	for _, l := range m.GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}

// total of all requests, and of those that met a conflict.
func (c counts) total() (all, conflicts float64) {
	for k, v := range c {
		all += v
		if k.code == "409" {
			conflicts += v
		}
	}
	return all, conflicts
}

// lines lists the counts per cluster, the most frequent first.
func (c counts) lines(clusters int) []string {
	sum := map[string]float64{}
	for k, v := range c {
		name := k.verb + " " + k.resource
		if !strings.HasPrefix(k.code, "2") {
			name += " (" + k.code + ")"
		}
		sum[name] += v
	}
	names := make([]string, 0, len(sum))
	for n := range sum {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool {
		if sum[names[i]] != sum[names[j]] {
			return sum[names[i]] > sum[names[j]]
		}
		return names[i] < names[j]
	})
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, fmt.Sprintf("%8.3f  %s", sum[n]/float64(clusters), n))
	}
	return out
}
