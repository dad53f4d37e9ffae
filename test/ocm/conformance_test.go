package ocm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/fleet/spoke"
	"github.com/addonflow/addonflow/test/hub"
)

// answered is an add-on whose works both agents answer, version after version.
type answered struct {
	name     string
	versions []version
}

// version is what the template of an add-on has below spec.agentSpec, as YAML. Without manifests
// the works of the add-on are deleted.
type version struct {
	manifests []string
	configs   []string
	delete    string
}

func of(manifests ...string) version { return version{manifests: manifests} }

// answers is the table: every kind that the fleet models, and everything that an agent may find
// wrong with a work.
func answers() []answered {
	gone := version{}
	return []answered{
		{"deployment", []version{
			of(pods("Deployment", "deployment", "v1", "replicas: 2")), of(pods("Deployment", "deployment", "v2", "replicas: 3")),
			of(pods("Deployment", "deployment", "bad", "replicas: 3")), of(pods("Deployment", "deployment", "v2", "replicas: 3")), gone,
		}},
		{"daemonset", []version{
			of(pods("DaemonSet", "daemonset", "v1")), of(pods("DaemonSet", "daemonset", "bad")), of(pods("DaemonSet", "daemonset", "v2")), gone,
		}},
		{"statefulset", []version{
			of(pods("StatefulSet", "statefulset", "v1", "replicas: 2", "serviceName: s")),
			of(pods("StatefulSet", "statefulset", "v2", "replicas: 2", "serviceName: s")), gone,
		}},
		{"defaults", []version{of(pods("Deployment", "defaults", "v1"), pods("StatefulSet", "defaults", "v1", "serviceName: s"))}},
		{"job", []version{of(job("job", "v1")), gone}},
		{"failing-job", []version{of(job("failing-job", "fails"))}},
		{"changed-job", []version{of(job("changed-job", "v1")), of(job("changed-job", "v2"))}},
		{"cronjob", []version{of(cronJob("cronjob", "0 1 * * *")), of(cronJob("cronjob", "0 2 * * *")), gone}},
		{"pod", []version{of(pod("pod", "v1")), gone}},
		{"configmap", []version{of(configMap("configmap", "a")), of(configMap("configmap", "b")), gone}},
		{"others", []version{{manifests: []string{
			"{apiVersion: v1, kind: Namespace, metadata: {name: others}}",
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: others, namespace: others}}",
			"{apiVersion: v1, kind: Service, metadata: {name: others, namespace: others}, spec: {ports: [{port: 80}]}}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: others}, rules: []}",
			"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: others, namespace: others}, spec: {maxUnavailable: 1}}",
		}, configs: []string{
			asked("", "serviceaccounts", "others", "others"), asked("", "services", "others", "others"),
			asked("rbac.authorization.k8s.io", "clusterroles", "", "others"), asked("policy", "poddisruptionbudgets", "others", "others"),
		}}}},
		{"definition", []version{{
			manifests: []string{definition("Note", "notes"), custom("Note", "definition", "{text: a}")},
			configs:   []string{asked("example.com", "notes", "default", "definition"), asked("apiextensions.k8s.io", "customresourcedefinitions", "", "notes.example.com")},
		}, {
			manifests: []string{definition("Note", "notes"), custom("Note", "definition", "{text: b}")},
			configs:   []string{asked("example.com", "notes", "default", "definition")},
		}}},
		{"definition-last", []version{of(custom("Memo", "definition-last", "{}"), definition("Memo", "memos"))}},
		{"manifest-leaves", []version{of(configMap("stays", "a"), configMap("leaves", "a")), of(configMap("stays", "a"))}},
		{"order-changes", []version{
			{manifests: []string{configMap("first", "a"), configMap("second", "a")}, configs: []string{asked("", "configmaps", "default", "second")}},
			{manifests: []string{configMap("second", "b"), configMap("first", "a")}, configs: []string{asked("", "configmaps", "default", "second")}},
		}},
		{"missing-kind", []version{
			of(configMap("before-missing", "a")), of("{apiVersion: example.com/v1, kind: Missing, metadata: {name: missing-kind, namespace: default}}"),
			of(configMap("after-missing", "a")),
		}},
		{"missing-version", []version{of("{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: missing-version, namespace: default}}")}},
		{"missing-namespace", []version{
			of(strings.Replace(configMap("missing-namespace", "a"), "default", "nowhere", 1), configMap("beside-refused", "a")),
			of(configMap("missing-namespace", "a"), configMap("beside-refused", "b")),
		}},
		{"refused-type", []version{of(pods("Deployment", "refused-type", "v1", "paused: maybe"))}},
		{"refused-change", []version{
			of(pods("Deployment", "refused-change", "v1", "replicas: 1"), configMap("refused-beside", "a"), configMap("refused-leaves", "a")),
			of(strings.ReplaceAll(pods("Deployment", "refused-change", "v2", "replicas: 1"), "{app: refused-change}", "{app: other}"), configMap("refused-beside", "b")),
			of(pods("Deployment", "refused-change", "v2", "replicas: 1")),
		}},
		{"create-only", []version{
			{manifests: []string{configMap("create-only", "a")}, configs: []string{strategy("", "configmaps", "create-only", "CreateOnly")}},
			{manifests: []string{configMap("create-only", "b")}, configs: []string{strategy("", "configmaps", "create-only", "CreateOnly")}},
			gone,
		}},
		{"read-only", []version{
			{manifests: []string{configMap("read-only", "a")}, configs: []string{strategy("", "configmaps", "read-only", "ReadOnly")}},
			of(configMap("read-only", "a")),
			{manifests: []string{configMap("read-only", "b")}, configs: []string{strategy("", "configmaps", "read-only", "ReadOnly")}},
			gone,
		}},
		{"server-side", []version{
			{manifests: []string{pods("Deployment", "server-side", "v1", "replicas: 1")}, configs: []string{strategy("apps", "deployments", "server-side", "ServerSideApply")}},
			{manifests: []string{pods("Deployment", "server-side", "v2", "replicas: 1")}, configs: []string{strategy("apps", "deployments", "server-side", "ServerSideApply")}},
			gone,
		}},
		{"labels", []version{
			{manifests: []string{labelled("labels", "{one: a, two: a}")}, configs: []string{asked("", "configmaps", "default", "labels")}},
			{manifests: []string{labelled("labels", "{two: b, three: b}")}, configs: []string{asked("", "configmaps", "default", "labels")}},
		}},
		{"orphan", []version{{manifests: []string{configMap("orphan", "a")}, delete: "{propagationPolicy: Orphan}"}, gone}},
		{"selective", []version{{
			manifests: []string{configMap("selective", "a"), configMap("selected", "a")},
			delete: `{propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {orphaningRules: [
  {group: "", resource: configmaps, namespace: default, name: selected}]}}`,
		}, gone}},
		{"orphan-leaves", []version{
			{manifests: []string{configMap("orphan-stays", "a"), configMap("orphan-leaves", "a")}, delete: "{propagationPolicy: Orphan}"},
			{manifests: []string{configMap("orphan-stays", "b")}, delete: "{propagationPolicy: Orphan}"},
		}},
		{"no-orphan-any-more", []version{
			{manifests: []string{configMap("no-orphan", "a")}, delete: "{propagationPolicy: Orphan}"}, of(configMap("no-orphan", "a")), gone,
		}},
		{"shares", []version{of(configMap("shared", "a")), gone}},
		{"shares-too", []version{of(configMap("shared", "a"))}},
		{"feedback", []version{{manifests: []string{configMap("feedback", "a")}, configs: []string{
			`{resourceIdentifier: {group: "", resource: configmaps, namespace: default, name: "*back"}, feedbackRules: [{type: JSONPaths, jsonPaths: [
  {name: list, path: .metadata}, {name: unparsable, path: ".data["}, {name: newer, path: .kind, version: v2}, {name: absent, path: .data.none},
  {name: brackets, path: ".metadata.labels['a']"}, {name: kind, path: .kind}]}]}`,
		}}}},
		{"well-known", []version{{manifests: []string{configMap("well-known", "a")}, configs: []string{
			`{resourceIdentifier: {group: "", resource: configmaps, namespace: default, name: well-known}, feedbackRules: [{type: WellKnownStatus}]}`,
		}}}},
	}
}

