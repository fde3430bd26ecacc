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
	"github.com/holdfast-dev/holdfast/store"
)

// trying is a workflow of one Retry whose body is told apart by attempt, with
// the virtual times at which attempts began.
type trying struct {
	*durable.Workflow[int, int]
	began    []time.Duration // since the world began
	attempts []durable.AttemptInfo
}

func retrying(p durable.Policy, body func(ctx context.Context, n int) (int, error)) *trying {
	tr := &trying{}
	origin := time.Now()
	tr.Workflow = durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Retry(ctx, "call", p, func(ctx context.Context) (int, error) {
			a := durable.Attempt(ctx)
			tr.began = append(tr.began, time.Since(origin))
			tr.attempts = append(tr.attempts, a)
			return body(ctx, a.Number)
		})
	})
	return tr
}

func (tr *trying) numbers() (ns []int) {
	for _, a := range tr.attempts {
		ns = append(ns, a.Number)
	}
	return ns
}

func seconds(ns ...float64) (ds []time.Duration) {
	for _, n := range ns {
		ds = append(ds, time.Duration(n*float64(time.Second)))
	}
	return ds
}

// untilThird fails twice.
func untilThird(_ context.Context, n int) (int, error) {
	if n < 3 {
		return 0, fmt.Errorf("failure %d", n)
	}
	return n, nil
}

func never(_ context.Context, n int) (int, error) { return 0, fmt.Errorf("failure %d", n) }

func TestThePausesGrowAsThePolicySays(t *testing.T) {
	for name, c := range map[string]struct {
		policy durable.Policy
		began  []time.Duration
	}{
		"defaults without jitter": {durable.Policy{Jitter: -1}, seconds(0, 0.2, 0.6, 1.4, 3)},
		"bounded":                 {durable.Policy{MaxAttempts: 6, Initial: time.Second, Max: 3 * time.Second, Jitter: -1}, seconds(0, 1, 3, 6, 9, 12)},
		"constant":                {durable.Policy{MaxAttempts: 3, Initial: time.Second, Multiplier: 1, Jitter: -1}, seconds(0, 1, 2)},
		"tripling":                {durable.Policy{MaxAttempts: 4, Initial: time.Second, Multiplier: 3, Jitter: -1}, seconds(0, 1, 4, 13)},
		"one":                     {durable.Policy{MaxAttempts: 1}, seconds(0)},
		"initial above max":       {durable.Policy{MaxAttempts: 2, Initial: time.Hour, Max: time.Second, Jitter: -1}, seconds(0, 1)},
		"huge multiplier":         {durable.Policy{MaxAttempts: 4, Initial: time.Second, Multiplier: 1e300, Jitter: -1}, seconds(0, 1, 61, 121)},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				tr := retrying(c.policy, never)
				w.serve(t, tr)
				_, err := run(t, w, tr.Workflow, "r", 0)
				require.Equal(t, c.began, tr.began)
				n := len(c.began)
				require.ErrorContains(t, err, fmt.Sprintf("failure %d", n))
				row := w.row("r")
				require.Equal(t, store.Failed, row.Status)
				require.True(t, row.Recoverable)
				story := w.story("r")
				require.Equal(t, fmt.Sprintf("step_failed call %d", n), story[len(story)-2])
				require.Len(t, story, 3+n)
			})
		})
	}
}

func TestJitterTakesOffAtMostItsFraction(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tr := retrying(durable.Policy{MaxAttempts: 200, Initial: 10 * time.Second, Multiplier: 1, Jitter: 0.5}, never)
		w.serve(t, tr)
		_, err := run(t, w, tr.Workflow, "r", 0)
		require.Error(t, err)
		low, high := time.Hour, time.Duration(0)
		for _, e := range w.events("r") {
			if e.Type != store.AttemptFailed {
				continue
			}
			var d struct {
				NextAt store.Time `json:"next_at"`
			}
			require.NoError(t, json.Unmarshal(e.Data, &d))
			pause := d.NextAt.Sub(e.At)
			require.GreaterOrEqual(t, pause, 5*time.Second)
			require.LessOrEqual(t, pause, 10*time.Second)
			low, high = min(low, pause), max(high, pause)
		}
		require.Greater(t, high-low, 4*time.Second, "the pauses differ")
	})
}

