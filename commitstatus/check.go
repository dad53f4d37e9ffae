package commitstatus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Finding is the result of one step of a check.
type Finding struct {
	// Step names the step.
	Step string
	// Err is why the step failed; nil: the forge did as expected.
	Err error
}

// checkStep posts a status, and has the expected status of the forge after it.
type checkStep struct {
	name  string
	state State
	text  string
	// keeps: a forge that keeps the text of a pending status refuses this status and shows the one before.
	keeps bool
}

// checkSteps are all kinds of statuses that the operator posts in a context, in a possible order: a new status, a
// status with another text, verdicts, pending after a verdict, and the longest text. The last status is a success.
func checkSteps() []checkStep {
	return []checkStep{
		{name: "the first pending status", state: Pending, text: "checking, step 1"},
		{name: "a pending status with another text", state: Pending, text: "checking, step 2", keeps: true},
		{name: "a failure", state: Failure, text: "checking, step 3"},
		{name: "another failure", state: Failure, text: "checking, step 4"},
		{name: "pending after a verdict", state: Pending, text: "checking, step 5"},
		{name: "an error", state: Error, text: "checking, step 6"},
		{name: "a success with the longest text", state: Success, text: "checked: ü " + strings.Repeat("x", DescriptionLimit-len("checked: u "))},
	}
}

// CheckContext is the context that a check writes.
const CheckContext = "addonflow-check"

// Check posts every kind of status to a commit, reads each back, and yields a finding after each step. It ends after
// the first failed step. It writes two contexts: CheckContext and the longest context below it. Their last statuses
// are successes, because forges do not delete statuses.
func Check(ctx context.Context, kind string, forge Forge, sha string) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		_, found, err := Latest(ctx, forge, sha, ContextName(CheckContext, "never-posted"))
		if err == nil && found {
			err = errors.New("the forge shows a status that was never posted")
		}
		if !yield(Finding{Step: "a context without a status", Err: err}) || err != nil {
			return
		}
		long := ContextName(CheckContext, strings.Repeat("x", ContextLimit))
		for _, context := range []string{CheckContext, long} {
			var before Status
			for _, step := range checkSteps() {
				status := Status{SHA: sha, Context: context, State: step.state, Description: Fit(kind, step.text)}
				err := step.take(ctx, forge, status, before, step.keeps && providers()[kind].keepsPendingText)
				name := step.name
				if context == long {
					name += ", in the longest context"
				}
				if !yield(Finding{Step: name, Err: err}) || err != nil {
					return
				}
				before = status
			}
		}
	}
}

// take posts the status and compares the status that the forge then shows.
func (s checkStep) take(ctx context.Context, forge Forge, status, before Status, keeps bool) error {
	err := forge.Post(ctx, status)
	refused, isRefusal := errors.AsType[*DeliveryError](err)
	switch {
	case keeps && isRefusal && refused.Uncertain:
		status = before
	case err != nil:
		return err
	}
	got, found, err := Latest(ctx, forge, status.SHA, status.Context)
	switch {
	case err != nil:
		return err
	case !found:
		return errors.New("the forge accepted the status and does not show it")
	case got.State != status.State || got.Description != status.Description:
		return fmt.Errorf("the forge shows %s: %q, not %s: %q", got.State, got.Description, status.State, status.Description)
	}
	return nil
}