// pods is a workload; more are further fields of its spec.
func pods(kind, name, tag string, more ...string) string {
	fields := append([]string{
		"selector: {matchLabels: {app: " + name + "}}",
		"template: {metadata: {labels: {app: " + name + `}}, spec: {containers: [{name: agent, image: "example.com/agent:` + tag + `"}]}}`,
	}, more...)
	return fmt.Sprintf("{apiVersion: apps/v1, kind: %s, metadata: {name: %s, namespace: default}, spec: {%s}}", kind, name, strings.Join(fields, ", "))
}

func job(name, tag string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s, namespace: default},
  spec: {template: {spec: {restartPolicy: Never, containers: [{name: agent, image: "example.com/agent:%s"}]}}}}`, name, tag)
}

func cronJob(name, schedule string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: %s, namespace: default}, spec: {schedule: "%s",
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: agent, image: "example.com/agent:v1"}]}}}}}}`, name, schedule)
}

func pod(name, tag string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: default}, spec: {containers: [{name: agent, image: "example.com/agent:%s"}]}}`, name, tag)
}

func configMap(name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}, data: {value: %s}}", name, value)
}

func labelled(name, labels string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default, labels: %s}}", name, labels)
}

func definition(kind, plural string) string {
	return fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s.example.com},
  spec: {group: example.com, scope: Namespaced, names: {kind: %s, plural: %[1]s, singular: %[3]s, listKind: %[2]sList},
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`,
		plural, kind, strings.ToLower(kind))
}

