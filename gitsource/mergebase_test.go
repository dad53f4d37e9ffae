package gitsource

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"pgregory.net/rapid"
)

// graph is a history in memory: each commit has up to two of the earlier ones as parents. Clocks of
// authors disagree.
type graph struct {
	store
	commits []*object.Commit
	at      map[plumbing.Hash]int
}

func newGraph(rt *rapid.T, n int) *graph {
	g := &graph{at: map[plumbing.Hash]int{}}
	for i := range n {
		c := &object.Commit{Hash: plumbing.ComputeHash(plumbing.CommitObject, []byte(fmt.Sprint(i)))}
		c.Committer.When = time.Unix(int64(i*10), 0)
		for range rapid.IntRange(0, 2).Draw(rt, "parents") {
			if i > 0 {
				c.ParentHashes = append(c.ParentHashes, g.commits[rapid.IntRange(0, i-1).Draw(rt, "parent")].Hash)
			}
		}
		g.commits, g.at[c.Hash] = append(g.commits, c), i
	}
	return g
}

func (g *graph) hash(i int) plumbing.Hash { return g.commits[i].Hash }

func (g *graph) has(h plumbing.Hash) bool {
	_, ok := g.at[h]
	return ok
}

func (g *graph) commit(h plumbing.Hash) (*object.Commit, error) {
	if i, ok := g.at[h]; ok {
		return g.commits[i], nil
	}
	return nil, errors.New("missing")
}

// ancestors are a commit and everything before it.
func (g *graph) ancestors(i int) map[int]bool {
	found := map[int]bool{i: true}
	for _, parent := range g.commits[i].ParentHashes {
		for k := range g.ancestors(g.at[parent]) {
			found[k] = true
		}
	}
	return found
}

// bestCommon are the common ancestors that are no ancestors of another one: the definition of a merge
// base, word for word.
func (g *graph) bestCommon(i, k int) []int {
	var best []int
	one, other := g.ancestors(i), g.ancestors(k)
	for n := range g.commits {
		if !one[n] || !other[n] {
			continue
		}
		better := false
		for m := range g.commits {
			better = better || m != n && one[m] && other[m] && g.ancestors(m)[n]
		}
		if !better {
			best = append(best, n)
		}
	}
	return best
}
