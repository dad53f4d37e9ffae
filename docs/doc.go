// Package docs has no code: its tests hold the documents to the code. Links lead
// somewhere, every field and reason of the API is explained, tests that a document
// names exist, the example of the README is a good commit, and the messages in
// bad-inputs.md are what lint prints.
package docs