// custom is a custom resource without a spec.
func custom(kind, name, data string) string {
	return fmt.Sprintf("{apiVersion: example.com/v1, kind: %s, metadata: {name: %s, namespace: default}, data: %s}", kind, name, data)
}

// asked are feedback rules for an object without a status.
func asked(group, resource, namespace, name string) string {
	return fmt.Sprintf(`{resourceIdentifier: {group: "%s", resource: %s, namespace: "%s", name: %s}, feedbackRules: [{type: JSONPaths, jsonPaths: [
  {name: kind, path: .kind}, {name: value, path: .data.value}, {name: text, path: .data.text},
  {name: one, path: .metadata.labels.one}, {name: two, path: .metadata.labels.two}, {name: three, path: .metadata.labels.three}]}]}`,
		group, resource, namespace, name)
}

// strategy is an update strategy, and a feedback rule.
func strategy(group, resource, name, kind string) string {
	return fmt.Sprintf(`{resourceIdentifier: {group: "%s", resource: %s, namespace: default, name: %s}, updateStrategy: {type: %s},
  feedbackRules: [{type: JSONPaths, jsonPaths: [{name: value, path: .data.value}]}]}`, group, resource, name, kind)
}

// template is the version as a template's spec.
func (v version) template(addOn string) map[string]any {
	text := fmt.Sprintf("addonName: %s\nagentSpec:\n  workload: {manifests: [%s]}\n", addOn, strings.Join(v.manifests, ",\n"))
	if len(v.configs) > 0 {
		text += fmt.Sprintf("  manifestConfigs: [%s]\n", strings.Join(v.configs, ",\n"))
	}
	if v.delete != "" {
		text += "  deleteOption: " + v.delete + "\n"
	}
	var spec map[string]any
	Expect(yaml.Unmarshal([]byte(text), &spec)).To(Succeed(), text)
	return spec
}

// bothAgents are two clusters of one hub, with an agent each.
type bothAgents struct {
	*demo.World
	// real is the cluster of OCM's work agent, managed its API server.
	real, simulated string
	managed         client.Client
	// model are the controllers of the real cluster, and running says whether they act.
	model   *spoke.Cluster
	running bool
	// objects are all that works listed, by add-on.
	objects map[string][]*unstructured.Unstructured
	differs []string
}

