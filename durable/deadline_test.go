package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestADeadlineStopsTheBodyUnderWayAndWhatFollows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var cause error
		var undone []string
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			require.NoError(t, durable.Compensate(ctx, "undo", func(ctx context.Context) error {
				undone = append(undone, "undo")
				return ctx.Err()
			}))
			_, err := durable.Step(ctx, "completes", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return 7, nil
			})
			require.NoError(t, err, "what a body still completes is recorded")
			for _, err := range []error{
				durable.Do(ctx, "next", func(context.Context) error { return nil }),
				durable.Sleep(ctx, time.Second),
				func() error { _, err := durable.Await[int](ctx, "x"); return err }(),
			} {
				require.ErrorIs(t, err, durable.ErrDeadline)
				require.NotErrorIs(t, err, durable.ErrCancelled)
			}
			return 1, nil // swallowed: no success all the same
		})
		w.serve(t, wf)
		began := time.Now()
		h, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(time.Hour))
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.Equal(t, time.Hour, time.Since(began))
		require.ErrorIs(t, err, durable.ErrRunFailed)
		require.ErrorIs(t, err, durable.ErrDeadline)
		var late *durable.DeadlineError
		require.ErrorAs(t, err, &late)
		require.Equal(t, "r", late.RunID)
		require.True(t, began.Add(time.Hour).Truncate(time.Microsecond).Equal(late.At), "%s", late.At)
		require.ErrorIs(t, cause, durable.ErrDeadline)
		require.Equal(t, []string{"undo"}, undone)
		row := w.row("r")
		require.Equal(t, store.Failed, row.Status)
		require.Equal(t, durable.CodeDeadline, row.Code)
		require.Contains(t, row.Reason, "has passed its deadline, "+late.At.UTC().Format(time.RFC3339))
		require.False(t, row.Recoverable)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed completes", "step_completed ~undo/undo", "workflow_failed"}, w.story("r"))

		err = resume(w.eng, w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotResumable)
		require.ErrorContains(t, err, "its deadline, ")
	})
}

// asks waits for as long as it must.
var asks = durable.Define("asks", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "answer") })

func TestADeadlineEndsARunThatWaits(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"sleep": func(ctx context.Context) error { return durable.Sleep(ctx, 1000*time.Hour) },
		"await": func(ctx context.Context) error { _, err := durable.Await[int](ctx, "x"); return err },
		"limit": func(ctx context.Context) error {
			_, err := durable.Await[int](ctx, "x", durable.Timeout(1000*time.Hour))
			return err
		},
		"retry": func(ctx context.Context) error {
			_, err := durable.Retry(ctx, "x", durable.Policy{Initial: 9 * time.Hour, Max: 9 * time.Hour}, func(context.Context) (int, error) { return 0, errors.New("no") })
			return err
		},
		"body": func(ctx context.Context) error {
			return durable.Do(ctx, "x", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		},
		"branches": func(ctx context.Context) error {
			g := durable.NewGroup(ctx)
			for range 3 {
				g.Go("b", func(ctx context.Context) error { return durable.Sleep(ctx, 1000*time.Hour) })
			}
			return g.Wait()
		},
		"items": func(ctx context.Context) error {
			_, err := durable.Map(ctx, "m", []int{1, 2, 3}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, n int) (int, error) {
				return n, durable.Sleep(ctx, 1000*time.Hour)
			})
			return err
		},
		"child": func(ctx context.Context) error {
			_, err := asks.Run(ctx, "kid", 0)
			return err
		},
	} {
		// The process may be there at the deadline, come after it, or have been
		// replaced before.
		for _, place := range []string{"alive", "dead", "replaced"} {
			t.Run(name+", "+place, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, body(ctx) })
					o := with(wf, asks)
					w.boot(t, o)
					began := time.Now()
					_, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(10*time.Hour))
					require.NoError(t, err)
					synctest.Wait()
					require.EqualValues(t, began.Add(10*time.Hour).UnixMicro(), w.row("r").DeadlineAt)
					if w.row("r").Status == store.Waiting {
						require.Equal(t, w.row("r").DeadlineAt, w.row("r").WakeAt, "it is woken by it")
					}
					end := 10 * time.Hour
					switch place {
					case "alive":
						pass(10 * time.Hour)
					case "dead":
						w.crash()
						time.Sleep(24 * time.Hour)
						w.boot(t, o)
						end = 25 * time.Hour
					case "replaced":
						time.Sleep(time.Hour)
						w.reboot(t, o)
						pass(9 * time.Hour)
					}
					row := w.eventually("r", store.Failed)
					require.Equal(t, durable.CodeDeadline, row.Code)
					require.WithinDuration(t, began.Add(end), row.EndedAt.Time(), time.Hour)
					require.GreaterOrEqual(t, row.EndedAt.Time().Sub(began), 10*time.Hour-time.Millisecond)
					if name == "child" {
						w.eventually("kid", store.Cancelled)
					}
				})
			})
		}
	}
}

