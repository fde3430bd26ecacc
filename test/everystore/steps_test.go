package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// quick retries after a short pause, always of the same length.
var quick = durable.Policy{MaxAttempts: 3, Initial: 2 * moment, Multiplier: 1, Jitter: -1}

// failing is a body that fails so often before it succeeds, and knows its
// earlier failures.
func (l *life) failing(times int) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		a := l.did(ctx)
		if len(a.Failures) != a.Number-1 {
			return "", durable.Permanent(fmt.Errorf("attempt %d knows %d failures", a.Number, len(a.Failures)))
		}
		if a.Number <= times {
			return "", fmt.Errorf("failure %d", a.Number)
		}
		return fmt.Sprintf("ok after %d", times), nil
	}
}

func stepShapes() []*shape {
	return []*shape{
		{
			name: "sequence", want: []string{"a b c, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("sequence", func(ctx context.Context, _ int) (string, error) {
					a, err := l.step(ctx, "one", "a")
					if err != nil {
						return "", err
					}
					b, err := durable.Step(ctx, "two", func(ctx context.Context) (string, error) { l.did(ctx); return "b", nil }, durable.LongOperation())
					if err != nil {
						return "", err
					}
					c, err := l.step(ctx, "two", "c")
					return a + " " + b + " " + c, err
				})}
			},
		},
		{
			name: "retry", want: []string{"ok after 2, refunded after failure 3, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("retry", func(ctx context.Context, _ int) (string, error) {
					a, err := durable.Retry(ctx, "charge", quick, l.failing(2))
					if err != nil {
						return "", err
					}
					_, err = durable.Retry(ctx, "ship", quick, l.failing(9))
					var se *durable.StepError
					if !errors.As(err, &se) || se.Attempt != 3 {
						return "", fmt.Errorf("the last failure: %w", err)
					}
					b, err := l.step(ctx, "refund", "refunded after "+se.Err.Error())
					return a + ", " + b, err
				})}
			},
		},
		{
			name: "around", want: []string{"b by attempt 2, <nil>"},
			// The first attempt of one step fails before its body begins.
			around: func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error {
				if a.Key == "work" && a.Number == 1 {
					return errors.New("not let in")
				}
				return next(ctx)
			},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("around", func(ctx context.Context, _ int) (string, error) {
					b, err := l.step(ctx, "before", "b")
					if err != nil {
						return "", err
					}
					return durable.Retry(ctx, "work", quick, func(ctx context.Context) (string, error) {
						a := l.did(ctx)
						return fmt.Sprint(b, " by attempt ", a.Number), nil
					})
				})}
			},
		},
		{
			name: "once with reconcile", want: []string{"paid a, <nil>"}, once: []string{"r pay/1"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("once with reconcile", func(ctx context.Context, _ int) (string, error) {
					v, err := durable.Once(ctx, "pay", func(ctx context.Context) (string, error) { l.did(ctx); return "paid", nil },
						durable.Reconcile(func(context.Context) (string, bool, error) {
							return "paid", l.hasDone(l.trial.id, "pay/1"), nil
						}))
					if err != nil {
						return "", err
					}
					a, err := l.step(ctx, "after", "a")
					return v + " " + a, err
				})}
			},
		},
		{
			name: "once", want: []string{"paid, <nil>", "unknown, <nil>"}, once: []string{"r pay/1"}, races: true,
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("once", func(ctx context.Context, _ int) (string, error) {
					v, err := durable.Once(ctx, "pay", func(ctx context.Context) (string, error) { l.did(ctx); return "paid", nil })
					if errors.Is(err, durable.ErrUnknownOutcome) {
						v, err = "unknown", nil
					}
					if err != nil {
						return "", err
					}
					_, err = l.step(ctx, "after", "a")
					return v, err
				})}
			},
		},
		{
			name: "progress", want: []string{"answer of session 1, <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("progress", func(ctx context.Context, _ int) (string, error) {
					return durable.Step(ctx, "agent", func(ctx context.Context) (string, error) {
						a := l.did(ctx)
						session, ok, err := durable.Progress[string](ctx)
						if err != nil {
							return "", err
						}
						if !ok {
							l.effect(a.RunID, "agent/progress")
							session = "session 1"
							if err := durable.SaveProgress(ctx, session); err != nil {
								return "", err
							}
						}
						return "answer of " + session, nil
					})
				})}
			},
		},
		{
			name: "sleep", want: []string{"a b, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("sleep", func(ctx context.Context, _ int) (string, error) {
					a, err := l.step(ctx, "one", "a")
					if err != nil {
						return "", err
					}
					began := durable.Now(ctx)
					if err := durable.Sleep(ctx, short); err != nil {
						return "", err
					}
					b, err := durable.Step(ctx, "two", func(ctx context.Context) (string, error) {
						l.did(ctx)
						// Elsewhere the clock of the run is that of the store, and
						// known only as well as the way there is fast.
						if slept := time.Since(began); l.b.virtual && slept < short {
							return "", fmt.Errorf("slept for %s", slept)
						}
						return "b", nil
					})
					return a + " " + b, err
				})}
			},
		},
		{
			name: "sleep until", want: []string{"awake, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("sleep until", func(ctx context.Context, _ int) (string, error) {
					for _, d := range []time.Duration{short, -time.Hour} {
						if err := durable.SleepUntil(ctx, durable.Now(ctx).Add(d)); err != nil {
							return "", err
						}
					}
					if err := durable.Sleep(ctx, 0); err != nil {
						return "", err
					}
					return l.step(ctx, "after", "awake")
				})}
			},
		},
	}
}
