package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func TestAPausedRunEndsTheBodyUnderWayAndBeginsNoOther(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("fails=%v", fails), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					for range 2 {
						_, err := durable.Retry(ctx, "slow", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(ctx context.Context) (int, error) {
							bodies++
							time.Sleep(time.Minute)
							if fails && bodies == 1 {
								return 0, errors.New("no luck")
							}
							return bodies, ctx.Err()
						})
						if err != nil {
							return 0, err
						}
					}
					return bodies, nil
				})
				w.boot(t, with(wf))
				h := start(t, w, wf, "r", 0)
				pass(time.Second)
				require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
				require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"), "twice is no error")
				pass(time.Second)
				require.False(t, w.row("r").Paused, "the body is still under way")
				pass(time.Hour)
				row := w.row("r")
				require.True(t, row.Paused)
				require.Equal(t, store.Interrupted, row.Status)
				require.Equal(t, "paused: lunch", row.Reason)
				require.Empty(t, row.Owner)
				require.Equal(t, 1, bodies)
				ended := "step_completed slow"
				if fails {
					ended = "attempt_failed slow 1"
				}
				require.Equal(t, []string{"workflow_created", "workflow_started", ended, "workflow_paused"}, w.story("r"))
				require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"), "also once it is paused")

				require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				out, err := h.Wait(w.ctx())
				require.NoError(t, err)
				require.Equal(t, bodies, out)
				require.False(t, w.row("r").Paused)
				require.Contains(t, w.story("r"), "workflow_unpaused")
			})
		})
	}
}

func TestABodyThatRunsWhenItsRunIsPausedMayStillSaveProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "parts", func(ctx context.Context) (int, error) {
				done, _, err := durable.Progress[int](ctx)
				for ; err == nil && done < 3; done++ {
					time.Sleep(time.Minute)
					err = durable.SaveProgress(ctx, done+1)
				}
				return done, err
			})
		})
		w.boot(t, with(wf))
		h := start(t, w, wf, "r", 0)
		pass(90 * time.Second)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
		pass(time.Hour)
		require.True(t, w.row("r").Paused)
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 3, out)
	})
}

func TestAPausedRunThatWaitsIsWokenByNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			nap := durable.Go(ctx, "nap", func(ctx context.Context) (string, error) {
				err := durable.Sleep(ctx, time.Hour)
				return durable.Now(ctx).UTC().Format(time.TimeOnly), err
			})
			ask := durable.Go(ctx, "ask", func(ctx context.Context) (string, error) {
				return durable.Await[string](ctx, "ok", durable.Prompt("Go on?"))
			})
			a, err := nap.Wait(ctx)
			if err != nil {
				return "", err
			}
			b, err := ask.Wait(ctx)
			return a + " " + b, err
		})
		w.boot(t, with(wf))
		began := time.Now()
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", "wait for it"))
		synctest.Wait()
		row := w.row("r")
		require.True(t, row.Paused)
		require.Equal(t, store.Waiting, row.Status, "it waits, and is paused")
		require.Equal(t, durable.CodeApproval, row.Code)
		require.Equal(t, "Go on?", row.Reason, "the approval stays visible")
		require.Equal(t, began.Add(time.Hour).UnixMicro(), int64(row.WakeAt))

		rep := w.reboot(t, with(wf))
		require.Equal(t, []string{"ask/ok: Go on?"}, asked(rep))
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "ok", "yes"))
		pass(3 * time.Hour)
		rep = w.reboot(t, with(wf))
		require.Empty(t, rep.Approvals, "it is answered")
		require.Len(t, rep.Stuck, 1)
		require.Equal(t, durable.CodePaused, rep.Stuck[0].Code)
		require.Contains(t, rep.Stuck[0].Next, `Engine.Unpause(ctx, "r")`)
		pass(3 * time.Hour)
		require.Equal(t, "workflow_paused", w.story("r")[len(w.story("r"))-1], "nothing has happened since")

		h, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		at := time.Now()
		_, err = h.Wait(w.ctx())
		require.NoError(t, err)
		require.Less(t, time.Since(at), time.Second, "the timer had its original moment")
	})
}

