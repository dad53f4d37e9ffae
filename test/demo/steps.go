package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/forge"
)

// Exit codes of `addonflow status` and `reconcile`, as their help lists them.
const (
	exitSucceeded = 0
	exitFailed    = 1
	exitWaiting   = 4
)

// show is one run of the demo.
type show struct {
	Options
	world              *World
	recorder           *Recorder
	clusters, canaries []string
	// shas of the commits made, by what was committed.
	shas map[string]string
	// telemetry measures the add-on in step 7.
	telemetry *telemetry
	// summary has one line per step done.
	summary []string
}

// step is one commit and its expected result.
type step struct {
	title string
	// short is its name in the summary.
	short string
	play  func(*show, context.Context) (result string, err error)
}

// steps are the story.
func steps() []step {
	return []step{
		{"install v1 on the whole fleet", "baseline", (*show).install},
		{"commit v2: canary, soak, then everyone in waves", "progressive", (*show).upgrade},
		{"commit v3, whose image never starts: the canary stops it", "bad commit", (*show).breakImage},
		{"git revert: only the canary clusters move back", "git revert", (*show).revert},
		{"commit a broken template: refused, with file and line", "broken file", (*show).breakFile},
		{"commit v4, which needs an approval between canary and fleet", "approval", (*show).approve},
		{"commit v5, which starts well and turns bad: the measurement rolls it back", "rollback", (*show).rollBack},
	}
}

// play performs the steps until the first wrong state.
func (s *show) play(ctx context.Context) error {
	s.shas = map[string]string{}
	for i, step := range steps() {
		s.title(i+1, step.title)
		result, err := s.playOne(ctx, step)
		if err != nil {
			return fmt.Errorf("step %d/%d (%s): %w", i+1, len(steps()), step.short, err)
		}
		s.summary = append(s.summary, fmt.Sprintf("✔ %d/%d %-12s %s", i+1, len(steps()), step.short, result))
	}
	if broken := forge.Violations(s.world.Forge.Log()); len(broken) > 0 {
		return fmt.Errorf("commit statuses break their promises: %s", strings.Join(broken, "; "))
	}
	fmt.Fprintf(s.Out, "\n%s\n", strings.Join(s.summary, "\n"))
	return nil
}

// playOne performs a step within its deadline, and explains a wrong state.
func (s *show) playOne(ctx context.Context, step step) (string, error) {
	limit := s.deadline()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the step is not over after %s", limit))
	defer cancel()
	result, err := step.play(s, ctx)
	if err == nil {
		return result, nil
	}
	cause := context.Cause(ctx)
	if cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if !errors.Is(cause, context.Canceled) { // not interrupted with Ctrl-C
		s.explain(ctx)
	}
	return "", err
}

// commit commits files, as a user would, and requests a reconcile. wanted is its exit code:
// whether the source accepts the commit.
func (s *show) commit(ctx context.Context, key, message string, files map[string]string, wanted int) (string, error) {
	s.typed("git commit -am %q && git push", message)
	sha, err := s.world.Repo.Commit(message, files) //nolint:contextcheck // git on this machine, at once
	if err != nil {
		return "", err
	}
	return sha, s.pushed(ctx, key, sha, wanted)
}

// pushed shows a commit and requests a reconcile.
func (s *show) pushed(ctx context.Context, key, sha string, wanted int) error {
	s.shas[key] = sha
	s.said("main@%.7s", sha)
	return s.run(ctx, wanted, "reconcile", "source", SourceName, "--wait")
}

// rollOut commits files and watches until the rollout has the wanted outcome.
func (s *show) rollOut(ctx context.Context, key, message, tag string, wanted int) (string, error) {
	files, err := HelloTree(tag, s.soak())
	if err != nil {
		return "", err
	}
	sha, err := s.commit(ctx, key, message, files, exitSucceeded)
	if err != nil {
		return "", err
	}
	return sha, s.lookOn(ctx, wanted)
}

// lookOn runs the commands with which a user follows a rollout.
func (s *show) lookOn(ctx context.Context, wanted int) error {
	if err := s.run(ctx, wanted, "status", AddOn, "--watch"); err != nil {
		return err
	}
	if err := s.delivered(ctx); err != nil {
		return err
	}
	return s.run(ctx, exitSucceeded, "tree", AddOn)
}

// install is step 1.
func (s *show) install(ctx context.Context) (string, error) {
	files, err := HelloTree("v1", s.soak())
	if err != nil {
		return "", err
	}
	s.typed(`git commit -am "hello v1" && git push`)
	sha, err := s.world.Repo.Commit("hello v1", files) //nolint:contextcheck // git on this machine, at once
	if err != nil {
		return "", err
	}
	s.typed("kubectl apply -f source.yaml")
	source, err := s.world.Source()
	if err != nil {
		return "", err
	}
	if err := s.world.Client.Create(ctx, s.world.ForgeSecret()); err != nil {
		return "", err
	}
	if err := s.world.Client.Create(ctx, source); err != nil {
		return "", err
	}
	s.said("addonsource %s/%s created", Namespace, SourceName)
	if err := s.pushed(ctx, "v1", sha, exitSucceeded); err != nil {
		return "", err
	}
	if err := s.lookOn(ctx, exitSucceeded); err != nil {
		return "", err
	}
	if err := s.green(ctx, sha, "v1"); err != nil {
		return "", err
	}
	return fmt.Sprintf("main@%.7s  %d/%d clusters on v1   commit status: success", sha, len(s.clusters), len(s.clusters)), nil
}

