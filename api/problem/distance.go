package problem

// comparedBytes bounds how much of each name Distance compares. Names that differ only after that
// are equal for a hint.
const comparedBytes = 64

// Distance counts the bytes to insert, delete or replace to get from a to b
// (Levenshtein), of the first 64 of each. A hint names the known word that is nearest
// to what was written.
func Distance(a, b string) int {
	a, b = a[:min(len(a), comparedBytes)], b[:min(len(b), comparedBytes)]
	row := make([]int, len(b)+1) // distances from a[:i] to every b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
