package gitsource

import "errors"

// Errors that callers distinguish with errors.Is. None of them holds a secret.
var (
	// ErrInvalidURL means that the URL can never work; the user must change it.
	ErrInvalidURL = errors.New("invalid URL")
	// ErrInvalidCredentials means that the Secret's keys cannot be used; the user must change them.
	ErrInvalidCredentials = errors.New("invalid credentials")
	// ErrInvalidReference means that no repository can have the reference; the user must change it.
	ErrInvalidReference = errors.New("invalid reference")
	// ErrRefNotFound means that the repository does not have the reference. It may be created later.
	ErrRefNotFound = errors.New("reference not found")
	// ErrAuthentication means that the server requires credentials, or refuses the given ones.
	ErrAuthentication = errors.New("authentication failed")
	// ErrHostKey means that the SSH server is not the one that known_hosts names, or its key is revoked.
	ErrHostKey = errors.New("host key refused")
	// ErrRepositoryNotFound means that the server does not have the repository, or hides it.
	ErrRepositoryNotFound = errors.New("repository not found")
	// ErrNotGit means that a server answered, but not like a Git server.
	ErrNotGit = errors.New("no Git repository")
	// ErrObjectFormat means that the repository's objects are of a format that is not supported.
	ErrObjectFormat = errors.New("unsupported object format")
	// ErrRedirected means that the server redirected to another host, to which no credentials are sent.
	ErrRedirected = errors.New("redirected to another host")
	// ErrAddressDenied means that the server is at an address that the operator does not dial.
	ErrAddressDenied = errors.New("address denied")
	// ErrSignature means that a required signature is missing or not valid.
	ErrSignature = errors.New("signature refused")
	// ErrNotFastForward means that the branch was moved to a commit that does not follow the earlier one.
	ErrNotFastForward = errors.New("not a fast-forward")
	// ErrNoMergeBase means that two commits have no common ancestor, several, or one too far away.
	ErrNoMergeBase = errors.New("no merge base")
	// ErrShallow means that a local clone does not have the whole history.
	ErrShallow = errors.New("the clone is shallow")
	// ErrLimitExceeded means that the repository is larger than a documented limit.
	ErrLimitExceeded = errors.New("limit exceeded")
	// ErrCorrupt means that the server's answer is not a valid pack.
	ErrCorrupt = errors.New("corrupt answer")
	// ErrInvalidRevision means that a text is not a revision string.
	ErrInvalidRevision = errors.New("invalid revision")
)
