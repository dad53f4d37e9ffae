package main

// Exit codes, the same for every command and listed in its help.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitTimeout     = 3
	exitSuspended   = 4
	exitNotFound    = 5
	exitUnreachable = 6
)

// exitError is an error with the process's exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }
