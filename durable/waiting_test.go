package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func TestASleepEndsAtItsOriginalMomentAcrossRestarts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("nap", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Sleep(ctx, 10*time.Hour); err != nil {
				return 0, err
			}
			return durable.Step(ctx, "after", func(context.Context) (int, error) { return 7, nil })
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		began := time.Now()
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		row := w.eventually("r", store.Waiting)
		require.Equal(t, began.Add(10*time.Hour).UnixMicro(), int64(row.WakeAt))

		for range 3 {
			time.Sleep(time.Hour)
			w.reboot(t, o)
		}
		h, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 7, out)
		require.InDelta(t, 10*time.Hour, time.Since(began), float64(time.Minute))
		require.GreaterOrEqual(t, time.Since(began), 10*time.Hour)
		require.Equal(t, []string{"workflow_created", "workflow_started", "timer_set sleep", "run_claimed", "timer_fired sleep", "step_completed after", "workflow_completed"}, w.story("r"))
	})
}

func TestASleepThatEndedWhileNobodyWasThereDoesNotBeginAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("nap", func(ctx context.Context, _ int) (int, error) {
			return 1, errors.Join(durable.Sleep(ctx, time.Hour), durable.SleepUntil(ctx, time.Now().Add(-time.Hour)), durable.Sleep(ctx, 0))
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		w.crash()
		time.Sleep(100 * time.Hour)
		w.boot(t, o)
		began := time.Now()
		w.eventually("r", store.Completed)
		require.Less(t, time.Since(began), time.Minute)
	})
}

func TestASleepOfAnUnusableLengthIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("nap", func(ctx context.Context, _ int) (int, error) {
			for _, err := range []error{
				durable.Sleep(ctx, -time.Second), durable.Sleep(ctx, durable.MaxSleep+1), durable.Sleep(ctx, 1<<63-1),
				durable.SleepUntil(ctx, time.Time{}), durable.SleepUntil(ctx, time.Now().Add(2*durable.MaxSleep)),
			} {
				if !errors.Is(err, durable.ErrInvalid) {
					return 0, fmt.Errorf("not refused: %w", err)
				}
			}
			_, err := durable.Await[int](ctx, "x", durable.Timeout(-1))
			if !errors.Is(err, durable.ErrInvalid) {
				return 0, fmt.Errorf("not refused: %w", err)
			}
			return 1, nil
		})
		w.serve(t, wf)
		out, err := wf.Run(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.Equal(t, 1, out)
		require.Equal(t, []string{"workflow_created", "workflow_started", "workflow_completed"}, w.story("r"))
	})
}

// approval waits for a person.
var approval = durable.Define("approval", func(ctx context.Context, who string) (string, error) {
	ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship "+who+"?"), durable.Timeout(24*time.Hour))
	if errors.Is(err, durable.ErrTimeout) {
		return "nobody answered", nil
	}
	return fmt.Sprint(ok), err
})

// asked returns "key: prompt" of the approvals in a report.
func asked(rep durable.Report) []string {
	var list []string
	for _, a := range rep.Approvals {
		list = append(list, a.Key+": "+a.Prompt)
	}
	return list
}

func TestAnApprovalIsAskedOnceAndAnsweredAfterARestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := durable.Options{Workflows: []durable.Definition{approval}}
		w.boot(t, o)
		began := time.Now()
		_, err := approval.Start(w.ctx(), "r", "order-42")
		require.NoError(t, err)
		row := w.eventually("r", store.Waiting)
		require.Equal(t, durable.CodeApproval, row.Code)
		require.Equal(t, "Ship order-42?", row.Reason)

		rep := w.reboot(t, o)
		require.Equal(t, []durable.Approval{{
			RunID: "r", Workflow: "approval", Key: "approve", Name: "approve", Prompt: "Ship order-42?", Answer: "approve@0",
			AskedAt: store.TimeOf(began), Until: store.TimeOf(began.Add(24 * time.Hour)), Seq: 3, Sample: json.RawMessage("false"),
		}}, rep.Approvals)
		open, err := operate.On(w.eng).Approvals(w.ctx())
		require.NoError(t, err)
		require.Equal(t, rep.Approvals, open)
		require.NoError(t, durable.Signal(w.ctx(), "r", "approve", true))
		h, err := approval.Handle(w.ctx(), "r")
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "true", out)
		require.Equal(t, []string{"workflow_created", "workflow_started", "wait_requested approve", "run_claimed", "signal_received approve", "workflow_completed"}, w.story("r"))
		require.Empty(t, w.row("r").Code)
	})
}

