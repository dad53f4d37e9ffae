package dashboard

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/show"
)

const (
	// linksBytes is the most bytes of the squares of a fleet that are links with the name and the reason of their
	// cluster. Reasons are cut to the remaining bytes. If less than reasonBytes remain for each reason, the squares
	// are painted instead.
	linksBytes, squareBytes, reasonBytes = 100 << 10, 100, 24
	// groupsShown and namesShown limit the list below the squares.
	groupsShown = 10
	namesShown  = 10
)

// Size of a square, size of its place, and squares per row. style.css also has the size of a large square.
const (
	largeSquare, largePlace, largeRow = 14, 17, 40
	smallSquare, smallPlace, smallRow = 5, 6, 125
)

// Squares draw clusters: one square each, in order of name.
type Squares struct {
	// Width and Height of the drawing.
	Width, Height int
	// Linked are squares with links. Painted are paths, each of which draws many squares.
	Linked  []Square
	Painted []Painted
	// Groups are the clusters by state and reason, the worst first.
	Groups []Group
	// Rest are, by state, the clusters that are in no group. All is the page that lists all clusters.
	Rest []Group
	All  string
}

// Square is one cluster.
type Square struct {
	X, Y int
	Mark
	// Cluster is its name, To the link to it. Title has its state and the reason.
	Cluster, To, Title string
}

// Painted is a path through all clusters of a group. Its strokes are as wide as a square, and dashed, so that a
// series of squares is one line.
type Painted struct {
	Mark
	D, Title string
}

// Group is a set of clusters in the same state for the same reason.
type Group struct {
	Mark
	Reason string
	Count  int
	First  []Link
	More   int
	All    string
}

type groupKey struct {
	state  rollout.State
	reason string
}

func keyOf(c rollout.ClusterPlan) groupKey { return groupKey{c.State, alike(c.Reason)} }

// generated matches the suffixes that Kubernetes adds to the names of ReplicaSets and pods. The pod template of an
// add-on contains the name of the cluster, so these suffixes differ between clusters that fail for the same reason.
var generated = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}(-[bcdfghjklmnpqrstvwxz2456789]{5})?\b`)

// alike is a reason without the generated parts of names.
func alike(reason string) string { return generated.ReplaceAllString(reason, "-*") }

// roomOf is how many bytes the reason of a square may have if all squares of a rollout are links.
func roomOf(clusters []rollout.ClusterPlan) int {
	remaining := linksBytes
	for _, c := range clusters {
		remaining -= squareBytes + 2*len(c.Name) // the name is in the link and in the title
	}
	return remaining / max(len(clusters), 1)
}

// drawn returns the squares of clusters of a stage, which are sorted by name. room is that of a reason.
func drawn(r *v1alpha1.AddOnRollout, stage string, clusters []rollout.ClusterPlan, room int) Squares {
	s := Squares{All: clustersPath(r, ClustersOf{Stage: stage})}
	order, members := grouped(clusters)
	for _, key := range order[:min(len(order), groupsShown)] {
		g := groupOf(key, members[key])
		g.All = clustersPath(r, ClustersOf{Stage: stage, State: string(key.state)})
		s.Groups = append(s.Groups, g)
	}
	for _, key := range order[min(len(order), groupsShown):] { // by state
		if n := len(s.Rest); n == 0 || s.Rest[n-1].Mark != stateMark(key.state) {
			s.Rest = append(s.Rest, Group{Mark: stateMark(key.state), All: clustersPath(r, ClustersOf{Stage: stage, State: string(key.state)})})
		}
		s.Rest[len(s.Rest)-1].Count += len(members[key])
	}
	if room >= reasonBytes {
		s.link(clusters, room)
	} else {
		s.paint(clusters, order)
	}
	return s
}

// grouped are the clusters by state and reason, the worst state first, then the largest group.
func grouped(clusters []rollout.ClusterPlan) ([]groupKey, map[groupKey][]string) {
	members := map[groupKey][]string{}
	var order []groupKey
	for _, c := range clusters {
		key := keyOf(c)
		if members[key] == nil {
			order = append(order, key)
		}
		members[key] = append(members[key], c.Name)
	}
	slices.SortStableFunc(order, func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(severity(a.state), severity(b.state)), cmp.Compare(len(members[b]), len(members[a])))
	})
	return order, members
}

// severity ranks states: those that need a user come first.
func severity(s rollout.State) int { return toneOrder(show.ClusterMark(s).Tone()) }

func groupOf(key groupKey, names []string) Group {
	g := Group{Mark: stateMark(key.state), Reason: key.reason, Count: len(names)}
	for _, name := range names[:min(len(names), namesShown)] {
		g.First = append(g.First, Link{name, clusterPath(name)})
	}
	g.More = len(names) - len(g.First)
	return g
}

func stateMark(s v1alpha1.ClusterState) Mark { return markOf(string(s), show.ClusterMark(s)) }

func (s *Squares) link(clusters []rollout.ClusterPlan, room int) {
	s.size(len(clusters), largePlace, largeRow)
	for i, c := range clusters {
		title := c.Name + ": " + string(c.State)
		if c.Reason != "" {
			title += ": " + brief.Cut(c.Reason, room)
		}
		s.Linked = append(s.Linked, Square{
			X: i % largeRow * largePlace, Y: i / largeRow * largePlace,
			Mark: stateMark(c.State), Cluster: c.Name, To: clusterPath(c.Name), Title: title,
		})
	}
}

// paint draws the clusters of each group as one path. Groups that are not listed have one path per
// state.
func (s *Squares) paint(clusters []rollout.ClusterPlan, order []groupKey) {
	s.size(len(clusters), smallPlace, smallRow)
	listed := map[groupKey]bool{}
	for _, key := range order[:min(len(order), groupsShown)] {
		listed[key] = true
	}
	paths := map[groupKey]*strings.Builder{}
	var first []groupKey
	for i := 0; i < len(clusters); {
		key := keyOf(clusters[i])
		if !listed[key] {
			key.reason = ""
		}
		run := 1
		for i+run < len(clusters) && (i+run)%smallRow != 0 {
			next := keyOf(clusters[i+run])
			if !listed[next] {
				next.reason = ""
			}
			if next != key {
				break
			}
			run++
		}
		if paths[key] == nil {
			paths[key] = &strings.Builder{}
			first = append(first, key)
		}
		fmt.Fprintf(paths[key], "M%d %dh%d", i%smallRow*smallPlace, i/smallRow*smallPlace+smallSquare/2, run*smallPlace-1)
		i += run
	}
	for _, key := range first {
		title := string(key.state)
		if key.reason != "" {
			title += ": " + key.reason
		}
		s.Painted = append(s.Painted, Painted{stateMark(key.state), paths[key].String(), title})
	}
}

func (s *Squares) size(n, place, row int) {
	s.Width = min(n, row) * place
	s.Height = (n + row - 1) / row * place
}