// The wake time of a waiting run is the deadline only if nothing comes before.
func TestWhatComesBeforeTheDeadlineIsNotTouchedByIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 5, durable.Sleep(ctx, time.Hour) })
		w.boot(t, with(wf))
		began := time.Now()
		h, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(time.Hour+time.Second))
		require.NoError(t, err)
		row := w.eventually("r", store.Waiting)
		require.EqualValues(t, began.Add(time.Hour).UnixMicro(), row.WakeAt)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 5, out)
		pass(time.Hour)
		require.Equal(t, store.Completed, w.row("r").Status)
		require.Zero(t, w.row("r").WakeAt)
	})
}

// The function has returned before the deadline and only its record comes later.
func TestACompletionDecidedBeforeTheDeadlineStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 5, nil })
		failing := durable.Define("failing", func(ctx context.Context, _ int) (int, error) {
			_ = durable.Compensate(ctx, "slow", func(context.Context) error { time.Sleep(time.Hour); return nil })
			return 0, errStock
		})
		w.serve(t, wf, failing)
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if batch[0].Yield {
				time.Sleep(time.Hour)
			}
			return forward()
		})
		h, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(time.Minute))
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 5, out)

		h, err = failing.Start(w.ctx(), "f", 0, durable.Deadline(time.Minute))
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.ErrorContains(t, err, errStock.Error())
		require.NotErrorIs(t, err, durable.ErrDeadline)
		require.Equal(t, durable.CodeError, w.row("f").Code)
	})
}

func TestADeadlineErrorTellsWhatTheFunctionMadeOfIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, wrap int) (int, error) {
			err := durable.Sleep(ctx, time.Hour)
			if wrap == 1 {
				return 0, fmt.Errorf("napping: %w", err)
			}
			return 0, errStock
		})
		w.serve(t, wf)
		for wrap, want := range []string{errStock.Error(), "napping: run "} {
			id := fmt.Sprint("r", wrap)
			h, err := wf.Start(w.ctx(), id, wrap, durable.Deadline(time.Minute))
			require.NoError(t, err)
			_, err = h.Wait(w.ctx())
			require.ErrorIs(t, err, durable.ErrDeadline)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "has passed its deadline")
			require.Equal(t, durable.CodeDeadline, w.row(id).Code)
		}
	})
}

// A child that fails by its own deadline is an error of the parent like any
// other, and nothing of the parent's own deadline.
func TestTheDeadlineOfAChildIsNotThatOfItsParent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, nap time.Duration) (string, error) {
			_, err := approval.Run(ctx, durable.AutoID, "x", durable.Deadline(time.Minute))
			_ = durable.Sleep(ctx, nap)
			var late *durable.DeadlineError
			if !errors.As(err, &late) || !strings.HasSuffix(late.RunID, "/approval") {
				return "", fmt.Errorf("want the child's deadline: %w", err)
			}
			return "", err
		})
		w.serve(t, wf, approval)
		h, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(time.Hour))
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrDeadline)
		require.Equal(t, durable.CodeError, w.row("r").Code)
		require.Equal(t, durable.CodeDeadline, w.row("r/approval").Code)

		h, err = wf.Start(w.ctx(), "late too", 2*time.Hour, durable.Deadline(time.Hour))
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.ErrorContains(t, err, "run late too has passed its deadline")
		require.ErrorContains(t, err, "run late too/approval has passed its deadline")
		require.Equal(t, durable.CodeDeadline, w.row("late too").Code)
	})
}