func TestATimeoutIsRecordedAndStaysThoughTheSignalComesLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		gate := make(chan struct{})
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			_, err := durable.Await[bool](ctx, "go", durable.Timeout(time.Hour))
			if !errors.Is(err, durable.ErrTimeout) {
				return "", fmt.Errorf("no timeout: %w", err)
			}
			if err := durable.Do(ctx, "hold", func(ctx context.Context) error {
				select {
				case <-gate:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}); err != nil {
				return "", err
			}
			return err.Error(), nil
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", true))
		w.reboot(t, o)
		close(gate)
		row := w.eventually("r", store.Completed)
		require.EqualValues(t, 1, row.Inbox)
		require.Contains(t, w.story("r"), "wait_timed_out go")
		require.NotContains(t, w.story("r"), "signal_received go")
	})
}

func TestSignalsAreKeptInOrderAndTakenOnceEachAcrossCrashes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			all := ""
			for range 4 {
				v, err := durable.Await[string](ctx, "letter")
				if err != nil {
					return "", err
				}
				all += v
			}
			return all, nil
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		send := func(v, id string) {
			require.NoError(t, durable.Signal(w.ctx(), "r", "letter", v, durable.SignalID(id)))
		}
		send("a", "1")
		send("a", "1") // the same one: dropped
		send("b", "2")
		synctest.Wait()
		w.reboot(t, o)
		send("b", "2")
		send("c", "3")
		w.crash()
		w.expire()
		// Nobody is there; another process without the code sends.
		w.serve(t)
		send("d", "4")
		w.boot(t, o)
		w.eventually("r", store.Completed)
		h, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "abcd", out)
		require.EqualValues(t, 4, w.row("r").Inbox)
	})
}

func TestASignalOfTheWrongTypeIsATypedErrorAndIsTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			_, err := durable.Await[int](ctx, "n")
			var wrong *durable.SignalTypeError
			if !errors.As(err, &wrong) {
				return "", fmt.Errorf("want a type error: %w", err)
			}
			return durable.Await[string](ctx, "n")
		})
		w.serve(t, wf)
		run, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.NoError(t, durable.Signal(w.ctx(), "r", "n", "three"))
		require.NoError(t, durable.Signal(w.ctx(), "r", "n", "four"))
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "four", out)
	})
}

func TestSignalsToUnknownAndEndedRunsAreTypedErrors(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 1, nil })
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.NoError(t, err)
		require.ErrorIs(t, durable.Signal(w.ctx(), "nobody", "x", 1), durable.ErrNotFound)
		err = durable.Signal(w.ctx(), "r", "x", 1)
		var ended *durable.NotRunningError
		require.ErrorAs(t, err, &ended)
		require.Equal(t, store.Completed, ended.Status)
		require.ErrorIs(t, durable.Signal(w.ctx(), "r", "", 1), durable.ErrInvalid)
		var encode *durable.EncodeError
		require.ErrorAs(t, durable.Signal(w.ctx(), "r", "x", make(chan int)), &encode)
	})
}

