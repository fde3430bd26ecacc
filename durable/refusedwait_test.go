package durable_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A run says in its row that it waits, or is running again. If the store refuses such a
// write, the function is not told of it as if it were what a branch or a body has come to:
// a replay would not see it. The run is parked.
func TestARefusedWriteOfTheRowIsNotTheOutcomeOfAWait(t *testing.T) {
	after := func(ctx context.Context, err error) (string, error) {
		return durable.Step(ctx, "after", func(context.Context) (string, error) { return fmt.Sprint(err), nil })
	}
	refuse := func(w *world) (allow func() (refused int)) {
		refused := 0
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			own := slices.ContainsFunc(batch[0].Events, func(e store.Event) bool { return e.Type != store.TimerFired }) // a timer_fired is held back, and tried again without the row
			if batch[0].Row == nil || own {
				return forward()
			}
			refused++
			return all(batch, store.ErrInvalid)
		})
		return func() int { w.disk.tamper(nil); return refused }
	}
	parked := func(t *testing.T, w *world, wf *durable.Workflow[int, string]) {
		require.Equal(t, durable.CodeUnrecorded, w.row("r").Code, w.story("r"))
		_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
		require.NoError(t, err)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "<nil>", out)
	}
	t.Run("as it waits for a branch", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, time.Hour) })
				time.Sleep(time.Second) // the branch waits by then, so that this is the wait that makes the run wait
				_, err := f.Wait(ctx)
				return after(ctx, err)
			})
			w.boot(t, with(wf))
			allow := refuse(w)
			start(t, w, wf, "r", 0)
			pass(time.Minute)
			require.Equal(t, 1, allow())
			parked(t, w, wf)
		})
	})
	t.Run("before a body", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				if err := durable.Sleep(ctx, time.Hour); err != nil {
					return "", err
				}
				return after(ctx, durable.Do(ctx, "work", func(context.Context) error { time.Sleep(time.Hour); return nil }))
			})
			w.boot(t, with(wf))
			start(t, w, wf, "r", 0)
			pass(time.Minute)
			w.reboot(t, with(wf))
			allow := refuse(w)
			pass(2 * time.Hour)
			require.Equal(t, 2, allow(), "with the timer, and alone")
			parked(t, w, wf)
		})
	})
}

// The beginning of a branch is committed with the next write. If the store refuses it for good,
// nothing of what follows may be recorded: a replay would not find the branch where its outcomes
// say that it was.
func TestNothingIsRecordedBehindABeginningThatTheStoreHasRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			f := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
				return durable.Step(ctx, "slow", func(context.Context) (int, error) { time.Sleep(20 * time.Second); return 7, nil }, durable.WithInput(durable.Now(ctx)))
			})
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			return f.Wait(ctx)
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		refused := 0
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if slices.ContainsFunc(batch[0].Events, func(e store.Event) bool { return e.Key == "b" && e.Type == store.StepStarted }) && refused < 2 {
				refused++
				time.Sleep(time.Second) // meanwhile the body begins
				return all(batch, store.ErrInvalid)
			}
			return forward()
		})
		start(t, w, wf, "r", 0)
		pass(time.Minute)
		require.Equal(t, 2, refused, "with what carries it, and alone")
		require.Equal(t, durable.CodeUnrecorded, w.row("r").Code, w.story("r"))
		require.NotContains(t, w.story("r"), "slow", "what the branch did is not recorded without it")
		_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
		require.NoError(t, err)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

// Nothing can be recorded behind a stashed event that the store has refused, and so no next generation
// either. While branches that First has left behind are ended for it, the run is parked all the same,
// and not given back as if it had been interrupted, to be claimed and refused again for ever.
func TestARunWhoseLogIsTornAsItContinuesIsParked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if n == 1 {
				return 7, nil
			}
			slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, time.Hour) })
			fast := durable.Go(ctx, "fast", func(ctx context.Context) (int, error) { return 0, nil })
			if _, _, err := durable.First(ctx, "first", slow, fast); err != nil {
				return 0, err
			}
			if _, err := durable.Step(ctx, "relaxed", one, durable.Relaxed()); err != nil {
				return 0, err
			}
			return 0, durable.Continue(ctx, 1)
		})
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: -1})
		refused := 0
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if slices.ContainsFunc(batch[0].Events, func(e store.Event) bool { return e.Key == "relaxed" }) {
				refused++
				return all(batch, store.ErrInvalid)
			}
			return forward()
		})
		start(t, w, wf, "r", 0)
		pass(10 * time.Minute)
		require.Equal(t, durable.CodeUnrecorded, w.row("r").Code, w.story("r"))
		require.Equal(t, 2, refused, "with what carries it, and alone")
	})
}

