// Package gitserver serves real Git repositories on loopback, over HTTP and
// HTTPS, for tests and the demo.
//
//	Repo.Commit --git push (file)--> bare repository --git http-backend--> client
//
// Nothing here imitates Git: commits are made with the git command in a
// working clone, and requests are answered by `git http-backend`, so that a
// client under test meets the protocol as forges speak it. Around it stands a
// handler that can ask for credentials, fail, hang, delay and throttle, and
// that counts requests.
//
// The git command runs with its own home and without the machine's
// configuration, under a fixed identity and, unless told otherwise, a clock
// that advances a minute per commit: the same calls make the same hashes.
//
// Errors are returned and no testing.TB is wanted. Nothing in production code
// may import this package.
package gitserver