func TestACancelStopsTheBodyUnderWayAndWhatFollows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var cause error
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			err := durable.Do(ctx, "long", func(ctx context.Context) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return ctx.Err()
			})
			if !errors.Is(err, durable.ErrCancelled) {
				return 0, fmt.Errorf("want a cancel: %w", err)
			}
			if err := durable.Do(ctx, "next", func(context.Context) error { return nil }); !errors.Is(err, durable.ErrCancelled) {
				return 0, fmt.Errorf("a body began after the cancel: %w", err)
			}
			return 1, nil // swallowed: no success all the same
		})
		w.serve(t, wf)
		run, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "no stock"))
		_, err = run.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.ErrorContains(t, err, "no stock")
		require.ErrorIs(t, cause, durable.ErrCancelled)
		require.Equal(t, []string{"workflow_created", "workflow_started", "workflow_cancelled"}, w.story("r"))
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""), "a second cancel is no error")
		require.ErrorIs(t, w.eng.Cancel(w.ctx(), "nobody", ""), durable.ErrNotFound)
	})
}

func TestACancelReachesARunThatWaitsSleepsOrIsPausedBetweenAttempts(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"sleep": func(ctx context.Context) error { return durable.Sleep(ctx, 1000*time.Hour) },
		"await": func(ctx context.Context) error { _, err := durable.Await[int](ctx, "x"); return err },
		"retry": func(ctx context.Context) error {
			_, err := durable.Retry(ctx, "x", durable.Policy{Initial: time.Hour, Max: time.Hour}, func(context.Context) (int, error) { return 0, errors.New("no") })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, body(ctx) })
				o := durable.Options{Workflows: []durable.Definition{wf}}
				w.boot(t, o)
				_, err := wf.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				synctest.Wait()
				// From another process, which does not even know the workflow.
				other, err := durable.Open(context.Background(), w.data.Handle(), durable.Options{})
				require.NoError(t, err)
				began := time.Now()
				require.NoError(t, other.Cancel(context.Background(), "r", "enough"))
				synctest.Wait()
				require.Equal(t, store.Cancelled, w.row("r").Status)
				require.Less(t, time.Since(began), time.Second)
				require.NoError(t, other.Close())
			})
		})
	}
}

func TestACancelWithoutALiveOwnerIsCarriedOutByWhoeverClaims(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := durable.Options{Workflows: []durable.Definition{approval}}
		w.boot(t, o)
		_, err := approval.Start(w.ctx(), "r", "x")
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		w.serve(t)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "late"))
		require.Equal(t, store.Waiting, w.row("r").Status)
		w.boot(t, o)
		w.eventually("r", store.Cancelled)
	})
}

func TestACancelOfARunThatNobodyHasBegunIsCarriedOutAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t)
		ref := durable.Ref[int, int]("elsewhere")
		_, err := ref.Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		require.Equal(t, store.Pending, w.row("r").Status)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "changed my mind"))
		require.Equal(t, store.Cancelled, w.row("r").Status)
		require.Equal(t, []string{"workflow_created", "workflow_cancelled"}, w.story("r"))
	})
}

func TestCompletionAndCancelCannotBothWin(t *testing.T) {
	for range 50 {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				return durable.Step(ctx, "only", func(context.Context) (int, error) { return 1, nil })
			})
			w.serve(t, wf)
			run, err := wf.Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			cancelled := w.eng.Cancel(w.ctx(), "r", "race")
			_, err = run.Wait(w.ctx())
			if cancelled == nil {
				require.ErrorIs(t, err, durable.ErrRunCancelled)
			} else {
				require.ErrorIs(t, cancelled, durable.ErrNotRunning)
				require.NoError(t, err)
			}
		})
	}
}

func TestAWaitingRunIsNeitherInterruptedNorHurtByAShutdown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := durable.Options{Workflows: []durable.Definition{approval}}
		w.boot(t, o)
		_, err := approval.Start(w.ctx(), "r", "x")
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Close())
		require.Equal(t, store.Waiting, w.row("r").Status)
		w.boot(t, o)
		synctest.Wait()
		require.Equal(t, []string{"workflow_created", "workflow_started", "wait_requested approve"}, w.story("r"), "Recover claims no waiting run")
		require.NoError(t, durable.Signal(w.ctx(), "r", "approve", false))
		w.eventually("r", store.Completed)
	})
}
