package positions

import (
	"fmt"
	"strconv"
	"strings"
)

// Format writes ascending positions as ranges.
func Format(positions []int) string {
	var b strings.Builder
	for i := 0; i < len(positions); {
		last := i
		for last+1 < len(positions) && positions[last+1] == positions[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(positions[i]))
		if last > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(positions[last]))
		}
		i = last + 1
	}
	return b.String()
}

// Each calls visit with every position in text. It stops with an error at a position that is
// not a number from 0 to n-1, and at a range that runs backwards.
func Each(text string, n int, visit func(int)) error {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := position(from, n)
		if err != nil {
			return err
		}
		last := first
		if isRange {
			if last, err = position(to, n); err != nil {
				return err
			}
		}
		if last < first {
			return fmt.Errorf("range of positions %q runs backwards", part)
		}
		for i := first; i <= last; i++ {
			visit(i)
		}
	}
	return nil
}

func position(text string, n int) (int, error) {
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || text != strconv.Itoa(i) {
		return 0, fmt.Errorf("position %q is not a number", text)
	}
	if i >= n {
		return 0, fmt.Errorf("position %d of %d clusters", i, n)
	}
	return i, nil
}
