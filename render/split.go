package render

import (
	"cmp"
	"slices"
)

const (
	// WorkLimit is the hub's limit for the manifests of one ManifestWork, in bytes.
	WorkLimit = 500 * 1024
	// workRoom is the size to which OCM fills a work with new manifests: 80 %, so that the manifests in it can grow.
	workRoom = WorkLimit * 8 / 10
)

// sized is an object and its size in a work.
type sized struct {
	id   Identity
	size int
}

// split places objects into works and returns their indexes per work: first the existing works,
// in their order, then new ones. present holds the objects of each existing work. It places as
// OCM does:
//
//   - an object stays in its work, at its position: moving it would let the
//     managed cluster delete it and create it again;
//   - new ones go, largest first, into the existing work with the most room below
//     80 % of the limit, else into new works, filled one after the other. Ties are
//     broken by identity, while OCM's order is random;
//   - unlike in OCM, objects that grew beyond the limit of their work leave it,
//     last first, because the hub would refuse the work.
func split(objects []sized, present [][]Identity) [][]int {
	index := make(map[Identity]int, len(objects))
	for i, o := range objects {
		index[o.id] = i
	}
	parts := make([][]int, len(present))
	placed := make([]bool, len(objects))
	for p, ids := range present {
		for _, id := range ids {
			if i, ok := index[id]; ok && !placed[i] {
				parts[p], placed[i] = append(parts[p], i), true
			}
		}
		for len(parts[p]) > 1 && total(objects, parts[p]) > WorkLimit {
			last := len(parts[p]) - 1
			placed[parts[p][last]] = false
			parts[p] = parts[p][:last]
		}
	}
	return placeNew(objects, placed, parts)
}

// placeNew places the objects that are in no existing work.
func placeNew(objects []sized, placed []bool, parts [][]int) [][]int {
	var rest []int
	for i := range objects {
		if !placed[i] {
			rest = append(rest, i)
		}
	}
	slices.SortFunc(rest, func(a, b int) int {
		return cmp.Or(cmp.Compare(objects[b].size, objects[a].size), compareIdentity(objects[a].id, objects[b].id))
	})
	room := make([]int, len(parts))
	for p := range parts {
		room[p] = workRoom - total(objects, parts[p])
	}
	added, filled := [][]int(nil), 0
	for _, i := range rest {
		size := objects[i].size
		if p := roomiest(room); p >= 0 && size < room[p] {
			parts[p] = append(parts[p], i)
			room[p] -= size
			continue
		}
		if len(added) == 0 || filled+size >= workRoom {
			added, filled = append(added, nil), 0
		}
		added[len(added)-1] = append(added[len(added)-1], i)
		filled += size
	}
	return append(parts, added...)
}

// roomiest returns the index of the largest room, the first of several; -1: none.
func roomiest(room []int) int {
	best := -1
	for p := range room {
		if best < 0 || room[p] > room[best] {
			best = p
		}
	}
	return best
}

func total(objects []sized, part []int) int {
	n := 0
	for _, i := range part {
		n += objects[i].size
	}
	return n
}

func compareIdentity(a, b Identity) int {
	return cmp.Or(
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
