package durable_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

type errCode struct{ Code int }

func (e errCode) Error() string { return fmt.Sprint("code ", e.Code) }

// errors.Is finds behind a step what it would find in the body, registered or not,
// live as on replay and from another process.
func TestErrorsIsMatchesUnregisteredErrorsLiveAndOnReplay(t *testing.T) {
	bodies := map[string]error{
		"own":     errStock,
		"wrapped": fmt.Errorf("reserving: %w", fmt.Errorf("asking: %w", errStock)),
		"joined":  errors.Join(io.ErrClosedPipe, errStock),
		"sql":     fmt.Errorf("loading: %w", sql.ErrNoRows),
		"marked":  durable.Permanent(durable.RetryAfter(errStock, time.Second)),
		"typed":   errCode{7},
	}
	targets := []error{errStock, io.ErrClosedPipe, sql.ErrNoRows, errCode{7}, errCode{8}, errors.New("out of"), fmt.Errorf("out of stock%w", errors.New(""))}
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		saw := map[string][]bool{}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for _, name := range []string{"own", "wrapped", "joined", "sql", "marked", "typed"} {
				err := durable.Do(ctx, name, fails(bodies[name]))
				_, inBranch := durable.Go(ctx, "branch "+name, func(context.Context) (int, error) { return 0, bodies[name] }).Wait(ctx)
				var found []bool
				for _, target := range targets {
					found = append(found, errors.Is(err, target))
					if errors.Is(inBranch, target) != errors.Is(err, target) {
						return 0, fmt.Errorf("%s: a branch gives another error than a step", name)
					}
				}
				if before, ok := saw[name]; ok && fmt.Sprint(before) != fmt.Sprint(found) {
					return 0, fmt.Errorf("%s: live %v, on replay %v", name, before, found)
				}
				saw[name] = found
			}
			return 1, durable.Do(ctx, "hold", h.body)
		})
		w.open(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		for name, body := range bodies {
			for i, target := range targets[:6] {
				require.Equal(t, errors.Is(body, target), saw[name][i], "%s is %v", name, target)
			}
			require.False(t, saw[name][6], "%s: the same text in another type", name)
		}
	})
}

// Who waits for a run gets at the step and the dead letters it failed with.
func TestErrorsAsThroughWaitFindsStepAndDeadLetters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		hold := false
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Go(ctx, "all", func(ctx context.Context) ([]int, error) {
				return durable.Map(ctx, "letters", []int{0, 1, 2, 3}, durable.MapOptions{KeepGoing: true}, func(ctx context.Context, n int) (int, error) {
					if n%2 == 0 {
						return n, nil
					}
					_, err := durable.Retry(ctx, "send", durable.Policy{MaxAttempts: 2}, func(context.Context) (int, error) { return 0, fmt.Errorf("letter %d: %w", n, errStock) })
					return 0, err
				})
			}).Wait(ctx)
			if hold {
				if err := durable.Do(ctx, "hold", h.body); err != nil {
					return 0, err
				}
			}
			return 0, fmt.Errorf("sending: %w", err)
		})
		check := func(err error, id string) {
			t.Helper()
			var me *durable.MapError
			require.ErrorAs(t, err, &me)
			require.Equal(t, id, me.RunID)
			require.Equal(t, "all/letters", me.Key)
			require.Len(t, me.Failed, 2)
			require.Equal(t, 1, me.Failed[0].Index)
			require.Equal(t, 3, me.Failed[1].Index)
			require.Equal(t, "all/letters[3]", me.Failed[1].Key)
			require.Equal(t, 2, me.Failed[1].Attempts)
			require.EqualError(t, me.Failed[1].Err, "step all/letters[3]/send: attempt 2 of 2: letter 3: out of stock")
			var se *durable.StepError
			require.ErrorAs(t, err, &se)
			require.Equal(t, "all/letters[1]/send", se.Key)
			require.Equal(t, 2, se.Attempt)
			require.ErrorIs(t, err, errStock)
			require.ErrorIs(t, err, durable.ErrRunFailed)
		}
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "live", 0)
		check(err, "live")
		hold = true
		start(t, w, wf, "replayed", 0)
		synctest.Wait()
		pass(time.Minute)
		w.reboot(t, with(wf))
		_, err = wait(t, w, wf, "replayed")
		check(err, "replayed")
		_, err = wait(t, w, wf, "live") // of another process
		check(err, "live")
	})
}

// A call that the code must not make would fail again in every attempt.
func TestAProgrammingErrorIsNotRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		attempts := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "outer", durable.Policy{}, func(ctx context.Context) (int, error) {
				attempts++
				_, err := durable.Step(ctx, "inner", yields(1))
				return 0, fmt.Errorf("asking: %w", err)
			})
		})
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 0)
		require.ErrorIs(t, err, durable.ErrNested)
		require.Equal(t, 1, attempts)
		require.True(t, w.row("r").Recoverable, "other code can mend it")
	})
}

