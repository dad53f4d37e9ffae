package gitsource

import (
	"bytes"
	"errors"
	"io"
	"sort"

	"go.yaml.in/yaml/v3"
)

// searchedBytes is the largest file that syntaxLine searches. The search parses the text once per binary digit of its
// number of lines.
const searchedBytes = 1 << 20

// syntaxLine returns the line of a syntax error; 0: the search would take too long. The parser itself names the line
// where its innermost list or mapping began, which may be far above. It counts this line from 0 or from 1, and omits
// it for some errors.
//
// A binary search finds the fewest first lines that fail with the same error as the whole file. For a bracket or quote
// that is never closed, the result is the line where it was opened.
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
