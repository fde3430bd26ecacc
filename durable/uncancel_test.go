package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// awaiting is a workflow of a step, an answer and a step, whose bodies are counted.
func awaiting(done map[string]int) *durable.Workflow[int, string] {
	step := func(ctx context.Context, name string) error {
		return durable.Do(ctx, name, func(context.Context) error { done[name]++; return nil })
	}
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		if err := step(ctx, "a"); err != nil {
			return "", err
		}
		s, err := durable.Await[string](ctx, "go")
		if err != nil {
			return "", err
		}
		return s, step(ctx, "b")
	})
}

func TestACancelledRunGoesOnByForceAloneAndCanBeCancelledAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := map[string]int{}
		wf := awaiting(done)
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "a mistake"))
		w.eventually("r", store.Cancelled)
		before := w.everything("r")

		var no *durable.NotResumableError
		_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
		require.ErrorAs(t, err, &no)
		require.EqualError(t, err, "Session r is not resumable (status: cancelled)")
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true, ResetFailures: true})
		require.ErrorAs(t, err, &no)
		dry, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true, DryRun: true})
		require.NoError(t, err)
		require.Equal(t, []string{"the run was cancelled: a mistake"}, dry.Warnings)
		require.Equal(t, before, w.everything("r"), "nothing was written")

		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})
		require.NoError(t, err)
		require.Equal(t, dry, plan)
		require.Equal(t, []string{"a"}, plan.Skipped)
		w.eventually("r", store.Waiting)
		w.reboot(t, with(wf)) // the old cancel is in the inbox for ever, and stays void
		pass(time.Minute)
		w.eventually("r", store.Waiting)

		// Another cut, further back, does not bring it back either.
		_, err = operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "a"), operate.JumpOptions{})
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		require.False(t, w.row("r").CancelAsked)

		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "for good"))
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "twice is no error"))
		row := w.eventually("r", store.Cancelled)
		require.Equal(t, "for good", row.Reason)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})
		require.NoError(t, err)
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", "yes"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "yes", out)
		require.Equal(t, map[string]int{"a": 1, "b": 1}, done)
		v := verify(t, w, "r")
		require.True(t, v.Sound(), "%v", v.Findings)
	})
}

// What was undone is gone: a history that says it happened is not gone on with.
func TestACancelledRunThatWasUndoneIsNotResumedButForked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		booked := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Compensate(ctx, "unbook", func(context.Context) error { booked--; return nil }); err != nil {
				return "", err
			}
			if err := durable.Do(ctx, "book", func(context.Context) error { booked++; return nil }); err != nil {
				return "", err
			}
			return durable.Await[string](ctx, "go")
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
		w.eventually("r", store.Cancelled)
		require.Zero(t, booked)
		before := w.everything("r")
		var no *durable.NotResumableError
		_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})
		require.ErrorAs(t, err, &no)
		require.ErrorContains(t, err, "what it had done was undone when it was cancelled; operate.On(engine).Fork")
		require.Equal(t, before, w.everything("r"))
		id, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "again", At: 1})
		require.NoError(t, err)
		w.eventually(id, store.Waiting)
		require.Equal(t, 1, booked)
	})
}

func TestACancelBeforeTheFirstStepIsTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := map[string]int{}
		wf := awaiting(done)
		w.open(t, durable.Options{}) // nobody executes it
		start(t, w, durable.Ref[int, string]("w"), "r", 0)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
		require.Equal(t, store.Cancelled, w.row("r").Status)
		require.NoError(t, second(operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})))
		w.boot(t, with(wf))
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", "yes"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "yes", out)
	})
}

// A body that a cancel came too late for has an outcome, which stays.
func TestForceThatLiftsACancelDoesNotRunOnceAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		paid, begun := 0, make(chan struct{})
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			return durable.Once(ctx, "pay", func(ctx context.Context) (string, error) {
				if paid++; paid == 1 {
					close(begun)
					<-ctx.Done()
				}
				return "paid", nil
			})
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		<-begun
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
		w.eventually("r", store.Cancelled)
		require.NoError(t, second(operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "paid", out)
		require.Equal(t, 1, paid)
	})
}

// A person resumes a cancelled run by force, and the process that does it is
// killed before or after any of its writes: it is asked again, and the run is
// cancelled or goes on, and nothing else.
func TestAForcedResumeThatIsKilledHasHappenedOrNot(t *testing.T) {
	for kill := range 6 {
		inWorld(t, func(t *testing.T, w *world) {
			done := map[string]int{}
			wf := awaiting(done)
			w.boot(t, with(wf))
			start(t, w, wf, "r", 0)
			w.eventually("r", store.Waiting)
			require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
			w.eventually("r", store.Cancelled)
			w.open(t, with(wf))
			disk, n := w.disk, 0
			disk.tamper(func(_ []store.Change, forward func() []error) []error {
				if n++; n == kill/2+1 && kill%2 == 0 {
					disk.cut()
				}
				errs := forward()
				if n == kill/2+1 {
					disk.cut()
				}
				return errs
			})
			_, _ = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})
			w.crash()
			w.expire()
			w.boot(t, with(wf))
			if w.row("r").Status == store.Cancelled {
				require.NoError(t, second(operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})))
			}
			require.NoError(t, durable.Signal(w.ctx(), "r", "go", "yes"))
			out, err := wait(t, w, wf, "r")
			require.NoError(t, err)
			require.Equal(t, "yes", out)
			require.Equal(t, map[string]int{"a": 1, "b": 1}, done)
		})
	}
}