var _ = Describe("The simulated agent", func() {
	It("answers the same works as OCM's work agent does, for every kind and everything that goes wrong", func(ctx SpecContext) {
		w, err := demo.StartWorld(ctx, demo.WorldOptions{
			Release: hub.OCM12, Clusters: memberNames(), Canaries: memberNames()[:1], Fleet: fleet.Options{DeadlineAfter: time.Second}, Output: GinkgoWriter,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(w.Stop()).To(Succeed()) })
		both := &bothAgents{
			World: w, real: memberNames()[0], simulated: memberNames()[1], running: true,
			model: spoke.NewWorld(spoke.Options{}).NewCluster(), objects: map[string][]*unstructured.Unstructured{},
		}
		w.Fleet.Silence(both.real)
		both.managed = startKlusterlet(ctx, w, both.real)

		table := answers()
		for round := range 5 {
			for _, row := range table {
				if round < len(row.versions) {
					both.write(ctx, row.name, row.versions[round])
				}
			}
			both.agree(ctx, fmt.Sprintf("version %d", round+1), table)
		}

		late := []answered{{name: "late"}}
		kinds := func(tag string) version {
			return of(pods("Deployment", "late", tag, "replicas: 1"), pods("DaemonSet", "late", tag), pods("StatefulSet", "late", tag, "replicas: 1", "serviceName: s"))
		}
		both.write(ctx, "late", kinds("v1"))
		both.agree(ctx, "before the controllers stand still", late)
		w.Fleet.Hold(both.simulated)
		both.running = false
		both.write(ctx, "late", kinds("v2"))
		both.agree(ctx, "while the controllers stand still", late)
		w.Fleet.Release(both.simulated)
		both.running = true
		both.agree(ctx, "after it", late)
		Expect(both.differs).To(BeEmpty(), "OCM's work agent -> the simulated one:\n"+strings.Join(both.differs, "\n"))
	}, SpecTimeout(10*time.Minute))
})

// write makes the works of an add-on what AddonFlow renders of a version, on both clusters. It is
// rendered for one of them, because a digest is that of a cluster.
func (b *bothAgents) write(ctx context.Context, addOn string, v version) {
	GinkgoHelper()
	for _, cluster := range []string{b.real, b.simulated} {
		var list workv1.ManifestWorkList
		Expect(b.Client.List(ctx, &list, client.InNamespace(cluster), client.MatchingLabels{addOnNameLabel: addOn})).To(Succeed())
		existing := make([]*workv1.ManifestWork, 0, len(list.Items))
		for i := range list.Items {
			list.Items[i].Namespace = b.real
			existing = append(existing, &list.Items[i])
		}
		desired, remove := []*workv1.ManifestWork(nil), existing
		if len(v.manifests) > 0 {
			desired, remove = b.render(addOn, v, existing)
		}
		for _, work := range desired {
			work.Namespace, work.OwnerReferences = cluster, nil // there is no ManagedClusterAddOn
			if work.ResourceVersion == "" {
				Expect(b.Client.Create(ctx, work)).To(Succeed(), addOn)
			} else {
				Expect(b.Client.Update(ctx, work)).To(Succeed(), addOn)
			}
		}
		for _, work := range remove {
			work.Namespace = cluster
			Expect(b.Client.Delete(ctx, work)).To(Succeed(), addOn)
		}
	}
}

// render returns the works of an add-on, and notes its objects.
func (b *bothAgents) render(addOn string, v version, existing []*workv1.ManifestWork) (desired, remove []*workv1.ManifestWork) {
	GinkgoHelper()
	renderer, err := render.NewRenderer(render.Content{
		AddOn:     addOn,
		Templates: []render.Template{{Name: addOn, SpecHash: "known", Spec: v.template(addOn)}},
		Defaults:  []render.ConfigReference{{Group: "addon.open-cluster-management.io", Resource: render.TemplateResource, Name: addOn}},
	}, chart.InProcess{})
	Expect(err).NotTo(HaveOccurred(), addOn)
	rendered, err := renderer.Render(render.Cluster{Name: b.real})
	Expect(err).NotTo(HaveOccurred(), addOn)
	objects, err := rendered.Objects()
	Expect(err).NotTo(HaveOccurred(), addOn)
	b.objects[addOn] = append(b.objects[addOn], objects...)
	desired, remove, err = rendered.Works(render.Owner{Name: addOn, Namespace: b.real, UID: "none", Source: "default/none", Revision: rendered.Digest}, existing)
	Expect(err).NotTo(HaveOccurred(), addOn)
	return desired, remove
}

// agree waits until both agents say the same of every add-on, and left the same on their
// clusters. What they do not agree on is shown when all is over.
func (b *bothAgents) agree(ctx context.Context, when string, table []answered) {
	GinkgoHelper()
	By(when)
	var lines []string
	for begun := time.Now(); ; {
		lines = nil
		for _, row := range table {
			for _, line := range difference(b.seen(ctx, row.name, b.real), b.seen(ctx, row.name, b.simulated)) {
				lines = append(lines, when+": "+row.name+": "+line)
			}
		}
		if len(lines) == 0 || time.Since(begun) > 40*time.Second {
			break
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			Fail(ctx.Err().Error())
		}
	}
	b.differs = append(b.differs, lines...)
}