func TestATimerThatHasNotEndedKeepsItsMomentOverAPause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, 10*time.Hour) })
		w.boot(t, with(wf))
		began := time.Now()
		h := start(t, w, wf, "r", 0)
		pass(time.Hour)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		pass(time.Hour)
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		pass(time.Minute)
		require.Equal(t, store.Waiting, w.row("r").Status)
		require.NotEmpty(t, w.row("r").Owner, "it was claimed")
		_, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.InDelta(t, 10*time.Hour, time.Since(began), float64(time.Minute))
	})
}

func TestWhoWaitsForAPausedRunGoesOnWaiting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			err := durable.Do(ctx, "a", func(context.Context) error { time.Sleep(time.Minute); return nil })
			if err != nil {
				return 0, err
			}
			return durable.Step(ctx, "b", func(context.Context) (int, error) { return 7, nil })
		})
		w.boot(t, with(wf))
		h := start(t, w, wf, "r", 0)
		executes := w.eng
		other := w.serve(t) // which serves nothing
		results := make(chan int, 3)
		for _, handle := range []func() (*durable.Run[int], error){
			func() (*durable.Run[int], error) { return h, nil },
			func() (*durable.Run[int], error) {
				return wf.Handle(durable.NewContext(context.Background(), executes), "r")
			},
			func() (*durable.Run[int], error) {
				return wf.Handle(durable.NewContext(context.Background(), other), "r")
			},
		} {
			go func() {
				h, err := handle()
				require.NoError(t, err)
				out, err := h.Wait(context.Background())
				require.NoError(t, err)
				results <- out
			}()
		}
		require.NoError(t, other.Pause(context.Background(), "r", "")) // from another process
		pass(24 * time.Hour)
		require.True(t, w.row("r").Paused)
		require.Empty(t, results)
		require.NoError(t, other.Unpause(context.Background(), "r"))
		for range 3 {
			require.Equal(t, 7, <-results)
		}
	})
}

func TestWhoWaitsForAPausedRunThatNobodyServesGoesOnWaiting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "a", func(context.Context) error { time.Sleep(time.Minute); return nil }); err != nil {
				return 0, err
			}
			return 7, durable.Do(ctx, "b", func(context.Context) error { return nil })
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		pass(time.Hour)
		require.NoError(t, w.eng.Close())
		w.serve(t)
		short, stop := context.WithTimeout(w.ctx(), time.Hour)
		defer stop()
		h, err := wf.Handle(short, "r")
		require.NoError(t, err)
		_, err = h.Wait(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A second request that came when the run was paused already is answered by the
// same pause.
func TestUnpausingAnswersEveryRequestBeforeIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, durable.Sleep(ctx, time.Hour) })
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		synctest.Wait()
		require.True(t, w.row("r").Paused)
		errs := w.data.Commit(context.Background(), []store.Change{{Send: []store.Message{{To: "r", Kind: store.KindPause, ID: "late"}}}})
		require.NoError(t, errs[0])
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		pass(2 * time.Hour)
		require.Equal(t, store.Completed, w.row("r").Status)
	})
}

func TestAWaitingRunIsClaimedWhenItIsUnpausedWhateverItHadSeen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "n") })
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		synctest.Wait()
		row := w.row("r")
		errs := w.data.Commit(context.Background(), []store.Change{{RunID: "r", Expect: store.Expect{Epoch: row.Epoch}, Row: &store.RowPatch{Seen: &row.Inbox}}})
		require.NoError(t, errs[0])
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		synctest.Wait()
		require.Equal(t, w.eng.ID(), w.row("r").Owner)
	})
}

func TestAPendingRunIsPausedAsItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, nil })
		ref := durable.Ref[int, int]("w")
		w.serve(t)
		_, err := ref.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", "not yet"))
		row := w.row("r")
		require.True(t, row.Paused, "at once: nobody has it")
		require.Equal(t, store.Pending, row.Status)
		rep := w.boot(t, with(wf))
		require.Len(t, rep.Stuck, 1)
		require.Equal(t, durable.CodePaused, rep.Stuck[0].Code)
		pass(time.Hour)
		require.Equal(t, []string{"workflow_created", "workflow_paused"}, w.story("r"))
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

