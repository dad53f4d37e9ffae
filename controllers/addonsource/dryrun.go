package addonsource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
)

// reasonNotAdmitted is the reason of a problem found by the API server.
const reasonNotAdmitted problem.Reason = "NotAdmitted"

// dryRun asks the API server for every object that differs whether it accepts the object. It uses a dry-run create
// under a generated name, so that the schema and every admission policy judge the whole object. A refusal is a
// problem of the commit; then nothing of the commit is applied. A commit that is already on the hub is not judged
// again, unless objects to which it refers have changed its content. If the API server refused to repair an object,
// that is a problem of the commit, too, and is tried again.
func (p *pass) dryRun(ctx context.Context, a *attempt, todo plan) error {
	applied := p.source.Status.LastAttemptedRevision == p.head.String() && p.source.Status.LastAttemptedSpec == p.spec
	a.refusedByHub = slices.ContainsFunc(todo.changes(), func(c change) bool { return len(c.refused) > 0 })
	if (a.accepted || applied && !p.requested) && !p.grown(todo) && !a.refusedByHub {
		return nil
	}
	if err := p.permit(ctx, a); err != nil {
		a.refusedByHub = a.refusedByHub || p.account != nil // rights may be given later
		return err
	}
	problems, err := p.tryRevisions(ctx, a, todo)
	if err != nil {
		return err
	}
	created := createdNamespaces(todo)
	for _, c := range todo.changes() {
		found, err := p.tryCreate(ctx, c.desired, created)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			found = c.refused
		}
		if len(found) == 0 && p.account != nil && c.live == nil { // an account may have the right to create an object, but not to apply it
			if found, err = p.tryFirstApply(ctx, &c, created); err != nil {
				return err
			}
		}
		if namespace := c.desired.GetNamespace(); created[namespace] {
			sayNamespaceIsNew(found, namespace)
		}
		if p.account != nil && givesRights(todo, keyOf(c.desired)) {
			sayRightsDoNotCount(found, accountUser(p.accountKey()))
		}
		problems = append(problems, asWritten(a.objects, keyOf(c.desired), found)...)
	}
	undone, err := p.tryUndoing(ctx, a, todo)
	if err != nil {
		return err
	}
	a.refusedByHub = a.refusedByHub || len(undone) > 0
	problems = append(problems, undone...)
	if len(problems) > 0 {
		a.refusedByHub = a.refusedByHub || p.account != nil
		return refuse(v1alpha1.ValidationFailedReason, problems.Sorted())
	}
	a.accepted = true
	return nil
}

// grown reports whether the content of an add-on of the plan differs from what was applied
// last.
func (p *pass) grown(todo plan) bool {
	return slices.ContainsFunc(todo.addOns, func(next v1alpha1.SourcedAddOn) bool {
		return !slices.ContainsFunc(p.source.Status.AddOns, func(before v1alpha1.SourcedAddOn) bool {
			return before.Name == next.Name && before.Digest == next.Digest
		})
	})
}

// tryRevisions returns the objections to the AddOnRevisions that hold the content of add-ons.
func (p *pass) tryRevisions(ctx context.Context, a *attempt, todo plan) (problem.List, error) {
	var problems problem.List
	for _, addOn := range todo.revisions {
		one := problem.Problem{Reason: reasonNotAdmitted, Kind: addOnKind, Name: addOn.Name}
		err := p.ensureRevision(ctx, client.NewDryRunClient(p.Client), addOn)
		switch {
		case err == nil:
			continue
		case errors.Is(err, render.ErrTooLarge):
			one.Reason = flaw.ReasonLimitExceeded
			one.Hint = "split the add-on, or move data out of its templates and configurations"
		case errors.Is(err, errOtherContent):
			one.Hint = "delete that AddOnRevision if no AddOnRollout names it, or change the add-on"
		case transient(err):
			return nil, retry(v1alpha1.ApplyFailedReason, err)
		}
		one.Message = err.Error()
		problems = append(problems, one)
	}
	return asWritten(a.objects, objectKey{}, problems), nil
}

