package durable_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

type around = func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error

type tenantKey struct{}

// notebook keeps lines in order, from any goroutine.
type notebook struct {
	mu    sync.Mutex
	lines []string
}

func (n *notebook) add(format string, a ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, a...))
}

func TestAroundWrapsEveryAttemptOfEveryBodyOutermostFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var n notebook
		logs := func(name string) around {
			return func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error {
				n.add("%s> %s %d/%d after %d", name, a.Key, a.Number, a.Max, len(a.Failures))
				err := next(context.WithValue(ctx, tenantKey{}, name))
				n.add("%s< %v", name, err)
				return err
			}
		}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Compensate(ctx, "undo", func(ctx context.Context) error { n.add("undoing for %v", ctx.Value(tenantKey{})); return nil }); err != nil {
				return 0, err
			}
			_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(ctx context.Context) (int, error) {
				a := durable.Attempt(ctx)
				n.add("body %s of %s", a.Key, ctx.Value(tenantKey{}))
				if a.Number == 1 {
					return 0, errors.New("busy")
				}
				return 1, nil
			})
			if err != nil {
				return 0, err
			}
			once, err := durable.Once(ctx, "once", func(ctx context.Context) (string, error) { return durable.IdempotencyKey(ctx)[:3], nil })
			if err != nil {
				return 0, err
			}
			return 0, durable.Permanent(errors.New("undo it, " + once))
		})
		o := with(wf)
		o.Around = []around{logs("outer"), logs("inner")}
		w.open(t, o)
		_, err := run(t, w, wf, "r", 0)
		require.ErrorContains(t, err, "undo it, hf-")
		require.Equal(t, []string{
			"outer> charge 1/2 after 0", "inner> charge 1/2 after 0", "body charge of inner", "inner< busy", "outer< busy",
			"outer> charge 2/2 after 1", "inner> charge 2/2 after 1", "body charge of inner", "inner< <nil>", "outer< <nil>",
			"outer> once 1/1 after 0", "inner> once 1/1 after 0", "inner< <nil>", "outer< <nil>",
			"outer> ~undo/undo 1/5 after 0", "inner> ~undo/undo 1/5 after 0", "undoing for inner", "inner< <nil>", "outer< <nil>",
		}, n.lines)
	})
}

func TestWhatAroundMakesOfAnAttempt(t *testing.T) {
	noAccess := errors.New("no access")
	for name, c := range map[string]struct {
		around around
		body   func(ctx context.Context) (int, error)
		want   func(t *testing.T, err error)
		runs   int
	}{
		"it does not call next": {
			around: func(context.Context, durable.AttemptInfo, func(context.Context) error) error { return noAccess },
			want:   func(t *testing.T, err error) { require.ErrorIs(t, err, noAccess) },
		},
		"it does not call next and says nothing": {
			around: func(context.Context, durable.AttemptInfo, func(context.Context) error) error { return nil },
			want:   func(t *testing.T, err error) { require.ErrorIs(t, err, durable.ErrNoResult) },
		},
		"it turns the error into another": {
			around: func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
				return fmt.Errorf("%w: %w", noAccess, next(ctx))
			},
			body: func(context.Context) (int, error) { return 0, errStock }, runs: 1,
			want: func(t *testing.T, err error) {
				require.ErrorIs(t, err, noAccess)
				require.ErrorIs(t, err, errStock)
			},
		},
		"it refuses a result": {
			around: func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
				return errors.Join(noAccess, next(ctx))
			},
			runs: 1,
			want: func(t *testing.T, err error) { require.ErrorIs(t, err, noAccess) },
		},
		"it swallows the error": {
			around: func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
				_ = next(ctx)
				return nil
			},
			body: func(context.Context) (int, error) { return 0, errStock }, runs: 1,
			want: func(t *testing.T, err error) { require.ErrorIs(t, err, errStock) },
		},
		"it panics": {
			around: func(context.Context, durable.AttemptInfo, func(context.Context) error) error { panic("around") },
			want:   panicked("around"),
		},
		"it panics behind the body": {
			around: func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
				_ = next(ctx)
				panic("behind")
			},
			runs: 1, want: panicked("behind"),
		},
		"the body panics": {
			around: passOn, runs: 1,
			body: func(context.Context) (int, error) { panic("body") },
			want: panicked("body"),
		},
		"the body panics on another goroutine": {
			around: func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
				go func() { _ = next(ctx) }()
				time.Sleep(time.Second)
				return nil
			},
			body: func(context.Context) (int, error) { panic("far away") }, runs: 1,
			want: panicked("far away"),
		},
		"it ends its goroutine": {
			around: func(context.Context, durable.AttemptInfo, func(context.Context) error) error {
				runtime.Goexit()
				return nil
			},
		},
		"it gives next another context": {
			around: func(_ context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
				return next(context.Background())
			},
			want: func(t *testing.T, err error) { require.ErrorIs(t, err, durable.ErrInvalid) },
		},
		"it gives next no context": {
			around: func(_ context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
				var none context.Context
				return next(none)
			},
			want: func(t *testing.T, err error) { require.ErrorIs(t, err, durable.ErrInvalid) },
		},
		"it calls next twice": {
			around: func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
				return errors.Join(next(ctx), next(ctx))
			},
			runs: 1, want: func(t *testing.T, err error) { require.ErrorContains(t, err, "a second time") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			runs := 0
			o := durable.Options{Errors: []durable.ErrorKind{durable.Sentinel("no access", noAccess), durable.Sentinel("stock", errStock)}}
			o.Around = []around{passOn, func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error {
				if a.Key == "hold" {
					return next(ctx)
				}
				return c.around(ctx, a, next)
			}}
			step := func(ctx context.Context) (int, error) {
				return durable.Step(ctx, "s", func(ctx context.Context) (int, error) {
					mu.Lock()
					runs++
					mu.Unlock()
					if c.body != nil {
						return c.body(ctx)
					}
					return 7, nil
				})
			}
			if c.want == nil { // the workflow function ends with its goroutine
				inWorld(t, func(t *testing.T, w *world) {
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return step(ctx) })
					o.Workflows = []durable.Definition{wf}
					w.open(t, o)
					_, err := run(t, w, wf, "r", 0)
					require.ErrorIs(t, err, durable.ErrGoexit)
					require.Contains(t, w.story("r"), "step_failed s 1")
				})
				return
			}
			live, replay := liveAndReplayed(t, o, step)
			c.want(t, live.err)
			var se *durable.StepError
			require.ErrorAs(t, live.err, &se)
			require.Equal(t, live, replay)
			require.Equal(t, c.runs, runs)
		})
	}
}