func TestACancelEndsAPausedRun(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"interrupted": func(ctx context.Context) error {
			if err := durable.Do(ctx, "slow", func(context.Context) error { time.Sleep(time.Minute); return nil }); err != nil {
				return err
			}
			return durable.Do(ctx, "more", func(context.Context) error { return nil })
		},
		"waiting": func(ctx context.Context) error { return durable.Sleep(ctx, time.Hour) },
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, crash=%v", name, crash), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					undone, hang := 0, crash
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						err := durable.Compensate(ctx, "undo", func(ctx context.Context) error {
							if hang {
								hang = false
								<-ctx.Done()
								return ctx.Err()
							}
							undone++
							return nil
						})
						return 0, errors.Join(err, body(ctx))
					})
					w.boot(t, with(wf))
					start(t, w, wf, "r", 0)
					pass(time.Second)
					require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
					pass(5 * time.Minute)
					require.True(t, w.row("r").Paused)
					require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
					synctest.Wait()
					if crash {
						require.Zero(t, undone)
						w.reboot(t, with(wf))
					}
					_, err := wait(t, w, wf, "r")
					require.ErrorIs(t, err, durable.ErrRunCancelled)
					require.ErrorContains(t, err, "enough")
					require.Equal(t, 1, undone)
					require.False(t, w.row("r").Paused)
				})
			})
		}
	}
}

func TestACancelEndsAPausedPendingRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t)
		_, err := durable.Ref[int, int]("w").Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
		row := w.row("r")
		require.Equal(t, store.Cancelled, row.Status)
		require.False(t, row.Paused)
	})
}

// A run that was claimed for its cancel, by a process that died before it could
// say that the run is not paused any more.
func TestARunWhosePauseACancelEndedIsRecoveredWhereverItsOwnerDied(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			err := durable.Do(ctx, "slow", func(context.Context) error { time.Sleep(time.Minute); return nil })
			return 0, errors.Join(err, durable.Do(ctx, "more", func(context.Context) error { return nil }))
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Second)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		pass(5 * time.Minute)
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if batch[0].RunID == "r" {
				w.disk.cut() // the claim is done, and this is not
				return all(batch, store.ErrClosed)
			}
			return forward()
		})
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
		synctest.Wait()
		row := w.row("r")
		require.Equal(t, store.Resuming, row.Status)
		require.True(t, row.Paused)
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.ErrorIs(t, err, durable.ErrRunCancelled)
	})
}

func TestARequestToPauseWhoseOwnerDiedIsFoundByTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		calls := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			calls++
			return 7, durable.Do(ctx, "hold", h.body)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Pause(w.ctx(), "r", "stop"))
		synctest.Wait()
		w.reboot(t, with(wf)) // the body under way died with its process
		synctest.Wait()
		row := w.row("r")
		require.True(t, row.Paused)
		require.Equal(t, "paused: stop", row.Reason)
		require.Equal(t, 1, calls, "the function was not called again")
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

func TestAnOrphanIsPausedAtOnceWhenItsLeaseHasRunOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, durable.Do(ctx, "hold", h.body) })
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.crash()
		w.expire()
		w.serve(t)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		row := w.row("r")
		require.True(t, row.Paused)
		require.Equal(t, store.Interrupted, row.Status)
		require.Empty(t, row.Owner)
		rep := w.boot(t, with(wf))
		require.Empty(t, rep.Resumed)
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
	})
}

func TestPausingAndUnpausingAreRefusedWhereTheyCannotBeMeant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if n == 0 {
				return 0, nil
			}
			return n, durable.Do(ctx, "slow", func(context.Context) error { time.Sleep(time.Hour); return nil })
		})
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "ended", 0)
		require.NoError(t, err)
		require.ErrorIs(t, w.eng.Pause(w.ctx(), "nobody", ""), durable.ErrNotFound)
		require.ErrorIs(t, w.eng.Unpause(w.ctx(), "nobody"), durable.ErrNotFound)
		var ended *durable.NotRunningError
		require.ErrorAs(t, w.eng.Pause(w.ctx(), "ended", ""), &ended)
		require.ErrorAs(t, w.eng.Unpause(w.ctx(), "ended"), &ended)
		require.Equal(t, store.Completed, ended.Status)

		start(t, w, wf, "r", 1)
		synctest.Wait()
		var not *durable.NotPausedError
		require.ErrorAs(t, w.eng.Unpause(w.ctx(), "r"), &not)
		require.False(t, not.Asked)
		require.Equal(t, store.Running, not.Status)

		// Asked for, and not carried out yet: Unpause waits for it.
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		short, stop := context.WithTimeout(w.ctx(), time.Minute)
		defer stop()
		err = w.eng.Unpause(short, "r")
		require.ErrorAs(t, err, &not)
		require.ErrorIs(t, err, durable.ErrNotPaused)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, not.Asked)
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}

