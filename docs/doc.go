// Package docs has no code. Its tests compare the documents with the code: links have a target,
// every field and reason of the API is explained, tests that a document names exist, the example of
// the README is a valid commit, and the messages in bad-inputs.md are those of lint.
package docs

//go:generate go test -count=1 -run ^TestReferenceOfTheAPIIsCurrent$ . -update