func TestAnAttemptSeesTheFailuresBeforeIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		began := time.Now()
		tr := retrying(durable.Policy{Initial: time.Minute, Jitter: -1}, func(ctx context.Context, n int) (int, error) {
			durable.Note(ctx, "n", n)
			durable.Note(ctx, "how", map[string]string{"host": "a"})
			time.Sleep(time.Duration(n) * time.Second)
			if n == 2 {
				return 0, fmt.Errorf("x: %w", errStock)
			}
			return untilThird(ctx, n)
		})
		o := registered()
		o.Workflows = []durable.Definition{tr}
		w.open(t, o)
		start(t, w, tr.Workflow, "r", 0)
		pass(30 * time.Second) // within the first pause
		w.reboot(t, o)
		out, err := wait(t, w, tr.Workflow, "r")
		require.NoError(t, err)
		require.Equal(t, 3, out)
		require.Equal(t, []int{1, 2, 3}, tr.numbers())
		require.Empty(t, tr.attempts[0].Failures)
		third := tr.attempts[2]
		require.Equal(t, durable.AttemptInfo{RunID: "r", Key: "call", Number: 3, Max: 5, Failures: third.Failures, Execution: third.Execution}, third)
		require.Len(t, third.Failures, 2)
		for i, f := range third.Failures {
			require.Equal(t, i+1, f.Attempt)
			require.Equal(t, time.Duration(i+1)*time.Second, f.Took)
			require.JSONEq(t, fmt.Sprint(i+1), string(f.Notes["n"]))
			require.JSONEq(t, `{"host":"a"}`, string(f.Notes["how"]))
			ok, err := f.Output(new(int))
			require.False(t, ok)
			require.NoError(t, err)
		}
		require.EqualError(t, third.Failures[0].Err, "failure 1")
		require.ErrorIs(t, third.Failures[1].Err, errStock)
		require.Equal(t, began.Add(time.Second).UTC(), third.Failures[0].At)
		require.Equal(t, third.Failures[:1], tr.attempts[1].Failures)
	})
}

// R001-3, G3: killed during attempt k, it goes on with k, knowing 1 to k-1, and
// no attempt is granted beyond the limit.
func TestAnInterruptedAttemptRunsAgainUnderItsNumber(t *testing.T) {
	for k := 1; k <= 4; k++ {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				held := false
				tr := retrying(durable.Policy{MaxAttempts: 4, Initial: time.Second, Jitter: -1}, func(ctx context.Context, n int) (int, error) {
					if n == k && !held {
						held = true
						<-ctx.Done()
						return 0, ctx.Err()
					}
					return never(ctx, n)
				})
				w.serve(t, tr)
				start(t, w, tr.Workflow, "r", 0)
				pass(time.Minute)
				require.True(t, held)
				w.reboot(t, with(tr))
				_, err := wait(t, w, tr.Workflow, "r")
				require.ErrorContains(t, err, "failure 4")
				var want []int
				for n := 1; n <= 4; n++ {
					want = append(want, n)
					if n == k {
						want = append(want, n)
					}
				}
				require.Equal(t, want, tr.numbers())
				for _, a := range tr.attempts {
					require.Len(t, a.Failures, a.Number-1)
				}
				var failed []int32
				for _, e := range w.events("r") {
					if e.Type == store.AttemptFailed || e.Type == store.StepFailed {
						failed = append(failed, e.Attempt)
					}
				}
				require.Equal(t, []int32{1, 2, 3, 4}, failed)
			})
		})
	}
}

func TestOnlyTheRestOfAPauseIsWaitedAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		began time.Duration // of the second attempt
	}{
		"some is left":                    {10 * time.Minute, 10 * time.Minute},
		"it passed while nobody was here": {5 * time.Second, 1*time.Second + durable.DefaultLease + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				tr := retrying(durable.Policy{Initial: c.pause, Max: time.Hour, Jitter: -1}, func(ctx context.Context, n int) (int, error) {
					if n == 1 {
						return never(ctx, n)
					}
					return n, nil
				})
				w.serve(t, tr)
				start(t, w, tr.Workflow, "r", 0)
				pass(time.Second)
				w.reboot(t, with(tr))
				_, err := wait(t, w, tr.Workflow, "r")
				require.NoError(t, err)
				require.Equal(t, []time.Duration{0, c.began}, tr.began)
			})
		})
	}
}

func TestAPermanentErrorIsNotRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tr := retrying(durable.Policy{}, func(_ context.Context, n int) (int, error) {
			return 0, fmt.Errorf("while charging: %w", durable.Permanent(errStock))
		})
		w.serve(t, tr)
		_, err := run(t, w, tr.Workflow, "r", 0)
		require.EqualError(t, errors.Unwrap(err), "step call: attempt 1 of 5: while charging: out of stock")
		require.Equal(t, []int{1}, tr.numbers())
		row := w.row("r")
		require.False(t, row.Recoverable, "no further attempt can mend it")
		var r *durable.RunError
		require.ErrorAs(t, err, &r)
		require.False(t, r.Recoverable)
		require.NoError(t, durable.Permanent(nil))
		require.NoError(t, durable.RetryAfter(nil, time.Second))
	})
}

