package rollout

import "slices"

// Dependents are the add-ons that depend on the add-on, sorted. Members of its own cycles are left out, because they
// would wait for each other.
func Dependents(addOn string, needs map[string][]string) []string {
	below := map[string]bool{addOn: true}
	for queue := []string{addOn}; len(queue) > 0; queue = queue[1:] {
		for _, next := range needs[queue[0]] {
			if !below[next] {
				below[next] = true
				queue = append(queue, next)
			}
		}
	}
	var found []string
	for name, all := range needs {
		if !below[name] && slices.Contains(all, addOn) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// Cycle returns a shortest cycle of add-ons that begins and ends with the add-on; nil: there is none. needs has, for
// each add-on, the names of the add-ons that it depends on.
func Cycle(addOn string, needs map[string][]string) []string {
	from := map[string]string{}
	for queue := []string{addOn}; len(queue) > 0; queue = queue[1:] {
		for _, next := range slices.Sorted(slices.Values(needs[queue[0]])) {
			if next == addOn {
				return pathTo(addOn, queue[0], from)
			}
			if _, seen := from[next]; !seen {
				from[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// pathTo is the path of a cycle: its first element is an add-on, and last is the element before its end.
func pathTo(addOn, last string, from map[string]string) []string {
	path := []string{addOn}
	for at := last; at != addOn; at = from[at] {
		path = append(path, at)
	}
	path = append(path, addOn)
	slices.Reverse(path)
	return path
}