// Before the function is called, a run records which version executes it, and that a pause has ended for
// the sake of a cancel. What a damaged store makes of that is no failure of the run, and a run whose
// function was not called is not ended without its compensations.
func TestARunIsNotEndedByWhatADamagedStoreRefusesBeforeItsFunctionIsCalled(t *testing.T) {
	once := func(w *world, is func(*store.Change) bool) (refused *int) {
		refused = new(int)
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if *refused == 0 && is(&batch[0]) {
				*refused++
				return all(batch, store.ErrCorrupt)
			}
			return forward()
		})
		return refused
	}
	t.Run("its version", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "one", one) }, durable.Version("v1"))
			w.serve(t)
			_, err := durable.Ref[int, int]("w").Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			w.serve(t, wf)
			refused := once(w, func(c *store.Change) bool { return c.Row != nil && c.Row.Version != nil })
			_, err = w.eng.Recover(w.ctx())
			require.NoError(t, err)
			pass(time.Second)
			require.Equal(t, 1, *refused)
			require.Equal(t, durable.CodeUnrecorded, w.row("r").Code, w.story("r"))
			_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
			require.NoError(t, err)
			_, err = wait(t, w, wf, "r")
			require.NoError(t, err)
		})
	})
	t.Run("the end of its pause", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			undone := 0
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				if err := durable.Compensate(ctx, "undo", func(context.Context) error { undone++; return nil }); err != nil {
					return 0, err
				}
				if _, err := durable.Step(ctx, "one", one); err != nil {
					return 0, err
				}
				return 1, durable.Sleep(ctx, time.Hour)
			})
			w.boot(t, with(wf))
			start(t, w, wf, "r", 0)
			pass(time.Second)
			require.NoError(t, w.eng.Pause(w.ctx(), "r", "wait"))
			pass(time.Second)
			refused := once(w, func(c *store.Change) bool { return len(c.Events) > 0 && c.Events[0].Type == store.WorkflowUnpaused })
			require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
			pass(time.Second)
			require.Equal(t, 1, *refused)
			require.Equal(t, durable.CodeUnrecorded, w.row("r").Code, w.story("r"))
			require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
			_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
			require.NoError(t, err)
			_, err = wait(t, w, wf, "r")
			require.ErrorIs(t, err, durable.ErrRunCancelled)
			require.Equal(t, 1, undone)
		})
	})
	t.Run("the progress of a body", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				return durable.Step(ctx, "s", func(ctx context.Context) (int, error) { return 7, durable.SaveProgress(ctx, 1) })
			})
			w.boot(t, with(wf))
			refused := once(w, func(c *store.Change) bool { return len(c.Events) > 0 && c.Events[0].Type == store.ProgressSaved })
			_, err := run(t, w, wf, "r", 0)
			require.ErrorIs(t, err, durable.ErrInterrupted)
			require.Equal(t, 1, *refused)
			require.Equal(t, durable.CodeUnrecorded, w.row("r").Code, w.story("r"))
			_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
			require.NoError(t, err)
			out, err := wait(t, w, wf, "r")
			require.NoError(t, err)
			require.Equal(t, 7, out)
		})
	})
}

// The steps that a run has done are counted in each event. A result that the store does not take is none
// of them: the failure that is recorded in its place counts.
func TestAResultThatTheStoreRefusesIsNotCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if _, err := durable.Step(ctx, "large", one); err == nil {
				return 0, fmt.Errorf("its result was taken")
			}
			beside := durable.Go(ctx, "beside", func(ctx context.Context) (int, error) { return durable.Step(ctx, "step", one) })
			if _, err := durable.Step(ctx, "one", one); err != nil {
				return 0, err
			}
			return beside.Wait(ctx)
		})
		w.boot(t, with(wf))
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if slices.ContainsFunc(batch[0].Events, func(e store.Event) bool { return e.Key == "large" && e.Type == store.StepCompleted }) {
				return all(batch, store.ErrTooLarge)
			}
			return forward()
		})
		_, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		done := int32(0)
		for _, e := range w.events("r") {
			if e.Attempt > 0 {
				done++
			}
			require.Equal(t, done, e.Steps, "event %d, %s %s", e.Seq, e.Type, e.Key)
		}
		require.EqualValues(t, 3, done)
	})
}