// seen is the report of an agent about an add-on, and the objects of the add-on on the cluster.
func (b *bothAgents) seen(ctx context.Context, addOn, cluster string) flat {
	GinkgoHelper()
	out := flat{}
	var works workv1.ManifestWorkList
	Expect(b.Client.List(ctx, &works, client.InNamespace(cluster), client.MatchingLabels{addOnNameLabel: addOn})).To(Succeed())
	for i := range works.Items {
		work := &works.Items[i]
		if cluster == b.real {
			b.play(ctx, work)
		}
		flatten(out, work.Name+".generation", work.Generation)
		flattenConditions(out, work.Name, work.Status.Conditions)
		for _, m := range work.Status.ResourceStatus.Manifests {
			path := fmt.Sprintf("%s.manifests[%d]", work.Name, m.ResourceMeta.Ordinal)
			flatten(out, path+".meta", generic(m.ResourceMeta))
			flattenConditions(out, path, m.Conditions)
			for _, v := range m.StatusFeedbacks.Values {
				flatten(out, path+".values["+v.Name+"]", generic(v.Value))
			}
		}
	}
	b.flattenObjects(ctx, out, addOn, cluster)
	return out
}

// flattenConditions lists conditions without times. The words with which an API server refuses
// an object are its own.
func flattenConditions(out flat, path string, conditions []metav1.Condition) {
	for _, c := range conditions {
		message, _, _ := strings.Cut(c.Message, "Failed to apply manifest: ")
		flatten(out, path+".conditions["+c.Type+"]", strings.Join([]string{string(c.Status), c.Reason, fmt.Sprint(c.ObservedGeneration), message}, " "))
	}
}

// flattenObjects lists which of the objects that works of an add-on listed are on a cluster.
func (b *bothAgents) flattenObjects(ctx context.Context, out flat, addOn, cluster string) {
	GinkgoHelper()
	there := b.Fleet.Objects(b.simulated)
	for _, o := range b.objects[addOn] {
		name := strings.Join(slices.DeleteFunc([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, func(s string) bool { return s == "" }), "/")
		found := slices.Contains(there, name)
		if cluster == b.real {
			err := b.managed.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy())
			if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				Expect(err).NotTo(HaveOccurred(), name)
			}
			found = err == nil
		}
		flatten(out, name, found)
	}
}

// play writes the status that the controllers of the managed cluster would. They are those of
// the simulated clusters: what is compared are agents.
func (b *bothAgents) play(ctx context.Context, work *workv1.ManifestWork) {
	GinkgoHelper()
	if !b.running || work.DeletionTimestamp != nil {
		return
	}
	results := b.model.Apply(work)
	for b.model.Step(work.Name) {
	}
	b.model.GiveUp(work.Name)
	for _, r := range results {
		modelled, err := b.model.Truth()(r.Meta)
		Expect(err).NotTo(HaveOccurred())
		if modelled == nil || modelled.Object["status"] == nil {
			continue
		}
		live := modelled.DeepCopy()
		if b.managed.Get(ctx, client.ObjectKeyFromObject(live), live) != nil {
			continue // the agent has not created it
		}
		status, _ := modelled.Object["status"].(map[string]any)
		if r.Meta.Kind == "Job" { // an API server refuses a Job that ended without times
			status["startTime"] = live.GetCreationTimestamp().Format(time.RFC3339)
			if succeeded, _ := status["succeeded"].(int64); succeeded > 0 {
				status["completionTime"] = status["startTime"]
			}
		}
		before, _ := live.Object["status"].(map[string]any)
		after := maps.Clone(before)
		if after == nil {
			after = map[string]any{}
		}
		maps.Copy(after, status)
		was, now := flat{}, flat{}
		flatten(was, "", generic(before))
		flatten(now, "", generic(after))
		if len(difference(was, now)) > 0 {
			live.Object["status"] = status
			_ = b.managed.Status().Update(ctx, live) // a conflict is looked at again
		}
	}
}
