package durable_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// flaky is a workflow that fails outside its steps until it is mended.
func flaky(name string, mended *bool, bodies *int) *durable.Workflow[int, int] {
	return durable.Define(name, func(ctx context.Context, in int) (int, error) {
		v, err := durable.Step(ctx, "work", func(context.Context) (int, error) { *bodies++; return in + *bodies, nil })
		if err != nil {
			return 0, err
		}
		if !*mended {
			return 0, errors.New("not configured")
		}
		return v, nil
	})
}

func TestResumeContinuesAFailedRunWithItsSteps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mended, bodies := false, 0
		wf := flaky("w", &mended, &bodies)
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 10)
		require.ErrorContains(t, err, "not configured")
		require.True(t, w.row("r").Recoverable)
		mended = true
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 11, out)
		require.Equal(t, 1, bodies)
		row := w.row("r")
		require.Equal(t, store.Completed, row.Status)
		require.Empty(t, row.Reason)
		require.Empty(t, row.Code)
		require.False(t, row.Recoverable)
		story := w.story("r")
		require.Contains(t, story, "workflow_failed", "the failure stays in the history")
		require.Contains(t, story, "run_resumed")
	})
}

// A cancel that is recorded and not read yet ends the run as soon as it goes on.
func TestAResumeSaysThatACancelIsRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fits := true
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if !fits {
				return 0, durable.Do(ctx, "other", func(context.Context) error { return nil })
			}
			if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return durable.Await[int](ctx, "go on")
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Second)
		fits = false
		w.reboot(t, with(wf))
		require.NoError(t, durable.Signal(w.ctx(), "r", "go on", 1))
		w.eventually("r", store.Interrupted)
		_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true, DryRun: true})
		require.NoError(t, err)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "not needed"))
		fits = true
		for _, dry := range []bool{true, false} {
			plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{DryRun: dry})
			require.NoError(t, err)
			require.Len(t, plan.Warnings, 1)
			require.Contains(t, plan.Warnings[0], "a cancel of the run is recorded")
			require.Contains(t, plan.Warnings[0], "ends cancelled")
		}
		w.eventually("r", store.Cancelled)
		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})
		require.NoError(t, err)
		require.NotContains(t, plan.Warnings, "ends cancelled", "it is taken back")
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}

func TestWhileItRunsAgainTheFailureIsForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w", durable.OnBoot(durable.FailOnBoot))
		w.serve(t, wf)
		start(t, w, wf, "r", 1)
		synctest.Wait()
		w.reboot(t, with(wf))
		require.NotZero(t, w.row("r").EndedAt)
		w.crash() // or it takes what the next one opens again
		slow := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_ = durable.Do(ctx, "before", func(context.Context) error { return nil })
			return 1, durable.Do(ctx, "hold", func(context.Context) error { time.Sleep(time.Minute); return nil })
		})
		w.serve(t, slow)
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		synctest.Wait()
		row := w.row("r")
		require.Contains(t, []store.Status{store.Running, store.Resuming}, row.Status)
		require.Zero(t, row.EndedAt)
		require.Empty(t, row.Reason)
		require.Empty(t, row.Code)
		require.Equal(t, w.eng.ID(), row.Owner)
		_, err := wait(t, w, slow, "r")
		require.NoError(t, err)
	})
}

func TestWhatIsNotResumableIsSaid(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ok := durable.Define("ok", func(context.Context, int) (int, error) { return 1, nil })
		wf, _ := holding("w")
		w.serve(t, ok, wf)
		_, err := run(t, w, ok, "completed", 0)
		require.NoError(t, err)
		start(t, w, wf, "running", 0)
		_, err = durable.Ref[int, int]("elsewhere").Start(w.ctx(), "pending", 0)
		require.NoError(t, err)
		seed(t, w, store.Run{ID: "waiting", Workflow: "ok", Version: "1", Status: store.Waiting}, store.Event{Type: store.WaitRequested, Key: "k", Ordinal: 1})
		seed(t, w, store.Run{ID: "cancelled", Workflow: "ok", Version: "1", Status: store.Cancelled}, store.Event{Type: store.WorkflowCancelled})
		synctest.Wait()
		for _, id := range []string{"completed", "running", "pending", "waiting", "cancelled"} {
			before, row := w.events(id), w.row(id)
			err := resume(w.eng, w.ctx(), id)
			var n *durable.NotResumableError
			require.ErrorAs(t, err, &n, id)
			require.ErrorIs(t, err, durable.ErrNotResumable)
			require.Equal(t, row.Status, n.Status, id)
			require.ErrorContains(t, err, "is not resumable (status: "+id+")")
			require.Equal(t, before, w.events(id))
			require.Equal(t, row, w.row(id))
		}
	})
}

func TestOfTwoResumesAtOnceOneWins(t *testing.T) {
	for _, state := range []string{"failed", "interrupted", "parked", "orphaned"} {
		for _, place := range []string{"one process", "two processes"} {
			t.Run(state+", "+place, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var h hold
					mended, bodies := false, 0
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						if state == "failed" && !mended {
							return 0, errStock
						}
						return 1, durable.Do(ctx, "hold", func(ctx context.Context) error {
							bodies++
							if bodies > 1 {
								time.Sleep(time.Minute)
							}
							return h.body(ctx)
						})
					})
					o := with(wf)
					switch state {
					case "parked":
						o.OnBoot = durable.FailOnBoot
					case "failed":
						h.open = true
					}
					w.open(t, o)
					start(t, w, wf, "r", 0)
					synctest.Wait()
					switch state {
					case "interrupted", "parked":
						require.NoError(t, w.eng.Close())
					case "orphaned":
						w.crash()
						w.expire()
					}
					mended = true
					engs := []*durable.Engine{w.open(t, o)}
					slow := func(_ string, forward func() error) error { time.Sleep(time.Second); return forward() }
					first := w.disk
					first.tamperCalls(slow)
					if place == "two processes" {
						engs = append(engs, w.open(t, o))
						w.disk.tamperCalls(slow)
					} else {
						engs = append(engs, engs[0])
					}
					var wg sync.WaitGroup
					errs := make([]error, 2)
					for i := range 2 {
						wg.Go(func() {
							_, errs[i] = operate.On(engs[i]).Resume(w.ctx(), "r", operate.ResumeOptions{Force: state == "failed"}) // it has no checkpoint
						})
					}
					wg.Wait()
					won := 0
					for _, err := range errs {
						if err == nil {
							won++
						} else {
							require.ErrorIs(t, err, durable.ErrNotResumable)
						}
					}
					require.Equal(t, 1, won, "%v", errs)
					_, err := wait(t, w, wf, "r")
					require.NoError(t, err)
					if state == "failed" {
						require.Equal(t, 1, bodies)
					} else {
						require.Equal(t, 2, bodies)
					}
				})
			})
		}
	}
}

// Whoever asks need not have the code: the run becomes claimable by who has.
func TestResumeWithoutTheCodeLetsAnotherTakeIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mended, bodies := false, 0
		wf := flaky("w", &mended, &bodies)
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 10)
		require.Error(t, err)
		mended = true
		operator := w.open(t, durable.Options{})
		require.NoError(t, resume(operator, w.ctx(), "r"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 11, out)
	})
}

func TestAPermanentFailureMayBeResumedAllTheSame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mended := false
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "one", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			if !mended {
				return 0, durable.Permanent(errStock)
			}
			return 1, nil
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		require.False(t, w.row("r").Recoverable)
		mended = true
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
	})
}