func passOn(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
	return next(ctx)
}

func panicked(value string) func(t *testing.T, err error) {
	return func(t *testing.T, err error) {
		var p *durable.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, value, p.Value)
		require.Contains(t, p.Stack, "around_test.go")
	}
}

// A body that a middleware has left running, by returning or by a panic, ends
// before its attempt does.
func TestAnAttemptDoesNotEndBeforeItsBody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var n notebook
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "s", durable.Policy{MaxAttempts: 3, Initial: time.Second}, func(ctx context.Context) (int, error) {
				a := durable.Attempt(ctx)
				n.add("begins %d", a.Number)
				time.Sleep(time.Hour)
				n.add("ends %d", a.Number)
				return a.Number, nil
			})
		})
		o := with(wf)
		o.Around = []around{func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error {
			go func() { _ = next(ctx) }()
			time.Sleep(time.Minute)
			switch a.Number {
			case 1:
				panic("in between")
			case 2:
				return errors.New("tired of waiting")
			}
			return nil
		}}
		w.open(t, o)
		out, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 3, out, "the result is the body's")
		require.Equal(t, []string{"begins 1", "ends 1", "begins 2", "ends 2", "begins 3", "ends 3"}, n.lines)
	})
}

// What a middleware does is part of the attempt: its failures are retried and
// its time is limited like the body's.
func TestFailuresOfAroundAreFailedAttempts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "s", durable.Policy{MaxAttempts: 5, Initial: time.Second, Timeout: time.Minute}, one)
		})
		o := with(wf)
		o.Around = []around{func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error {
			switch a.Number {
			case 1:
				return errors.New("fault")
			case 2:
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return next(ctx)
		}}
		w.open(t, o)
		out, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 1, out)
		require.Equal(t, []string{"workflow_created", "workflow_started", "attempt_failed s 1", "attempt_failed s 2", "step_completed s", "workflow_completed"}, w.story("r"))
	})
}

// A result that Seek refuses is shown to the next attempt also when somebody
// wraps its error.
func TestAroundKeepsTheOutputThatSeekRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Seek(ctx, "s", durable.Policy{Initial: time.Second}, func(ctx context.Context) (int, error) {
				best := 0
				if f := durable.Attempt(ctx).Failures; len(f) > 0 {
					if ok, err := f[len(f)-1].Output(&best); !ok || err != nil {
						return 0, durable.Permanent(fmt.Errorf("no output: %w", err))
					}
				}
				return best + 5, nil
			}, func(n int) error {
				if n < 10 {
					return errors.New("too small")
				}
				return nil
			})
		})
		o := with(wf)
		o.Around = []around{func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
			if err := next(ctx); err != nil {
				return fmt.Errorf("wrapped: %w", err)
			}
			return nil
		}}
		w.open(t, o)
		out, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 10, out)
	})
}

func TestACancelThatAroundMeetsIsNoFailedAttempt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "s", one) })
		o := with(wf)
		o.Around = []around{func(ctx context.Context, _ durable.AttemptInfo, _ func(context.Context) error) error {
			<-ctx.Done()
			return errors.New("whatever")
		}}
		w.open(t, o)
		start(t, w, wf, "r", 0)
		pass(time.Second)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
		w.eventually("r", store.Cancelled)
		require.Equal(t, []string{"workflow_created", "workflow_started", "workflow_cancelled"}, w.story("r"))
	})
}

func TestANilInAroundIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := durable.Open(t.Context(), w.data, durable.Options{Around: []around{passOn, nil}})
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.ErrorContains(t, err, "Around[1]")
		require.Empty(t, executors(t, w))
	})
}