func TestAPausedRunIsNotResumable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		h.open = true
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 1, durable.Do(ctx, "a", h.body) })
		w.serve(t)
		_, err := durable.Ref[int, int]("w").Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		for _, defs := range [][]durable.Definition{nil, {wf}} {
			w.boot(t, with(defs...))
			err := resume(w.eng, w.ctx(), "r")
			require.ErrorIs(t, err, durable.ErrNotResumable)
			require.ErrorContains(t, err, "it is paused")
		}
	})
}

// What was asked of a run before it failed does not stop it when a person
// resumes it.
func TestAPauseThatCameTooLateIsVoidAfterAResume(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		broken := true
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if broken {
				return 0, errors.New("broken")
			}
			return 7, nil
		})
		w.boot(t, with(wf))
		other := w.data.Handle()
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			for _, c := range batch {
				if c.Row != nil && c.Row.Status != nil && *c.Row.Status == store.Failed {
					errs := other.Commit(context.Background(), []store.Change{{Send: []store.Message{{To: "r", Kind: store.KindPause, ID: "late"}}}})
					require.NoError(t, errs[0])
				}
			}
			return forward()
		})
		_, err := run(t, w, wf, "r", 0)
		require.ErrorIs(t, err, durable.ErrRunFailed)
		w.disk.tamper(nil)
		broken = false
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true}) // it has no checkpoint
		require.NoError(t, err)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

func TestAPauseInTheMomentOfContinuingHoldsTheNextGeneration(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		calls := 0
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if calls++; n == 1 {
				return n, nil
			}
			return n, durable.Continue(ctx, n+1)
		})
		w.boot(t, with(wf))
		other := w.data.Handle()
		w.atContinue(func() {
			errs := other.Commit(context.Background(), []store.Change{{Send: []store.Message{{To: "r", Kind: store.KindPause, ID: "now"}}}})
			require.NoError(t, errs[0])
		})
		start(t, w, wf, "r", 0)
		pass(time.Hour)
		row := w.row("r")
		require.True(t, row.Paused)
		require.EqualValues(t, 1, row.Generation)
		require.Equal(t, 1, calls)
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}

// operator pauses a run, looks that it stands still, and lets it go on, however
// often its process dies in between.
type operator struct {
	t      require.TestingT
	j      *journal
	paused bool // Pause has returned nil
	over   bool // Unpause has, or its answer was lost
}

func (o *operator) act(ctx context.Context, eng *durable.Engine, data store.Store) error {
	if !o.paused {
		if err := eng.Pause(ctx, "r", "look"); err != nil {
			return err
		}
		o.paused = true
	}
	for !o.over {
		time.Sleep(10 * time.Second)
		h, err := data.Load(context.Background(), "r", store.Cursor{NoEvents: true})
		require.NoError(o.t, err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case h.Run.Paused:
			o.standsStill()
			if err := eng.Unpause(ctx, "r"); err != nil {
				return err
			}
			o.over = true
		case h.Run.Last.Type == store.WorkflowUnpaused || h.Run.Status.Terminal():
			o.over = true
		}
	}
	return nil
}

func (o *operator) standsStill() {
	bodies := func() int {
		o.j.mu.Lock()
		defer o.j.mu.Unlock()
		return len(o.j.entries)
	}
	before := bodies()
	time.Sleep(10 * time.Hour)
	require.Equal(o.t, before, bodies(), "a body ran while the run was paused")
}

