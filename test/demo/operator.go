package demo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stopWithin is how long the operator may take to end before it is killed.
const stopWithin = 15 * time.Second

// OperatorOptions say how an operator is started.
type OperatorOptions struct {
	// Binary is the path of addonflow.
	Binary string
	// Kubeconfig is the path of the hub's.
	Kubeconfig string
	// LogFile gets what the operator prints; a later operator appends to it.
	LogFile string
	// Flags are given besides those that every operator gets here.
	Flags []string
	// Env is added to the environment.
	Env []string
}

// Operator is an operator process.
type Operator struct {
	command *exec.Cmd
	logFile string
	done    chan struct{}
	result  error // of the process, when done is closed
}

// StartOperator starts `addonflow controller`. Its servers listen on free ports or not at all,
// so that several operators can run at once.
func StartOperator(o OperatorOptions) (*Operator, error) {
	log, err := os.OpenFile(o.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot start the operator: %w", err)
	}
	args := append([]string{
		"controller", "--metrics-addr=0", "--health-addr=127.0.0.1:0", "--webhook-addr=0", "--addon-manager=coexist", "--git-allow-loopback", "--git-allow-http-credentials",
	}, o.Flags...)
	// Stop ends the process in order; a context would kill it.
	command := exec.Command(o.Binary, args...) //nolint:noctx // see above
	command.Env = append(os.Environ(), "KUBECONFIG="+o.Kubeconfig, "RUNTIME_NAMESPACE=addonflow-system")
	command.Env = append(command.Env, o.Env...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the operator: %w", err), log.Close())
	}
	p := &Operator{command: command, logFile: o.LogFile, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.result = errors.Join(command.Wait(), log.Close())
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Operator) Done() <-chan struct{} { return p.done }

// Err is how the process ended; nil before Done.
func (p *Operator) Err() error {
	select {
	case <-p.done:
		return p.result
	default:
		return nil
	}
}

// PID is the process's id.
func (p *Operator) PID() int { return p.command.Process.Pid }

// Kill ends the process as a crash would, and returns when it is gone.
func (p *Operator) Kill() {
	_ = p.command.Process.Kill() // it may be gone already
	<-p.done
}

// Stop asks the process to end, and kills it if it does not. It is not an error if the operator
// had ended before.
func (p *Operator) Stop() error {
	if p.Err() != nil {
		return nil
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("cannot stop the operator within %s: killed", stopWithin)
	}
}

// Tail returns the last lines of the log.
func (p *Operator) Tail(lines int) string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimRight(text, "\n")), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
