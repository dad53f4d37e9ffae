// Package gitserver serves real Git repositories on loopback, over HTTP and HTTPS, for tests
// and the demo.
//
//	Repo.Commit --git push (file)--> bare repository --git http-backend--> client
//
// Nothing here imitates Git: commits are made with the git command in a working clone, and `git
// http-backend` answers requests, so that a client under test sees the same protocol as with a
// forge. A handler around it can require credentials, fail, hang, delay and throttle, and
// counts requests.
//
// The git command runs with its own home and without the machine's configuration, under a fixed
// identity and, by default, a clock that advances a minute per commit: the same calls make the
// same hashes.
//
// Functions return errors and need no testing.TB. Production code must not import this package.
package gitserver