// tryUndoing returns the API server's objections to the removals of the pass: of fields of the
// ClusterManagementAddOns that it takes over, and of objects that left Git.
func (p *pass) tryUndoing(ctx context.Context, a *attempt, todo plan) (problem.List, error) {
	var problems problem.List
	try := func(live *unstructured.Unstructured, write func(client.Writer) error) error {
		err := write(client.NewDryRunClient(p.writer(keyOf(live))))
		if err == nil {
			return nil
		}
		found, err := objections(err, &change{desired: live, live: live})
		problems = append(problems, asWritten(a.objects, keyOf(live), found)...)
		return err
	}
	for _, t := range todo.takeOvers {
		if t.step != fenceOff && t.step != stripTemplates {
			continue
		}
		u, err := stripped(t.live) // it also has the fence
		if err != nil {
			return nil, err
		}
		if err := try(t.live, func(hub client.Writer) error { return patchExactly(ctx, hub, t.live, u) }); err != nil {
			return nil, err
		}
	}
	for _, live := range todo.pruned {
		if err := try(live, func(hub client.Writer) error { return deleteExactly(ctx, hub, live) }); err != nil {
			return nil, err
		}
	}
	return problems, nil
}

// sayNamespaceIsNew completes problems about missing rights in a Namespace that the commit creates. The messages
// of the API server name the namespace in which the object was tried. Rights that the commit itself gives do not
// count before it is applied.
func sayNamespaceIsNew(problems problem.List, namespace string) {
	const place = "in the namespace %q"
	for i := range problems {
		before := problems[i].Message
		after := strings.Replace(before, fmt.Sprintf(place, metav1.NamespaceDefault), fmt.Sprintf(place, namespace), 1)
		if strings.Contains(after, fmt.Sprintf(place, namespace)) {
			problems[i].Message = after
			problems[i].Hint = "Namespace " + namespace + " is new, so that a RoleBinding of the same commit does not count yet: create both first"
		}
	}
}

// givesRights reports whether the commit changes rights on the hub by another object than that with the key.
func givesRights(todo plan, key objectKey) bool {
	return slices.ContainsFunc(todo.changes(), func(c change) bool {
		return keyOf(c.desired).Group == rbacv1.GroupName && keyOf(c.desired) != key
	})
}

// sayRightsDoNotCount completes problems about missing rights of the account of the source. All objects are tried
// before any is written, so the API server does not know the rights that the commit gives.
func sayRightsDoNotCount(problems problem.List, user string) {
	for i := range problems {
		if problems[i].Hint == "" && strings.Contains(problems[i].Message, `"`+user+`"`) {
			problems[i].Hint = "rights that the same commit gives do not count yet: commit the roles and their bindings first"
		}
	}
}

// createdNamespaces returns the Namespaces that this commit creates.
func createdNamespaces(todo plan) map[string]bool {
	created := map[string]bool{}
	for _, c := range todo.namespaces {
		if c.live == nil {
			created[c.desired.GetName()] = true
		}
	}
	return created
}

// tryCreate returns the API server's objections to an object. An object in a Namespace that the
// same commit creates is tried in the namespace default.
func (p *pass) tryCreate(ctx context.Context, desired *unstructured.Unstructured, created map[string]bool) (problem.List, error) {
	u := desired.DeepCopy()
	u.SetName(generatedName(desired, p.head.Commit))
	if created[desired.GetNamespace()] {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	err := p.writer(keyOf(desired)).Create(ctx, u, client.DryRunAll, client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil, nil
	case apierrors.IsNotFound(err) && kindIn(err) != "namespaces":
		return nil, wait(v1alpha1.ReferenceNotFoundReason, p.backoff(), "waiting for what %s refers to: %s; if the same commit declares it, commit it first", keyOf(desired), err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		return nil, wait(v1alpha1.ReferenceNotFoundReason, p.backoff(), "waiting for Namespace %s on the hub", desired.GetNamespace())
	case transient(err):
		return nil, retry(v1alpha1.ApplyFailedReason, fmt.Errorf("the dry run of %s failed: %w", keyOf(desired), err))
	default:
		return refusals(err, desired, u.GetName()), nil
	}
}

// tryFirstApply returns the API server's objections to the apply of an object that does not exist yet. Nothing can be
// applied in a Namespace that the same commit creates; there, only the right to apply is checked.
func (p *pass) tryFirstApply(ctx context.Context, c *change, created map[string]bool) (problem.List, error) {
	if !created[c.desired.GetNamespace()] {
		return p.tryApply(ctx, c)
	}
	kind := c.desired.GroupVersionKind()
	mapping, err := p.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, retry(v1alpha1.ApplyFailedReason, fmt.Errorf("the dry run of %s failed: %w", keyOf(c.desired), err))
	}
	resource := mapping.Resource.GroupResource()
	allowed, err := p.accountMay(ctx, "apply "+keyOf(c.desired).String(), authorizationv1.ResourceAttributes{
		Verb: "patch", Group: resource.Group, Resource: resource.Resource, Namespace: c.desired.GetNamespace(), Name: c.desired.GetName(),
	})
	if allowed || err != nil {
		return nil, err
	}
	denied := fmt.Errorf("User %q cannot patch resource %q in API group %q in the namespace %q", //nolint:staticcheck // the text of the API server
		accountUser(p.accountKey()), resource.Resource, resource.Group, c.desired.GetNamespace())
	return refusals(apierrors.NewForbidden(resource, c.desired.GetName(), denied), c.desired, c.desired.GetName()), nil
}

// kindIn returns the resource that an answer of the API server is about.
func kindIn(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	return status.Status().Details.Kind
}

// generatedName returns an unused name of at most 63 characters.
func generatedName(u *unstructured.Unstructured, commit string) string {
	sum := sha256.Sum256([]byte(keyOf(u).String() + commit))
	name := u.GetName()
	name = strings.TrimRight(name[:min(len(name), 50)], "-.")
	return name + "-" + hex.EncodeToString(sum[:5])
}

// transient reports whether an error is unrelated to the object.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return terminating(err) || code == 0 || code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
		code == http.StatusRequestTimeout || code == http.StatusConflict || code == http.StatusUnauthorized
}