// A conflict says what differs.
func TestAConflictOfAChildSaysWhatDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, w *world, kid, other *durable.Workflow[int, int])
		says   string
	}{
		"workflow": {func(t *testing.T, w *world, _, other *durable.Workflow[int, int]) { _, _ = run(t, w, other, "c", 1) }, "exists already as a run of workflow other, not kid"},
		"input":    {func(t *testing.T, w *world, kid, _ *durable.Workflow[int, int]) { _, _ = run(t, w, kid, "c", 2) }, "of workflow kid exists already with another input"},
		"parent":   {func(t *testing.T, w *world, kid, _ *durable.Workflow[int, int]) { _, _ = run(t, w, kid, "c", 1) }, "of workflow kid exists already and is no child"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				one := func(context.Context, int) (int, error) { return 1, nil }
				kid, other := durable.Define("kid", one), durable.Define("other", one)
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return kid.Run(ctx, "c", 1) })
				w.boot(t, with(wf, kid, other))
				c.before(t, w, kid, other)
				_, err := run(t, w, wf, "r", 0)
				require.ErrorIs(t, err, durable.ErrConflict)
				require.ErrorContains(t, err, c.says)
			})
		})
	}
}

// Grace and Pause leave the bodies of branches alone, as they do those of steps.
func TestGraceAndPauseHoldForBodiesInBranches(t *testing.T) {
	for _, stop := range []string{"close", "pause"} {
		for _, where := range []string{"step", "go", "group", "map"} {
			t.Run(stop+"/"+where, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					begun, ended := 0, 0
					slow := func(ctx context.Context) error {
						return durable.Do(ctx, "slow", func(ctx context.Context) error {
							begun++
							select {
							case <-time.After(5 * time.Second):
								ended++
								return nil
							case <-ctx.Done():
								return context.Cause(ctx)
							}
						})
					}
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						var err error
						switch where {
						case "step":
							err = slow(ctx)
						case "go":
							_, err = durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return 1, slow(ctx) }).Wait(ctx)
						case "group":
							g := durable.NewGroup(ctx)
							g.Go("b", slow)
							err = g.Wait()
						case "map":
							_, err = durable.Map(ctx, "m", []int{1}, durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) { return 1, slow(ctx) })
						}
						return 1, err
					})
					o := with(wf)
					o.Grace = 10 * time.Second
					w.boot(t, o)
					start(t, w, wf, "r", 0)
					pass(time.Second)
					if stop == "close" {
						require.NoError(t, w.eng.Close())
						require.Equal(t, store.Interrupted, w.row("r").Status)
						w.boot(t, o)
					} else {
						require.NoError(t, w.eng.Pause(w.ctx(), "r", "a moment"))
						pass(10 * time.Second)
						require.True(t, w.row("r").Paused)
						require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
					}
					out, err := wait(t, w, wf, "r")
					require.NoError(t, err)
					require.Equal(t, 1, out)
					require.Equal(t, 1, ended, "its result was thrown away")
					require.Equal(t, 1, begun, "its context was ended")
				})
			})
		}
	}
}

// A goroutine that a body has left behind changes nothing any more.
func TestWhatALeftGoroutineSavesAfterItsAttemptHasNoEffect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		late := make(chan error, 10)
		var read []int
		var nows []time.Time
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Retry(ctx, "a", durable.Policy{Jitter: -1, Initial: time.Second}, func(ctx context.Context) (int, error) {
				n := durable.Attempt(ctx).Number
				if n == 1 {
					go func() {
						time.Sleep(1500 * time.Millisecond) // the second attempt is under way
						late <- durable.SaveProgress(ctx, 1)
						durable.Note(ctx, "late", true)
						_ = durable.Attempt(ctx)
						time.Sleep(10 * time.Second) // the step is over
						late <- durable.SaveProgress(ctx, 111)
						durable.Note(ctx, "later", true)
					}()
					return 0, errors.New("again")
				}
				if err := durable.SaveProgress(ctx, 2); err != nil {
					return 0, err
				}
				time.Sleep(time.Second)
				v, _, err := durable.Progress[int](ctx)
				read = append(read, v)
				return v, err
			})
			if err != nil {
				return 0, err
			}
			nows = append(nows, durable.Now(ctx))
			if err := durable.Do(ctx, "hold", h.body); err != nil {
				return 0, err
			}
			return 1, nil
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Minute)
		for range 2 {
			require.ErrorIs(t, <-late, durable.ErrOutsideRun)
		}
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []int{2}, read)
		require.Len(t, nows, 2)
		require.Equal(t, nows[0], nows[1], "Now is another on replay")
		for _, e := range w.events("r") {
			require.NotContains(t, string(e.Data), "late")
		}
		require.Len(t, w.log.find("a note is dropped"), 2)
	})
}