// A cancel that comes before the end wins, whether it comes before the deadline
// or after it.
func TestACancelWinsOverADeadlineThatHasNotEndedTheRun(t *testing.T) {
	for _, first := range []string{"cancel", "deadline"} {
		t.Run(first, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var mu sync.Mutex
				var saw []string
				note := func(err error) {
					mu.Lock()
					defer mu.Unlock()
					saw = append(saw, fmt.Sprint(errors.Is(err, durable.ErrCancelled), errors.Is(err, durable.ErrDeadline)))
				}
				var h hold
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					_ = durable.Compensate(ctx, "undo", func(ctx context.Context) error {
						time.Sleep(time.Minute)
						return nil
					})
					_ = durable.Compensate(ctx, "hold", h.body)
					err := durable.Sleep(ctx, 1000*time.Hour)
					note(err)
					return 0, err
				})
				w.boot(t, with(wf))
				_, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(time.Hour))
				require.NoError(t, err)
				if first == "cancel" {
					pass(30 * time.Minute)
				} else {
					pass(90 * time.Minute)
				}
				require.NoError(t, w.eng.Cancel(w.ctx(), "r", "no time"))
				pass(time.Second)
				// It is killed while it is undone; the next life finds both, and
				// takes the same one for the cause.
				w.crash()
				pass(2 * time.Hour)
				w.boot(t, with(wf))
				row := w.eventually("r", store.Cancelled)
				require.Equal(t, "no time", row.Reason)
				want := "true false"
				if first == "deadline" {
					want = "false true"
				}
				require.Equal(t, []string{want, want}, saw)
			})
		})
	}
}

// The row is a cache: what was recorded at the start counts.
func TestTheDeadlineStandsInTheHistory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, 2*time.Hour) })
		w.boot(t, with(wf))
		_, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(time.Hour))
		require.NoError(t, err)
		row := w.eventually("r", store.Waiting)
		w.crash()
		errs := w.data.Commit(t.Context(), []store.Change{{RunID: "r", Expect: store.Expect{Epoch: row.Epoch}, Row: &store.RowPatch{DeadlineAt: new(store.Time)}}})
		require.NoError(t, errs[0])
		pass(3 * time.Hour)
		w.boot(t, with(wf))
		require.Equal(t, durable.CodeDeadline, w.eventually("r", store.Failed).Code)
	})
}

func TestAPendingRunWhoseDeadlineHasPassedBeginsNoBody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 1, durable.Do(ctx, "s", func(context.Context) error { bodies++; return nil })
		})
		w.serve(t)
		_, err := durable.Ref[int, int]("w").Start(w.ctx(), "r", 0, durable.Deadline(time.Hour))
		require.NoError(t, err)
		pass(2 * time.Hour)
		require.Equal(t, store.Pending, w.row("r").Status)
		w.boot(t, with(wf))
		require.Equal(t, durable.CodeDeadline, w.eventually("r", store.Failed).Code)
		require.Zero(t, bodies)
	})
}

// What failed by itself before its deadline may be resumed until then, and not
// after it.
func TestResumeEndsWithTheDeadline(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, errors.Join(durable.Do(ctx, "one", func(context.Context) error { return nil }), errStock)
		})
		w.serve(t, wf)
		h, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(time.Hour))
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.ErrorContains(t, err, errStock.Error())
		require.True(t, w.row("r").Recoverable)
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		w.eventually("r", store.Failed)
		pass(2 * time.Hour)
		before := w.events("r")
		err = resume(w.eng, w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotResumable)
		require.ErrorContains(t, err, "its deadline, ")
		require.Equal(t, before, w.events("r"))
	})
}

func TestADeadlineOfAnUnusableLengthIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
		w.serve(t, wf)
		for _, d := range []time.Duration{0, -1, durable.MaxSleep + 1, 1<<63 - 1} {
			_, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(d))
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
		_, err := w.eng.Get(w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = wf.Run(w.ctx(), "r", 0, durable.Deadline(durable.MaxSleep))
		require.NoError(t, err)
	})
}