// terminating reports whether the API server refuses every new object of a kind or in a Namespace, because the kind
// or Namespace is being deleted. For a kind, neither cause nor reason shows this.
func terminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "custom resource definition is terminating")
}

// refusals converts the API server's answer into problems, one for each field that it names.
func refusals(err error, desired *unstructured.Unstructured, tried string) problem.List {
	whole := problem.Problem{
		Reason: reasonNotAdmitted, Kind: desired.GetKind(), Name: desired.GetName(),
		Message: strings.ReplaceAll(err.Error(), tried, desired.GetName()),
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return problem.List{whole}
	}
	causes := status.Status().Details.Causes
	if found := slices.DeleteFunc(slices.Clone(causes), unchecked); len(found) > 0 {
		causes = found
	}
	var problems problem.List
	for _, cause := range causes {
		one := whole
		one.Field, one.Message = cause.Field, strings.ReplaceAll(cause.Message, tried, desired.GetName())
		if one.Field == "<nil>" {
			one.Field = ""
		}
		if strings.Contains(cause.Message, `Invalid value: "null"`) {
			// Server-side apply writes null when it removes the last field of an object that is declared as {}.
			one.Hint = "leave the field out instead of declaring it as empty"
		}
		problems = append(problems, one)
	}
	return problems
}

// unchecked reports whether a cause only says that other causes ended the validation.
func unchecked(cause metav1.StatusCause) bool {
	return strings.Contains(cause.Message, "some validation rules were not checked")
}

// asWritten converts problems of an applied object into problems of the declared objects. If an AddOnRollout has no
// file, or its add-on declares the part with the problem, the problem is one of the ClusterManagementAddOn.
func asWritten(objects []gitsource.Object, key objectKey, problems problem.List) problem.List {
	problems = positioned(objects, key, problems)
	for i, one := range problems {
		rest, installs := strings.CutPrefix(one.Field, "spec.install.")
		if key.isRollout() && (installs || one.Path == "") {
			if one.Kind = addOnKind; installs {
				one.Field = "spec.installStrategy." + rest
			} else {
				one.Field = ""
			}
			one.Path, one.Line = "", 0
		}
		if one.Path == "" && one.Kind == addOnKind {
			declared := objectKey{Group: addonv1alpha1.GroupName, Kind: addOnKind, Name: one.Name}
			one = positioned(objects, declared, problem.List{one})[0]
		}
		problems[i] = one
	}
	return problems
}

// positioned adds file and line to problems of one object.
func positioned(objects []gitsource.Object, key objectKey, problems problem.List) problem.List {
	for _, object := range objects {
		declared := keyOf(object.Unstructured)
		if declared.Namespace == "" {
			declared.Namespace = key.Namespace
		}
		if declared != key {
			continue
		}
		for i := range problems {
			problems[i].Path, problems[i].Line = object.Position(problems[i].Field)
		}
	}
	return problems
}