func TestRetryIfDecides(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tr := retrying(durable.Policy{Jitter: -1, RetryIf: func(err error) bool { return !errors.Is(err, errStock) }},
			func(_ context.Context, n int) (int, error) {
				if n == 3 {
					return 0, errStock
				}
				return 0, errors.New("busy")
			})
		w.serve(t, tr)
		_, err := run(t, w, tr.Workflow, "r", 0)
		require.ErrorContains(t, err, "out of stock")
		require.Equal(t, []int{1, 2, 3}, tr.numbers())
		require.True(t, w.row("r").Recoverable)
	})
}

func TestRetryIfThatPanicsFailsTheRunOnly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tr := retrying(durable.Policy{RetryIf: func(error) bool { panic("in RetryIf") }}, never)
		w.serve(t, tr)
		_, err := run(t, w, tr.Workflow, "r", 0)
		var p *durable.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, "in RetryIf", p.Value)
	})
}

func TestRetryAfterSetsThePause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tr := retrying(durable.Policy{MaxAttempts: 4, Initial: time.Second}, func(_ context.Context, n int) (int, error) {
			return 0, fmt.Errorf("n: %w", durable.RetryAfter(errors.New("busy"), []time.Duration{time.Hour, -time.Hour, time.Minute, time.Minute}[n-1]))
		})
		w.serve(t, tr)
		_, err := run(t, w, tr.Workflow, "r", 0)
		require.ErrorContains(t, err, "busy")
		require.Equal(t, seconds(0, 3600, 3600, 3660), tr.began, "no more attempts than the policy grants")
	})
}

func TestATimeoutEndsTheAttemptAndCountsAsOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var causes []error
		tr := retrying(durable.Policy{MaxAttempts: 3, Initial: time.Second, Jitter: -1, Timeout: 10 * time.Second}, func(ctx context.Context, n int) (int, error) {
			if n == 3 {
				return n, nil
			}
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return 0, context.Cause(ctx)
		})
		w.serve(t, tr)
		out, err := run(t, w, tr.Workflow, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 3, out)
		require.Equal(t, seconds(0, 11, 23), tr.began)
		require.Equal(t, []error{durable.ErrAttemptTimeout, durable.ErrAttemptTimeout}, causes)
		for _, f := range tr.attempts[2].Failures {
			require.ErrorIs(t, f.Err, durable.ErrAttemptTimeout)
			require.ErrorIs(t, f.Err, context.DeadlineExceeded)
			require.Equal(t, 10*time.Second, f.Took)
		}
	})
}

func TestTheDeadlineBoundsAllAttempts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tr := retrying(durable.Policy{MaxAttempts: -1, Initial: time.Minute, Multiplier: 1, Jitter: -1, Deadline: 150 * time.Second}, never)
		w.serve(t, tr)
		_, err := run(t, w, tr.Workflow, "r", 0)
		require.ErrorContains(t, err, "attempt 3: failure 3")
		require.Equal(t, seconds(0, 60, 120), tr.began, "an attempt at 180 s would come too late, so it is not waited for")
		require.Equal(t, 120*time.Second, w.row("r").EndedAt.Time().Sub(w.row("r").CreatedAt.Time()))
	})
}

func TestTheDeadlineEndsTheContextOfABody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var cause error
		tr := retrying(durable.Policy{Initial: time.Second, Timeout: time.Minute, Deadline: 30 * time.Second}, func(ctx context.Context, n int) (int, error) {
			if n == 1 {
				return never(ctx, n)
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return 0, cause
		})
		w.serve(t, tr)
		_, err := run(t, w, tr.Workflow, "r", 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, cause, durable.ErrAttemptTimeout)
		require.ErrorContains(t, cause, "30s")
		require.Equal(t, []int{1, 2}, tr.numbers())
		require.Equal(t, 30*time.Second, w.row("r").EndedAt.Time().Sub(w.row("r").CreatedAt.Time()))
	})
}

func TestTheDeadlineRunsOnWhileNobodyExecutes(t *testing.T) {
	for name, p := range map[string]durable.Policy{
		"after a failure": {Initial: 20 * time.Second, Jitter: -1, Deadline: 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				tr := retrying(p, never)
				w.serve(t, tr)
				start(t, w, tr.Workflow, "r", 0)
				pass(time.Second)
				w.reboot(t, with(tr)) // 31 s later
				_, err := wait(t, w, tr.Workflow, "r")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "failure 1")
				require.ErrorContains(t, err, "25s")
				require.Equal(t, []int{1}, tr.numbers(), "no attempt begins after the deadline")
				require.Equal(t, store.Failed, w.row("r").Status)
			})
		})
	}
}

