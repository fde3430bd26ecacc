package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// pausedOnce asks the root to pause as soon as label is on record, waits until
// that is carried out, does what is to happen meanwhile, and lets it go on. In
// later lives it goes on where it was.
func (l *life) pausedOnce(ctx context.Context, label string, meanwhile func() error) error {
	if err := l.until(ctx, label); err != nil {
		return err
	}
	if !l.past["r workflow_paused"] {
		if err := ended(l.eng.Pause(l.ctx, l.trial.id, "hold on")); err != nil {
			return err
		}
		if err := l.until(ctx, "r workflow_paused"); err != nil {
			return err
		}
	}
	if l.past["r workflow_unpaused"] {
		return nil
	}
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return err
		}
	}
	return ended(l.eng.Unpause(l.ctx, l.trial.id))
}

func renewalShapes() []*shape { return append(generationShapes(), pauseShapes()...) }

// generationShapes have steps with names of their own in each generation, so
// that effects can be told apart.
func generationShapes() []*shape {
	return []*shape{
		{
			name: "generations", unloadsEverywhere: true, want: []string{"7123, <nil>"}, may: []string{"r wait_requested letter"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("generations", func(ctx context.Context, n int) (string, error) {
					// All letters are sent while the first one lives.
					digit, err := durable.Await[int](ctx, "letter")
					if err != nil {
						return "", err
					}
					v, err := durable.Step(ctx, fmt.Sprint("work ", n), func(ctx context.Context) (int, error) {
						l.did(ctx)
						return 10*n + digit, l.until(ctx, "mail to r: signal letter 3")
					})
					if err != nil {
						return "", err
					}
					if v < 7000 {
						return "", durable.Continue(ctx, v)
					}
					return fmt.Sprint(v), nil
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r workflow_started"); err != nil {
					return err
				}
				for i := 1; i <= 3; i++ {
					if err := l.signal("letter", i, fmt.Sprint(i)); err != nil {
						return err
					}
				}
				return nil
			},
		},
		{
			name: "generations with children", want: []string{"kid 9, <nil>"}, wide: 2,
			may: []string{"r/sleeper timer_set sleep", "r/sleeper~b1 timer_set sleep", "r/sleeper~b2 timer_set sleep"},
			define: func(l *life) []durable.Definition {
				kid, sleeper := l.kid(0), durable.Define("sleeper", func(ctx context.Context, _ int) (int, error) {
					return 0, durable.Sleep(ctx, time.Hour)
				})
				return []durable.Definition{durable.Define("generations with children", func(ctx context.Context, n int) (string, error) {
					// One to be cancelled at the end of its generation.
					if _, err := sleeper.Start(ctx, durable.AutoID, n); err != nil {
						return "", err
					}
					v, err := kid.Run(ctx, durable.AutoID, n)
					if err != nil || n == 9 {
						return v, err
					}
					return "", durable.Continue(ctx, n+1)
				}), kid, sleeper}
			},
		},
		{
			name: "generation with a branch left behind", want: []string{"fast 8, <nil>"}, wide: 2,
			leaves: []string{"slow/sleep"},
			may:    []string{"r step_started slow", "r timer_set slow/sleep"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("generation with a branch left behind", func(ctx context.Context, n int) (string, error) {
					slow := durable.Go(ctx, "slow", func(ctx context.Context) (string, error) { return "slow", durable.Sleep(ctx, time.Hour) })
					fast := durable.Go(ctx, "fast", func(ctx context.Context) (string, error) {
						return l.step(ctx, fmt.Sprint("work ", n), fmt.Sprint("fast ", n))
					})
					_, v, err := durable.First(ctx, "winner", fast, slow)
					if err != nil || n == 8 {
						return v, err
					}
					return "", durable.Continue(ctx, n+1)
				})}
			},
		},
		{
			name: "cancel between generations", want: []string{", run r (cancel between generations) cancelled: enough"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("cancel between generations", func(ctx context.Context, n int) (string, error) {
					if n == 8 {
						return "", durable.Sleep(ctx, time.Hour)
					}
					_, err := l.step(ctx, "work", "a")
					if err != nil {
						return "", err
					}
					return "", durable.Continue(ctx, n+1)
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r workflow_continued"); err != nil {
					return err
				}
				return l.cancel()
			},
			may: []string{"r timer_set sleep"},
		},
	}
}

func pauseShapes() []*shape {
	return []*shape{
		{
			name: "pause in mid-wait", unloadsEverywhere: true, want: []string{"x, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("pause in mid-wait", func(ctx context.Context, _ int) (string, error) {
					v, err := durable.Await[string](ctx, "letter", durable.Timeout(time.Hour))
					if err != nil {
						return "", err
					}
					return l.step(ctx, "after", v)
				})}
			},
			script: func(ctx context.Context, l *life) error {
				return l.pausedOnce(ctx, "r wait_requested letter", func() error { return l.signal("letter", "x", "1") })
			},
		},
		{
			name: "pause in mid-sleep", may: []string{"r wait_requested letter"}, want: []string{"awake, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("pause in mid-sleep", func(ctx context.Context, _ int) (string, error) {
					if err := durable.Sleep(ctx, 2*short); err != nil {
						return "", err
					}
					if _, err := l.step(ctx, "between", ""); err != nil {
						return "", err
					}
					// So that it does not end before it is asked to pause.
					_, err := durable.Await[string](ctx, "letter")
					return "awake", err
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.pausedOnce(ctx, "r timer_set sleep", func() error {
					select {
					case <-time.After(2 * short): // it runs out meanwhile
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}); err != nil {
					return err
				}
				return l.signal("letter", "x", "1")
			},
		},
		{
			name: "pause in mid-step", want: []string{"done by attempt 2, <nil>"},
			// On a busy machine it may end before it comes to know.
			may: []string{"r workflow_paused", "r workflow_unpaused"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("pause in mid-step", func(ctx context.Context, _ int) (string, error) {
					return durable.Retry(ctx, "long", durable.Policy{MaxAttempts: 2, Initial: 3 * short, Jitter: -1}, func(ctx context.Context) (string, error) {
						a := l.did(ctx)
						if a.Number > 1 {
							return fmt.Sprint("done by attempt ", a.Number), nil
						}
						if err := l.until(ctx, "mail to r: pause"); err != nil {
							return "", err
						}
						return "", errors.New("it is recorded as a failed attempt all the same")
					}, durable.LongOperation())
				})}
			},
			script: func(ctx context.Context, l *life) error { return l.pausedOnce(ctx, "r step_started long 1", nil) },
		},
		{
			name: "cancel of a paused run", want: []string{", run r (cancel of a paused run) cancelled: enough"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("cancel of a paused run", func(ctx context.Context, _ int) (string, error) {
					if err := l.book(ctx, "hotel", nil); err != nil {
						return "", err
					}
					return "", durable.Sleep(ctx, time.Hour)
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r timer_set sleep"); err != nil {
					return err
				}
				if !l.past["r workflow_paused"] {
					if err := ended(l.eng.Pause(l.ctx, l.trial.id, "hold on")); err != nil {
						return err
					}
					if err := l.until(ctx, "r workflow_paused"); err != nil {
						return err
					}
				}
				return l.cancel()
			},
		},
	}
}
