package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// state is a file with the finished points, one a line, so that a run can be resumed. Points of
// another binary are not finished; the report has them, with the commit they ran on.
type state struct {
	mu     sync.Mutex
	file   string
	binary string
	// commit is that of the binary.
	commit string
	// reference is the undisturbed run, nil before it; past is the last one of another binary.
	reference, past *reference
	// results by the name of the point, earlier those of other binaries; ran are those of this process.
	results, earlier map[string]result
	ran              []point
}

// line is one line of the file.
type line struct {
	// Binary is the hash of the operator and the harness.
	Binary    string     `json:"binary"`
	Reference *reference `json:"reference,omitempty"`
	Result    *result    `json:"result,omitempty"`
}

func openState(file, commit string, programs ...string) (*state, error) {
	hash := sha256.New()
	for _, program := range programs {
		text, err := os.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("cannot read the programs: %w", err)
		}
		_, _ = hash.Write(text) // a hash refuses no write
	}
	s := &state{file: file, commit: commit, binary: hex.EncodeToString(hash.Sum(nil)), results: map[string]result{}, earlier: map[string]result{}}
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l line
		switch {
		case json.Unmarshal(lines.Bytes(), &l) != nil: // cut off
		case l.Binary == s.binary && l.Reference != nil:
			s.reference = l.Reference
		case l.Reference != nil:
			s.past = l.Reference
		case l.Binary == s.binary && l.Result != nil:
			s.results[l.Result.Point] = *l.Result
		case l.Result != nil:
			s.earlier[l.Result.Point] = *l.Result
		}
	}
	return s, lines.Err()
}

func (s *state) append(l line) error {
	l.Binary = s.binary
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(s.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return errors.Join(err, out.Close())
}

func (s *state) keepReference(r *reference) error {
	s.reference = r
	return s.append(line{Reference: r})
}

// keep stores and prints a result.
func (s *state) keep(p point, r result, out io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Commit = s.commit
	s.results[p.name] = r
	s.ran = append(s.ran, p)
	r.print(out)
	return s.append(line{Result: &r})
}

// of are the newest results of points, as far as they ever ran.
func (s *state) of(points []point) []result {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []result
	for _, p := range points {
		r, ok := s.results[p.name]
		if !ok {
			r, ok = s.earlier[p.name]
		}
		if ok {
			all = append(all, r)
		}
	}
	return all
}

// shown is how many violations of a point are printed; the file has all.
const shown = 12

// print writes one line, and one more for each violation.
func (r result) print(out io.Writer) {
	mark := "✔"
	if len(r.Violations) > 0 {
		mark = "✗"
	}
	fmt.Fprintf(out, "%s %-58s %3d faults  %4d revisions  %s  %s\n", mark, r.Point, r.Hits, r.Revisions, r.Account, r.Took.Round(time.Second))
	for _, f := range r.Unmet {
		fmt.Fprintf(out, "    not struck: %s\n", f)
	}
	for i, v := range r.Violations {
		if i == shown && len(r.Violations) > shown+1 {
			fmt.Fprintf(out, "    and %d more\n", len(r.Violations)-shown-1)
		}
		if i < shown || i == len(r.Violations)-1 { // the last one says where the logs are
			fmt.Fprintf(out, "    %s\n", v)
		}
	}
	if len(r.Violations) > 0 {
		fmt.Fprintf(out, "    again: make faults ONLY='%s'\n", r.Point)
	}
}
