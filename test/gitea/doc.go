// Package gitea starts a real Gitea on this machine, and runs AddonFlow's story on it.
//
// Server is Gitea's own program with SQLite, TLS and its SSH server on loopback. API is a user of
// its API, and Clone a clone of one of its repositories, from which commits are pushed over HTTPS
// or SSH. The program is built by test/hubbin.
//
// The story runs with `make e2e` only: it is in files with the build tag gitea, because Gitea
// takes minutes and a C compiler to build. It runs the operator's binary beside the embedded hub,
// as test/e2e does with a forge that is written for tests, and reads every status back through
// Gitea's API.
//
// Each spec has its own repository, and uses the parts in scene_test.go. Plans on pull requests
// belong in plan_test.go, approvals by comment into approval_test.go, and the pull request after
// a rollback into revert_test.go, with the commits that make them work.
package gitea
