// Package forge is a small Git forge for tests and the demo: it stores the commit
// statuses it is sent, in an append-only log, and answers as Gitea and GitHub do,
// limits, refusals and outages included. GitHub's answers are written from its
// documentation: no real GitHub took part. test/gitea uses a real Gitea.
//
// One Forge serves both APIs on 127.0.0.1:
//
//	/api/v1/repos/{owner}/{repo}/...   Gitea and Forgejo
//	/api/v3/repos/{owner}/{repo}/...   GitHub (Enterprise Server's base)
//	/repos/{owner}/{repo}/...          GitHub (github.com's base)
//	/api/v3/app/installations/...      tokens of GitHub Apps
//	/log, /log.json                    what was stored, for people and scripts
//
// Faults are switched on and off while it runs: Set for errors, rate limits and
// hanging requests, Down and Up for a forge that is not there. WaitFor waits for what
// a test expects without polling, and Violations checks the log against the promises
// of commit statuses, written down a second time and without the product's code.
//
// It knows nothing of Git: every full object name is a commit of every repository,
// unless Commits names them.
package forge