// The record of a step's start tells since when its deadline runs also when its
// first attempt did not live to fail.
func TestTheDeadlineOfALongOperationCountsFromItsRecordedStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "call", durable.Policy{Deadline: time.Minute}, func(ctx context.Context) (int, error) {
				bodies++
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}, durable.LongOperation())
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		pass(10 * time.Second)
		w.reboot(t, with(wf)) // after 41 s
		_, err := wait(t, w, wf, "r")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, w.row("r").EndedAt.Time().Sub(w.row("r").CreatedAt.Time()))
		require.Equal(t, 2, bodies)
	})
}

func TestWithoutALimitItIsTriedOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tr := retrying(durable.Policy{MaxAttempts: -1}, func(ctx context.Context, n int) (int, error) {
			if n < 100 {
				return never(ctx, n)
			}
			return n, nil
		})
		w.serve(t, tr)
		out, err := run(t, w, tr.Workflow, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 100, out)
		require.Zero(t, tr.attempts[99].Max)
		require.Len(t, tr.attempts[99].Failures, 99)
	})
}

func TestAPolicyThatCannotBeUsedIsRefusedBeforeAnythingRuns(t *testing.T) {
	nan := func() float64 { var z float64; return z / z }()
	for name, p := range map[string]durable.Policy{
		"negative initial":  {Initial: -1},
		"negative max":      {Max: -1},
		"negative timeout":  {Timeout: -1},
		"negative deadline": {Deadline: -1},
		"small multiplier":  {Multiplier: 0.5},
		"negative factor":   {Multiplier: -2},
		"NaN factor":        {Multiplier: nan},
		"jitter above one":  {Jitter: 1.5},
		"NaN jitter":        {Jitter: nan},
	} {
		live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
			return durable.Retry(ctx, "call", p, func(context.Context) (int, error) { t.Error("ran"); return 0, nil })
		})
		require.ErrorIs(t, live.err, durable.ErrInvalid, name)
		require.ErrorContains(t, live.err, "call", name)
		require.Equal(t, live, replay, name)
	}
}

// A body that is stopped from outside has not failed.
func TestAStopFromOutsideIsNoFailedAttempt(t *testing.T) {
	t.Run("shutdown", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			var cause error
			tr := retrying(durable.Policy{}, func(ctx context.Context, n int) (int, error) {
				if cause == nil {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return 0, ctx.Err()
				}
				return n, nil
			})
			w.serve(t, tr)
			start(t, w, tr.Workflow, "r", 0)
			synctest.Wait()
			require.NoError(t, w.eng.Close())
			require.ErrorIs(t, cause, durable.ErrShutdown)
			require.Equal(t, []string{"workflow_created", "workflow_started", "workflow_interrupted"}, w.story("r"))
			w.boot(t, with(tr))
			_, err := wait(t, w, tr.Workflow, "r")
			require.NoError(t, err)
			require.Equal(t, []int{1, 1}, tr.numbers())
		})
	})
	t.Run("shutdown in a pause", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			tr := retrying(durable.Policy{Initial: time.Hour, Max: time.Hour, Jitter: -1}, untilThird)
			w.serve(t, tr)
			start(t, w, tr.Workflow, "r", 0)
			synctest.Wait()
			before := time.Now()
			require.NoError(t, w.eng.Close())
			require.Zero(t, time.Since(before), "a pause holds nobody up")
			w.boot(t, with(tr))
			_, err := wait(t, w, tr.Workflow, "r")
			require.NoError(t, err)
			require.Equal(t, seconds(0, 3600, 3*3600-3600), tr.began)
		})
	})
	t.Run("lost lease", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			var cause error
			bodies := 0
			tr := retrying(durable.Policy{}, func(ctx context.Context, n int) (int, error) {
				if bodies++; bodies > 1 {
					return n, nil
				}
				<-ctx.Done()
				cause = context.Cause(ctx)
				return 0, ctx.Err()
			})
			w.serve(t, tr)
			h := start(t, w, tr.Workflow, "r", 0)
			frozen := w.disk
			frozen.tamperCalls(func(call string, forward func() error) error {
				if call == "beat" {
					return errDisk
				}
				return forward()
			})
			w.expire()
			w.boot(t, with(tr))
			_, err := wait(t, w, tr.Workflow, "r")
			require.NoError(t, err)
			require.ErrorIs(t, cause, durable.ErrLeaseExpired, "it does not know yet that the run is lost")
			frozen.tamperCalls(nil)
			pass(time.Minute) // it beats again, and learns that it was replaced
			out, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, out)
			for _, line := range w.story("r") {
				require.NotContains(t, line, "failed")
			}
		})
	})
}