// pausedLife runs a workflow that is paused and unpaused after its first step, with
// a process that dies at one write, and returns what it came to.
func pausedLife(t require.TestingT, define func(j *journal) *durable.Workflow[int, string], d death) (result string, j *journal, writes int) {
	j = &journal{}
	data := memory.Open()
	o := &operator{t: t, j: j}
	for life := 0; ; life++ {
		wf := define(j)
		m := crashstore.New(data.Handle())
		if life == 0 {
			m.DieAt(d.at, d.after)
		}
		eng, err := durable.Open(context.Background(), m, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(durable.NewContext(context.Background(), eng), 30*24*time.Hour)
		go func() {
			select {
			case <-m.Died():
			case <-ctx.Done():
			}
			stop()
		}()
		if _, err = durable.Recover(ctx); err == nil {
			var run *durable.Run[string]
			if run, err = wf.Start(ctx, "r", 7); err == nil {
				time.Sleep(30 * time.Second)
				err = o.act(ctx, eng, data)
				if err == nil {
					var out string
					out, err = run.Wait(ctx)
					result = fmt.Sprintf("%s, %v", out, err)
				}
			}
		}
		died := m.IsDead()
		stop()
		_ = eng.Close()
		writes += m.Writes()
		if !died {
			require.NoError(t, err)
			break
		}
		require.Less(t, life, 3)
		time.Sleep(2 * durable.DefaultLease)
	}
	check(t, data)
	require.NoError(t, data.Close())
	return result, j, writes
}

func TestARunThatIsPausedAndKilledAtAnyWriteEndsAsIfItHadNotBeen(t *testing.T) {
	shapes := map[string]func(j *journal) *durable.Workflow[int, string]{
		"in a body": func(j *journal) *durable.Workflow[int, string] {
			return durable.Define("w", func(ctx context.Context, n int) (string, error) {
				for range 3 {
					if err := durable.Do(ctx, "slow", func(ctx context.Context) error { j.add(ctx); time.Sleep(time.Minute); return nil }); err != nil {
						return "", err
					}
				}
				return "done", nil
			})
		},
		"waiting": func(j *journal) *durable.Workflow[int, string] {
			return durable.Define("w", func(ctx context.Context, n int) (string, error) {
				step := func(name string) error {
					return durable.Do(ctx, name, func(ctx context.Context) error { j.add(ctx); return nil })
				}
				return "done", errors.Join(step("before"), durable.Sleep(ctx, time.Hour), step("after"))
			})
		},
		"between attempts": func(j *journal) *durable.Workflow[int, string] {
			return durable.Define("w", func(ctx context.Context, n int) (string, error) {
				return durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3, Initial: time.Minute}, func(ctx context.Context) (string, error) {
					if a := j.add(ctx); a.Number < 3 {
						return "", errors.New("not yet")
					}
					return "done", nil
				})
			})
		},
	}
	for name, define := range shapes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want, clean, writes := pausedLife(t, define, death{})
				require.Equal(t, "done, <nil>", want)
				for at := 1; at <= writes; at++ {
					for _, after := range []bool{false, true} {
						got, j, _ := pausedLife(t, define, death{at, after})
						require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
						require.Len(t, j.times(), len(clean.times()))
						for body, n := range j.times() {
							require.LessOrEqual(t, n, 2, "body %s, killed once at write %d, after=%v", body, at, after)
						}
					}
				}
				t.Logf("%d writes", writes)
			})
		})
	}
}

// What the body of a step meets that stops its run, while the run is being paused, is no outcome of
// the step: the body runs again once the run goes on.
func TestWhatStopsARunWhileItIsBeingPausedIsNoFailureOfTheStep(t *testing.T) {
	for name, c := range map[string]struct {
		keys *changingKeys // nil: nothing is encrypted
		body func(ctx context.Context, w *world, again bool) (int, error)
	}{
		"its progress cannot be read": {body: func(ctx context.Context, _ *world, again bool) (int, error) {
			if again {
				_, _, err := durable.Progress[string](ctx)
				return 7, err
			}
			if err := durable.SaveProgress(ctx, "page 3"); err != nil {
				return 0, err
			}
			time.Sleep(time.Minute)
			_, _, err := durable.Progress[int](ctx)
			return 7, err
		}},
		"the store is damaged": {body: func(ctx context.Context, w *world, again bool) (int, error) {
			if !again {
				time.Sleep(time.Minute)
				w.disk.tamper(func(batch []store.Change, _ func() []error) []error { return all(batch, store.ErrCorrupt) })
			}
			err := durable.SaveProgress(ctx, 1)
			w.disk.tamper(nil)
			return 7, err
		}},
		"its result cannot be encrypted": {keys: &changingKeys{}, body: func(_ context.Context, _ *world, again bool) (int, error) {
			if !again {
				time.Sleep(time.Minute)
			}
			return 7, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					return durable.Step(ctx, "work", func(ctx context.Context) (int, error) {
						bodies++
						return c.body(ctx, w, bodies > 1)
					})
				})
				o := with(wf)
				if c.keys != nil {
					o.Encrypt = c.keys
				}
				w.boot(t, o)
				h := start(t, w, wf, "r", 0)
				pass(time.Second)
				require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
				pass(time.Second)
				if c.keys != nil {
					c.keys.set(func(k *changingKeys) {
						k.current, k.lost = "k1", map[string]error{"k1": errors.New("the vault is sealed")}
					})
				}
				pass(time.Hour)
				require.True(t, w.row("r").Paused)
				require.NotContains(t, w.story("r"), "step_failed work")
				if c.keys != nil {
					c.keys.set(func(k *changingKeys) { k.lost = nil })
				}
				require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				out, err := h.Wait(w.ctx())
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Equal(t, 2, bodies)
			})
		})
	}
}

