package proposal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/brief"
)

// leftOut is the room for the line that counts the objects that are left out of a section.
const leftOut = 1200

// section is an add-on, or the other objects on the hub, as a comment shows them.
type section struct {
	// name in the last line, if the section is not shown.
	name, head string
	blocks     []block
}

// block is a diff that a click opens, or one sentence.
type block struct {
	title    string
	sentence bool
	// objects are the lines of each object.
	objects [][]string
}

func (p Proposal) sections() []section {
	var sections []section
	for i := range p.AddOns {
		a := &p.AddOns[i]
		sections = append(sections, section{code(brief.Cut(a.Name, 63)), a.markdown(), a.blocks()})
	}
	if len(p.Objects) > 0 {
		sections = append(sections, section{"the other objects on the hub", "", []block{diffOf("Other objects on the hub", p.Objects)}})
	}
	return sections
}

func (a *AddOn) blocks() []block {
	var blocks []block
	for _, d := range a.Diffs {
		if title := d.title(); d.NotCompared != "" {
			blocks = append(blocks, sentence(fmt.Sprintf("\n- %s: %s\n", title, code(brief.Cut(d.NotCompared, problemBytes)))))
		} else {
			blocks = append(blocks, diffOf(title, d.Lines))
		}
	}
	if a.MoreDiffs > 0 {
		blocks = append(blocks, sentence(fmt.Sprintf("\nNot compared: %s of clusters with other values.\n", brief.Count(a.MoreDiffs, "more group"))))
	}
	return append(blocks, diffOf("Policy", a.Policy))
}

func sentence(text string) block { return block{sentence: true, objects: [][]string{{text}}} }

// diffOf divides a unified diff into objects. Each begins with two lines that name it and the first place. Lines of an
// object can look like its names, but no place follows them: a diff has the lines after a change, too.
func diffOf(title string, lines []string) block {
	b, begin := block{title: title}, 0
	for i := 1; i <= len(lines); i++ {
		if i == len(lines) || i+2 < len(lines) && strings.HasPrefix(lines[i], "--- ") &&
			strings.HasPrefix(lines[i+1], "+++ ") && strings.HasPrefix(lines[i+2], "@@ ") {
			b.objects = append(b.objects, lines[begin:i])
			begin = i
		}
	}
	return b
}

func (b block) text(lines []string) string {
	if b.sentence {
		return strings.Join(lines, "")
	}
	return folded(b.title, lines)
}

// text is the section with the objects that fit into room bytes.
func (s section) text(room int) string {
	all, _ := s.kept(math.MaxInt)
	if whole := s.with(all); len(whole) <= room {
		return whole
	}
	kept, left := s.kept(room - len(s.head) - leftOut)
	return s.with(kept) + fmt.Sprintf("\nThe diff is too long for this comment; `addonflow plan -o json` shows it. Left out: %s: %s.\n",
		brief.Count(len(left), "object"), code(brief.Names(left)))
}

// with is the section with objects of each block.
func (s section) with(objects [][][]string) string {
	var b strings.Builder
	b.WriteString(s.head)
	for i, block := range s.blocks {
		b.WriteString(block.text(slices.Concat(objects[i]...)))
	}
	return b.String()
}

// kept returns the objects of each block that fit into room bytes, and the names of the others. Small objects are kept
// first, so that the author of a change cannot displace it with a long object.
func (s section) kept(room int) (kept [][][]string, left []string) {
	type place struct{ block, object, size int }
	var places []place
	for i, b := range s.blocks {
		kept = append(kept, slices.Clone(b.objects))
		for j, lines := range b.objects {
			places = append(places, place{i, j, len(b.text(lines))})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.size, b.size) })
	for _, p := range places {
		if p.size <= room {
			room -= p.size
			continue
		}
		left = append(left, brief.Cut(nameIn(kept[p.block][p.object]), 80))
		kept[p.block][p.object] = nil
	}
	return kept, left
}

// nameIn is the name of an object in its diff: the second line has "(absent)" if the object is removed.
func nameIn(lines []string) string {
	if len(lines) > 1 && strings.HasPrefix(lines[1], "+++ ") && lines[1] != "+++ (absent)" {
		return lines[1][len("+++ "):]
	}
	return strings.TrimPrefix(strings.TrimSpace(lines[0]), "--- ")
}

// fitted returns the sections in at most room bytes, and the names of those that are not shown. Small sections come
// first. The others get equal shares of the rest.
func fitted(sections []section, room int) (text string, cut []string) {
	order := make([]int, len(sections))
	sizes, texts := make([]int, len(sections)), make([]string, len(sections))
	for i, s := range sections {
		order[i], sizes[i] = i, len(s.text(math.MaxInt))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[a], sizes[b]) })
	for n, i := range order {
		share := room
		if sizes[i] > room {
			share = room / (len(order) - n)
		}
		if text := sections[i].text(share); len(text) <= room {
			texts[i] = text
			room -= len(text)
		}
	}
	for i, s := range sections {
		if texts[i] == "" {
			cut = append(cut, s.name)
		}
	}
	return strings.Join(texts, ""), cut
}
