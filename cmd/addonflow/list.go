package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

// listing is one run of `get`: the request to the hub, and the printer of the answer.
type listing struct {
	*getOptions
	hub   client.WithWatch
	names []string // none: all
	// only selects objects; nil: all.
	only    func(client.Object) bool
	options []client.ListOption
	printer printers.ResourcePrinter
}

// listing connects to the hub, after the flags were checked.
func (o *getOptions) listing(names []string) (*listing, error) {
	printer, err := o.printer()
	if err != nil {
		return nil, err
	}
	options, err := o.options()
	if err != nil {
		return nil, err
	}
	hub, err := o.connect()
	if err != nil {
		return nil, err
	}
	return &listing{getOptions: o, hub: hub, names: names, options: options, printer: printer}, nil
}

func (l *listing) run(ctx context.Context, kind listed) error {
	if !l.watch {
		return l.once(ctx, kind)
	}
	return l.follow(ctx, kind.name, kind.list, func(changes []change) error {
		var objects []client.Object
		for _, ch := range changes {
			if l.wanted(ch.object) && (ch.kind != watch.Deleted || !kind.expires) {
				objects = append(objects, ch.object)
			}
		}
		return l.write(kind, objects, nil)
	})
}

// orders are the orders for a table of rollouts, because a rollout is pending until its orders are answered. One
// request reads them for all rollouts. With --watch they are not read, because no event of a rollout would report
// that an order was answered.
func (l *listing) orders(ctx context.Context, kind listed) ([]v1alpha1.AddOnOrder, error) {
	if kind.kind != v1alpha1.AddOnRolloutKind || !l.table() {
		return nil, nil
	}
	if l.allNamespaces {
		return ordersIn(ctx, l.hub, metav1.NamespaceAll)
	}
	namespace, err := l.namespace()
	if err != nil {
		return nil, err
	}
	return ordersIn(ctx, l.hub, namespace)
}

// follow calls see with the objects of a list, and then with each change.
func (l *listing) follow(ctx context.Context, what string, list client.ObjectList, see func([]change) error) error {
	f := follower{hub: l.hub, list: list, options: l.options, see: see}
	return hubError("watch "+what, f.run(ctx))
}

// once prints the objects. A name that does not exist is an error.
func (l *listing) once(ctx context.Context, kind listed) error {
	list, ok := kind.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return fmt.Errorf("cannot list into a %T", kind.list)
	}
	orders, err := l.orders(ctx, kind) // read first, so that no rollout is older than the answers
	if err != nil {
		return err
	}
	if err := l.hub.List(ctx, list, l.options...); err != nil {
		return hubError("list "+kind.name, err)
	}
	items, err := apimeta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("cannot read a list: %w", err)
	}
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		if object, ok := item.(client.Object); ok && l.wanted(object) {
			objects = append(objects, object)
		}
	}
	if missing := l.absent(objects); len(missing) > 0 {
		return &exitError{code: exitNotFound, err: fmt.Errorf("cannot find %s %s%s", kind.name, strings.Join(missing, ", "), l.elsewhere())}
	}
	if len(objects) == 0 {
		l.hint("No %s found.", kind.name)
	}
	if l.table() || len(l.names) == 1 || *l.print.OutputFormat == "name" {
		return l.write(kind, objects, orders)
	}
	kind.label(objects)
	return l.writeList(list, objects)
}

// write prints the objects: as one table, where rollouts have the orders that wait, or one after another.
func (l *listing) write(kind listed, objects []client.Object, orders []v1alpha1.AddOnOrder) error {
	if l.table() {
		if len(objects) == 0 {
			return nil
		}
		for i, o := range objects {
			if r, ok := o.(*v1alpha1.AddOnRollout); ok {
				objects[i] = show.WithOrders(r, orders)
			}
		}
		return l.writeTable(kind.table(l.now(), objects))
	}
	kind.label(objects)
	for _, object := range objects {
		if err := l.printer.PrintObj(object, l.Out); err != nil {
			return fmt.Errorf("cannot print %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// writeTable prints a table in one write, because the printer of tables ignores write errors.
func (l *listing) writeTable(table *metav1.Table) error {
	var text bytes.Buffer
	if err := l.printer.PrintObj(table, &text); err != nil {
		return fmt.Errorf("cannot print a table: %w", err)
	}
	_, err := l.Out.Write(text.Bytes())
	return err
}

// elsewhere is the hint for names that are not in the namespace.
func (o *getOptions) elsewhere() string {
	if o.allNamespaces {
		return ""
	}
	return "; use -n NAMESPACE for another namespace"
}

// writeList prints the objects in the list that contained them.
func (l *listing) writeList(list client.ObjectList, objects []client.Object) error {
	items := make([]runtime.Object, 0, len(objects))
	for _, object := range objects {
		items = append(items, object)
	}
	if err := apimeta.SetList(list, items); err != nil {
		return fmt.Errorf("cannot print the list: %w", err)
	}
	if err := l.printer.PrintObj(list, l.Out); err != nil {
		return fmt.Errorf("cannot print the list: %w", err)
	}
	return nil
}

func (l *listing) wanted(o client.Object) bool {
	if l.only != nil && !l.only(o) {
		return false
	}
	return len(l.names) == 0 || slices.Contains(l.names, o.GetName())
}

func (l *listing) absent(objects []client.Object) []string {
	return slices.DeleteFunc(slices.Clone(l.names), func(name string) bool {
		return slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == name })
	})
}
