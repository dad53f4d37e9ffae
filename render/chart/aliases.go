package chart

import (
	"bytes"
	"fmt"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// If the aliases of a text can expand it to at most cheapExpansion bytes, the expansion is not
// counted. Each alias can at most double the size, because its target may contain the aliases
// before it. With maxStars aliases or more, the expansion is always counted.
const (
	cheapExpansion = 16 << 20
	maxStars       = 24
	// maxExpansion bounds what the aliases of a text expand to.
	maxExpansion = 64 << 20
)

// checkExpansion refuses a YAML text whose aliases expand to more than maxExpansion bytes. The
// parser bounds the number of nodes, but not the length of a string among them: a megabyte can
// expand to gigabytes.
func checkExpansion(text []byte) error {
	if stars := min(bytes.Count(text, []byte("*")), maxStars); len(text)<<stars <= cheapExpansion || !bytes.Contains(text, []byte("&")) {
		return nil
	}
	var root goyaml.Node
	if err := goyaml.Unmarshal(text, &root); err != nil {
		return fmt.Errorf("has aliases, and cannot be read: %w", err)
	}
	e := aliases{anchored: map[*goyaml.Node]int64{}}
	e.size(&root)
	if e.total > maxExpansion {
		return &refusal{fmt.Sprintf("has aliases that stand for more than %d MiB of text", maxExpansion>>20), "write them out, or leave them out"}
	}
	return nil
}

// aliases adds up the expanded sizes.
type aliases struct {
	anchored map[*goyaml.Node]int64
	total    int64
}

func (e *aliases) size(n *goyaml.Node) int64 {
	if n.Kind == goyaml.AliasNode {
		size, known := e.anchored[n.Alias]
		if !known {
			e.anchored[n.Alias] = 0 // the parser refuses an alias inside its own target
			before := e.total
			size = e.size(n.Alias)
			e.anchored[n.Alias], e.total = size, before
		}
		e.total = min(e.total+size, maxExpansion+1)
		return size
	}
	size := int64(len(n.Value)) + 1
	for _, child := range n.Content {
		size = min(size+e.size(child), maxExpansion+1)
	}
	return size
}