// upgrade is step 2.
func (s *show) upgrade(ctx context.Context) (string, error) {
	mark := s.recorder.Mark()
	sha, err := s.rollOut(ctx, "v2", "hello v2", "v2", exitSucceeded)
	if err != nil {
		return "", err
	}
	if err := s.green(ctx, sha, "v2"); err != nil {
		return "", err
	}
	rollout, err := s.rollout(ctx)
	if err != nil {
		return "", err
	}
	want := s.waves(rollout.Status.Target.Digest)
	recording, err := s.recorder.Await(ctx, mark, want.finished)
	if err != nil {
		return "", err
	}
	if err := want.check(recording); err != nil {
		return "", err
	}
	s.checked("order: both canaries first, %s soak, then never more than %d of %d at once", s.soak(), want.limit, want.others)
	return fmt.Sprintf("main@%.7s  canary %d/%d → soak %s → %d at a time → %d/%d   commit status: success",
		sha, len(s.canaries), len(s.canaries), s.soak(), want.limit, len(s.clusters), len(s.clusters)), nil
}

// breakImage is step 3.
func (s *show) breakImage(ctx context.Context) (string, error) {
	before, err := s.world.Generations(ctx)
	if err != nil {
		return "", err
	}
	sha, err := s.rollOut(ctx, "v3", "hello v3", "v3-bad", exitFailed)
	if err != nil {
		return "", err
	}
	if err := s.red(ctx, sha); err != nil {
		return "", err
	}
	untouched, err := s.untouchedBut(ctx, before, s.canaries)
	if err != nil {
		return "", err
	}
	if err := s.runs("v2", s.others()...); err != nil {
		return "", err
	}
	s.checked("works: those of %d clusters as they were, all running v2; the canaries' old pods still serve", untouched)
	return fmt.Sprintf("main@%.7s  halted in canary, %d clusters untouched   commit status: failure", sha, untouched), nil
}

// revert is step 4.
func (s *show) revert(ctx context.Context) (string, error) {
	before, err := s.world.Generations(ctx)
	if err != nil {
		return "", err
	}
	s.typed("git revert --no-edit %.7s && git push", s.shas["v3"])
	sha, err := s.world.Repo.Revert(s.shas["v3"]) //nolint:contextcheck // git on this machine, at once
	if err != nil {
		return "", err
	}
	if err := s.pushed(ctx, "revert", sha, exitSucceeded); err != nil {
		return "", err
	}
	if err := s.lookOn(ctx, exitSucceeded); err != nil {
		return "", err
	}
	if err := s.green(ctx, sha, "v2"); err != nil {
		return "", err
	}
	untouched, err := s.untouchedBut(ctx, before, s.canaries)
	if err != nil {
		return "", err
	}
	rollout, err := s.rollout(ctx)
	if err != nil {
		return "", err
	}
	if !rollout.Status.Reverting {
		return "", errors.New("the rollout does not know that its content was verified before")
	}
	s.checked("works: only those of %s moved; the %d others as they were", strings.Join(s.canaries, " and "), untouched)
	return fmt.Sprintf("main@%.7s  %d clusters moved back, without a soak   commit status: success", sha, len(s.canaries)), nil
}

// breakFile is step 5.
func (s *show) breakFile(ctx context.Context) (string, error) {
	before, err := s.world.Generations(ctx)
	if err != nil {
		return "", err
	}
	rolloutBefore, err := s.rollout(ctx)
	if err != nil {
		return "", err
	}
	files, err := HelloTree("v4", s.soak())
	if err != nil {
		return "", err
	}
	broken, line, err := BreakTemplate(files[templateFile])
	if err != nil {
		return "", err
	}
	files[templateFile] = broken
	sha, err := s.commit(ctx, "broken", "hello v4 with a typo", files, exitFailed)
	if err != nil {
		return "", err
	}
	place := fmt.Sprintf("%s:%d", templateFile, line)
	if err := s.refused(ctx, sha, place); err != nil {
		return "", err
	}
	if _, err := s.untouchedBut(ctx, before, nil); err != nil {
		return "", err
	}
	rollout, err := s.rollout(ctx)
	if err != nil {
		return "", err
	}
	if rollout.Generation != rolloutBefore.Generation || rollout.Status.Phase != v1alpha1.PhaseSucceeded {
		return "", fmt.Errorf("the refused commit changed the rollout: generation %d, phase %s", rollout.Generation, rollout.Status.Phase)
	}
	if err := s.runs("v2", s.clusters...); err != nil {
		return "", err
	}
	s.checked("works: nothing moved, %d clusters run v2", len(s.clusters))
	return fmt.Sprintf("main@%.7s  refused at %s, nothing moved   commit status: failure", sha, place), nil
}