// The process that asked for the pause was killed before it carried it out, and no process executes the run.
func TestAPauseThatNobodyHasCarriedOutIsLifted(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(t *testing.T, w *world, wf *durable.Workflow[int, int])
		code  string // of the row
	}{
		"of a parked run": {func(t *testing.T, w *world, wf *durable.Workflow[int, int]) {
			w.boot(t, with(wf))
			start(t, w, wf, "r", 0)
			w.eventually("r", store.Interrupted)
		}, durable.CodeUnrecorded},
		"of a run in line": {func(t *testing.T, w *world, wf *durable.Workflow[int, int]) {
			w.open(t, with(wf)) // no Recover
			_, err := wf.Enqueue(w.ctx(), "r", 0)
			require.NoError(t, err)
			w.crash()
			w.expire()
			w.open(t, with(wf))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				mended := c.code == ""
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					waits := ctx
					if !mended {
						short, cancel := context.WithTimeout(ctx, time.Hour) // a wait takes none
						defer cancel()
						waits = short
					}
					return 7, durable.Sleep(waits, time.Second)
				})
				c.begin(t, w, wf)
				writes := 0
				w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
					if writes++; writes > 1 {
						return all(batch, store.ErrFenced)
					}
					return forward()
				})
				require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
				w.disk.tamper(nil)
				require.False(t, w.row("r").Paused)

				soon, cancel := context.WithTimeout(w.ctx(), time.Minute)
				defer cancel()
				require.NoError(t, w.eng.Unpause(soon, "r"))
				row := w.row("r")
				require.False(t, row.Paused)
				require.Equal(t, c.code, row.Code, "why it was parked holds")
				mended = true
				w.reboot(t, with(wf))
				if c.code != "" {
					_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
					require.NoError(t, err)
				}
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 7, out, "the pause is over")
			})
		})
	}
}

// A shown value says when JSON is made of it.
type shown string

var whenShown = func() {}

func (s shown) MarshalJSON() ([]byte, error) {
	whenShown()
	return json.Marshal(string(s))
}

// The wait is begun before the request, and recorded after it. If its row said that the run has seen
// the request, a process that dies then would leave a run that is neither paused nor due.
func TestAPauseThatIsAskedForWhileARunBeginsToWaitIsCarriedOutByWhomeverHasTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Await[shown](ctx, "go")
			return 7, err
		})
		w.boot(t, with(wf))
		begun, told := make(chan struct{}), make(chan struct{})
		whenShown = sync.OnceFunc(func() { // the event of the wait has what it waits for in it
			close(begun)
			<-told
		})
		defer func() { whenShown = func() {} }()
		start(t, w, wf, "r", 0)
		<-begun
		require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
		synctest.Wait() // the run hears of it
		disk := w.disk
		disk.tamper(func(batch []store.Change, forward func() []error) []error {
			errs := forward()
			disk.cut()
			return errs
		})
		close(told)
		synctest.Wait()
		require.True(t, disk.isDead())
		require.Equal(t, []string{"workflow_created", "workflow_started", "wait_requested go"}, w.story("r"))
		require.Equal(t, store.Waiting, w.row("r").Status)

		w.reboot(t, with(wf))
		pass(time.Minute)
		require.True(t, w.row("r").Paused, "%s", w.story("r"))
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", shown("now")))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}