// A run that is undone when its deadline has passed, killed at every write: every
// effect is undone once, and it ends by its deadline. A kill costs a minute, so
// it may also come so late that the last steps are not done any more.
func TestARunKilledAtAnyWriteEndsByItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		define := func(done *[]string) func(*journal) []durable.Definition {
			return func(*journal) []durable.Definition {
				do := func(what string) error { *done = append(*done, what); return nil }
				late := durable.Define("late", func(ctx context.Context, _ int) (string, error) {
					for _, what := range []string{"flight", "hotel"} {
						if err := durable.Compensate(ctx, "cancel "+what, func(context.Context) error { return do("cancel " + what) }); err != nil {
							return "", err
						}
						if err := durable.Do(ctx, "book "+what, func(context.Context) error { return do("book " + what) }); err != nil {
							return "", err
						}
					}
					return "", durable.Sleep(ctx, 100*time.Hour)
				})
				kid := durable.Define("kid", func(ctx context.Context, _ int) (string, error) {
					_, err := late.Run(ctx, "kid", 0, durable.Deadline(time.Hour))
					if !errors.Is(err, durable.ErrDeadline) {
						return "", err
					}
					return "late", nil
				})
				return []durable.Definition{kid, late}
			}
		}
		var clean []string
		want, _, writes := livesOf(t, durable.Options{}, define(&clean), nil)
		require.Equal(t, "late, <nil>", want)
		for at := 1; at <= writes; at++ {
			for _, after := range []bool{false, true} {
				var did []string
				got, _, _ := livesOf(t, durable.Options{}, define(&did), []death{{at, after}})
				require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
				require.LessOrEqual(t, len(did), len(clean)+1)
				require.Equal(t, clean, slices.Compact(did), "killed at write %d, after=%v", at, after)
			}
		}
	})
}

// A cancel that comes after the deadline wins, and is not without its reason.
func TestTheReasonOfACancelIsKeptAfterTheDeadlineHasPassed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "slow", func(context.Context) error { time.Sleep(time.Minute); return nil })
		})
		w.boot(t, with(wf))
		h, err := wf.Start(w.ctx(), "r", 0, durable.Deadline(10*time.Second))
		require.NoError(t, err)
		pass(20 * time.Second)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "a customer called"))
		_, err = h.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.Equal(t, "a customer called", w.row("r").Reason)
	})
}

func TestARunThatCouldBeginOnlyOnceItsTimeIsUpIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		late := durable.Define("late", func(context.Context, int) (int, error) { return 1, nil })
		w.serve(t, late)
		held := map[string]durable.StartOption{
			"delay":    durable.Delay(time.Hour),
			"start at": durable.StartAt(time.Now().Add(time.Hour)),
			"debounce": durable.Debounce("k", time.Minute, time.Hour),
		}
		for name, o := range held {
			id := "r-" + name[:2]
			if name == "debounce" {
				id = durable.AutoID
			}
			for _, limit := range []time.Duration{30 * time.Second, time.Hour} {
				_, err := late.Start(w.ctx(), id, 0, o, durable.Deadline(limit))
				require.ErrorIs(t, err, durable.ErrInvalid, name)
				require.ErrorContains(t, err, "is over before the run may begin: it is held back for 1h0m0s", name)
			}
			_, err := late.Start(w.ctx(), id, 0, o, durable.Deadline(2*time.Hour))
			require.NoError(t, err, name)
		}
	})
}

// How long a run is held back is a matter of the store's clock.
func TestWhetherARunCanBeginBeforeItsTimeIsUpGoesByTheStoresClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead of ours": 3 * time.Hour, "behind ours": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				late := durable.Define("late", func(context.Context, int) (int, error) { return 1, nil })
				openOff(t, w, &offClock{now: func(at store.Time) store.Time { return at.Add(off) }}, with(late))
				pass(durable.DefaultLease)
				clock := time.Now().Add(off)
				_, err := late.Start(w.ctx(), "r", 0, durable.StartAt(clock.Add(time.Hour)), durable.Deadline(2*time.Hour))
				require.NoError(t, err)
				_, err = late.Start(w.ctx(), "s", 0, durable.StartAt(clock.Add(2*time.Hour)), durable.Deadline(time.Hour))
				require.ErrorIs(t, err, durable.ErrInvalid)
			})
		})
	}
}
