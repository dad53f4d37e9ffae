package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// ToolName is what the story calls the user's tool.
const ToolName = "addonflow"

// title opens a step.
func (s *show) title(number int, text string) {
	fmt.Fprintf(s.Out, "\n━━ %d/%d %s\n", number, len(steps()), text)
}

// typed shows a command as a user would type it.
func (s *show) typed(format string, args ...any) {
	fmt.Fprintf(s.Out, "$ "+format+"\n", args...)
}

// said shows a line of a command's output.
func (s *show) said(format string, args ...any) {
	fmt.Fprintf(s.Out, "  "+format+"\n", args...)
}

// run shows an addonflow command, runs it with the binary of the show and streams its output.
// An exit code other than the wanted one is an error.
func (s *show) run(ctx context.Context, wanted int, args ...string) error {
	s.typed("%s", commandLine(args))
	return s.execute(ctx, s.world.Kubeconfig, wanted, args)
}

// runAs is run with the credentials of another user.
func (s *show) runAs(ctx context.Context, user string, wanted int, args ...string) error {
	fmt.Fprintf(s.Out, "%s$ %s\n", user, commandLine(args))
	return s.execute(ctx, s.kubeconfig(user), wanted, args)
}

// commandLine is a command of the tool as a user would type it.
func commandLine(args []string) string {
	words := []string{ToolName}
	for _, word := range args {
		if strings.Contains(word, " ") {
			word = quoted(word)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// execute runs the binary of the show, and shows what it prints.
func (s *show) execute(ctx context.Context, kubeconfig string, wanted int, args []string) error {
	command := exec.CommandContext(ctx, s.Binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	reader, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			s.said("%s", lines.Text())
		}
		_, _ = io.Copy(io.Discard, reader) // a line that is too long to scan must not block
	}()
	err := command.Run()
	_ = writer.Close()
	<-printed
	if ctx.Err() != nil {
		return fmt.Errorf("cannot run %s %s to its end: %w", ToolName, args[0], context.Cause(ctx))
	}
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return fmt.Errorf("cannot run %s %s: %w", ToolName, args[0], err)
	}
	if code := command.ProcessState.ExitCode(); code != wanted {
		return fmt.Errorf("%s %s ended with exit code %d, not %d", ToolName, strings.Join(args, " "), code, wanted)
	}
	return nil
}

// checked says what was found true.
func (s *show) checked(format string, args ...any) {
	fmt.Fprintf(s.Out, "  ✔ "+format+"\n", args...)
}

// explain prints what helps to understand a failure.
func (s *show) explain(ctx context.Context) {
	fmt.Fprintln(s.Out, "\n── what the hub says")
	// The show's context may have ended; this takes a moment only.
	last := context.WithoutCancel(ctx)
	for _, args := range [][]string{
		{"get", "sources", "-n", Namespace}, {"tree", AddOn, "-n", Namespace}, {"get", "clusters", AddOn, "-n", Namespace},
	} {
		if err := s.run(last, 0, append(args, "--request-timeout=10s")...); err != nil {
			s.said("%v", err)
		}
	}
	fmt.Fprintln(s.Out, "\n── commit statuses at the forge")
	log := s.world.Forge.Log()
	for _, e := range log[max(0, len(log)-15):] {
		s.said("%.7s %-32s %-8s %s", e.SHA, e.Context, e.State, e.Description)
	}
	fmt.Fprintln(s.Out, "\n── the end of the operator's log")
	fmt.Fprintln(s.Out, s.world.Operator.Tail(40))
}
