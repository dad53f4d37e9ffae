package gitsource

import (
	"bytes"
	"errors"
	"io"
	"sort"

	"go.yaml.in/yaml/v3"
)

// searchedBytes bounds the files whose syntax errors are searched for: it takes as
// many parses as the number of lines has binary digits.
const searchedBytes = 1 << 20

// syntaxLine returns the line a parser's error is about, or 0 where the search
// would take too long. The parser itself names the line its innermost list or
// mapping began in, which may be far above, counts it from 0 or from 1, and leaves
// it out for some errors.
//
// The parser reads forwards: the text up to the mistake and any more of it fail
// alike, a shorter text does not. Of a bracket or quote that is never closed this
// is the line it was opened in.
func syntaxLine(text []byte, err error) int {
	if len(text) > searchedBytes {
		return 0
	}
	var ends []int
	for line := range bytes.SplitAfterSeq(text, []byte("\n")) {
		last := 0
		if len(ends) > 0 {
			last = ends[len(ends)-1]
		}
		ends = append(ends, last+len(line))
	}
	return 1 + sort.Search(len(ends)-1, func(i int) bool {
		found := syntaxError(text[:ends[i]])
		return found != nil && found.Error() == err.Error()
	})
}

// syntaxError returns the first error of a text.
func syntaxError(text []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		_, err := nextDocument(decoder)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
