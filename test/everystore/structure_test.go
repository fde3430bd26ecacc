package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

var errOdd = errors.New("odd")

// kid is a child: it works, sleeps, and says so; it refuses 13.
func (l *life) kid(pause time.Duration) *durable.Workflow[int, string] {
	return durable.Define("kid", func(ctx context.Context, n int) (string, error) {
		v, err := durable.Step(ctx, "work", func(ctx context.Context) (string, error) {
			l.did(ctx)
			if n == 13 {
				return "", durable.Permanent(errOdd)
			}
			return fmt.Sprint("kid ", n), nil
		})
		if err != nil {
			return "", err
		}
		return v, durable.Sleep(ctx, pause)
	})
}

// item is what a Map does with an item that needs no step.
func (l *life) item(n int) (int, error) {
	l.effect(l.trial.id, fmt.Sprintf("items[%d]", n))
	if n%2 == 1 {
		return 0, fmt.Errorf("%d: %w", n, errOdd)
	}
	return n * n, nil
}

func structureShapes() []*shape {
	return slices.Concat(childShapes(), branchShapes(), mapShapes())
}

func childShapes() []*shape {
	return []*shape{
		{
			name: "child", unloadsEverywhere: true, want: []string{"kid 1, <nil>"},
			define: func(l *life) []durable.Definition {
				kid := l.kid(short)
				return []durable.Definition{durable.Define("child", func(ctx context.Context, _ int) (string, error) {
					return kid.Run(ctx, durable.AutoID, 1)
				}), kid}
			},
		},
		{
			name: "two children", want: []string{"kid 1 meanwhile kid 2, <nil>"}, wide: 3,
			define: func(l *life) []durable.Definition {
				kid := l.kid(0)
				return []durable.Definition{durable.Define("two children", func(ctx context.Context, _ int) (string, error) {
					first, err := kid.Start(ctx, durable.AutoID, 1)
					if err != nil {
						return "", err
					}
					second, err := kid.Start(ctx, l.trial.id+"-second", 2)
					if err != nil {
						return "", err
					}
					m, err := l.step(ctx, "meanwhile", "meanwhile")
					if err != nil {
						return "", err
					}
					a, err := first.Wait(ctx)
					if err != nil {
						return "", err
					}
					b, err := second.Wait(ctx)
					return a + " " + m + " " + b, err
				}), kid}
			},
		},
		{
			name: "failing child", want: []string{"told of failed: true, <nil>"},
			errors: []durable.ErrorKind{durable.Sentinel("odd", errOdd)},
			define: func(l *life) []durable.Definition {
				kid := l.kid(0)
				return []durable.Definition{durable.Define("failing child", func(ctx context.Context, _ int) (string, error) {
					_, err := kid.Run(ctx, durable.AutoID, 13)
					var re *durable.RunError
					if !errors.As(err, &re) {
						return "", fmt.Errorf("no RunError: %w", err)
					}
					return l.step(ctx, "after", fmt.Sprintf("told of %s: %t", re.Status, errors.Is(err, errOdd)))
				}), kid}
			},
		},
		{
			name: "abandoned child", want: []string{"did not wait, <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				kid := l.kid(short)
				return []durable.Definition{durable.Define("abandoned child", func(ctx context.Context, _ int) (string, error) {
					if _, err := kid.Start(ctx, l.trial.id+"-kid", 1, durable.Abandon()); err != nil {
						return "", err
					}
					return l.step(ctx, "after", "did not wait")
				}), kid}
			},
		},
		{
			name: "child left behind", want: []string{"did not wait, <nil>"},
			define: func(l *life) []durable.Definition {
				kid := l.kid(time.Hour)
				return []durable.Definition{durable.Define("child left behind", func(ctx context.Context, _ int) (string, error) {
					if _, err := kid.Start(ctx, durable.AutoID, 1); err != nil {
						return "", err
					}
					err := durable.Do(ctx, "until it sleeps", func(ctx context.Context) error { return l.until(ctx, "r/kid timer_set sleep") })
					return "did not wait", err
				}), kid}
			},
		},
		{
			name: "cancelled family", want: []string{", run r (cancelled family) cancelled: enough"},
			define: func(l *life) []durable.Definition {
				kid := l.kid(time.Hour)
				return []durable.Definition{durable.Define("cancelled family", func(ctx context.Context, _ int) (string, error) {
					return kid.Run(ctx, durable.AutoID, 1)
				}), kid}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r/kid timer_set sleep"); err != nil {
					return err
				}
				return l.cancel()
			},
		},
	}
}

func branchShapes() []*shape {
	return []*shape{
		{
			name: "branches", want: []string{"a0 a1, <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("branches", func(ctx context.Context, _ int) (string, error) {
					var fs [2]*durable.Future[string]
					for i := range fs {
						fs[i] = durable.Go(ctx, "part", func(ctx context.Context) (string, error) {
							if err := durable.Sleep(ctx, time.Duration(i+1)*short/2); err != nil {
								return "", err
							}
							return l.step(ctx, "work", fmt.Sprint("a", i))
						})
					}
					a, err := fs[0].Wait(ctx)
					if err != nil {
						return "", err
					}
					b, err := fs[1].Wait(ctx)
					return a + " " + b, err
				})}
			},
		},
		{
			name: "children of branches", want: []string{"kid 0 kid 1, <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				kid := l.kid(0)
				return []durable.Definition{durable.Define("children of branches", func(ctx context.Context, _ int) (string, error) {
					var told [2]*durable.Future[string]
					for i := range told {
						told[i] = durable.Go(ctx, "part", func(ctx context.Context) (string, error) { return kid.Run(ctx, durable.AutoID, i) })
					}
					a, err := told[0].Wait(ctx)
					if err != nil {
						return "", err
					}
					b, err := told[1].Wait(ctx)
					return a + " " + b, err
				}), kid}
			},
		},
		{
			name: "group", want: []string{"no, <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("group", func(ctx context.Context, _ int) (string, error) {
					g := durable.NewGroup(ctx)
					g.Go("fails", func(ctx context.Context) error {
						if _, err := l.step(ctx, "work", "x"); err != nil {
							return err
						}
						return errors.New("no")
					})
					g.Go("fine", func(ctx context.Context) error {
						_, err := l.step(ctx, "work", "y")
						return err
					})
					return l.step(ctx, "after", fmt.Sprint(g.Wait()))
				})}
			},
		},
		{
			name: "first", unloadsEverywhere: true, want: []string{"1 fast, <nil>"}, leaves: []string{"slow/sleep"},
			may: []string{"r step_started slow", "r timer_set slow/sleep"}, // it may lose before it has begun
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("first", func(ctx context.Context, _ int) (string, error) {
					sleeper := func(d time.Duration, v string) func(context.Context) (string, error) {
						return func(ctx context.Context) (string, error) { return v, durable.Sleep(ctx, d) }
					}
					slow := durable.Go(ctx, "slow", sleeper(time.Hour, "slow"))
					fast := durable.Go(ctx, "fast", sleeper(short, "fast"))
					i, v, err := durable.First(ctx, "winner", slow, fast)
					if err != nil {
						return "", err
					}
					return l.step(ctx, "after", fmt.Sprint(i, " ", v))
				})}
			},
		},
	}
}

func mapShapes() []*shape {
	return []*shape{
		{
			name: "map", want: []string{"[0 4 16], <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("map", func(ctx context.Context, _ int) (string, error) {
					out, err := durable.Map(ctx, "items", []int{0, 2, 4}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, n int) (int, error) {
						v, err := l.step(ctx, "work", fmt.Sprint(n))
						return n * len(v) * n, err
					})
					if err != nil {
						return "", err
					}
					return fmt.Sprint(out), nil
				})}
			},
		},
		{
			name: "map that keeps going", want: []string{"[0 0 4 0] items[1] items[3] true, <nil>"}, wide: 2,
			errors: []durable.ErrorKind{durable.Sentinel("odd", errOdd)},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("map that keeps going", func(ctx context.Context, _ int) (string, error) {
					out, err := durable.Map(ctx, "items", []int{0, 1, 2, 3}, durable.MapOptions{Concurrency: 2, KeepGoing: true}, func(_ context.Context, n int) (int, error) {
						return l.item(n)
					})
					var me *durable.MapError
					if !errors.As(err, &me) || len(me.Failed) != 2 {
						return "", fmt.Errorf("no two dead letters: %w", err)
					}
					return l.step(ctx, "after", fmt.Sprint(out, " ", me.Failed[0].Key, " ", me.Failed[1].Key, " ", errors.Is(err, errOdd)))
				})}
			},
		},
		{
			name: "map whose failures are retried", want: []string{"[0 -1 4 -3], <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("map whose failures are retried", func(ctx context.Context, _ int) (string, error) {
					in, o := []int{0, 1, 2, 3}, durable.MapOptions{Concurrency: 2, KeepGoing: true}
					out, err := durable.Map(ctx, "items", in, o, func(_ context.Context, n int) (int, error) { return l.item(n) })
					if err == nil {
						return "", errors.New("no item has failed")
					}
					if _, err := l.step(ctx, "mend", ""); err != nil {
						return "", err
					}
					out, err = durable.RetryFailed(ctx, "again", in, out, err, o, func(_ context.Context, n int) (int, error) {
						l.effect(l.trial.id, fmt.Sprintf("again[%d]", n/2))
						return -n, nil
					})
					return fmt.Sprint(out), err
				})}
			},
		},
		{
			name: "map that stops", want: []string{"[0 0 0 0] items[1] 2 undone, <nil>"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("map that stops", func(ctx context.Context, _ int) (string, error) {
					out, err := durable.Map(ctx, "items", []int{0, 1, 2, 3}, durable.MapOptions{Concurrency: 1}, func(_ context.Context, n int) (int, error) {
						return l.item(n)
					})
					var me *durable.MapError
					if !errors.As(err, &me) {
						return "", fmt.Errorf("no MapError: %w", err)
					}
					return l.step(ctx, "after", fmt.Sprintf("%v %s %d undone", out, me.Failed[0].Key, me.Undone))
				})}
			},
		},
		{
			name: "map of a sequence", want: []string{"0 4 16 , <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("map of a sequence", func(ctx context.Context, _ int) (string, error) {
					source := slices.Values([]int{0, 2, 4})
					return durable.MapSeq(ctx, "items", source, durable.MapOptions{Concurrency: 2}, func(_ context.Context, n int) (int, error) {
						l.effect(l.trial.id, fmt.Sprintf("items[%d]", n/2))
						return n * n, nil
					}, "", func(acc string, v int) string { return acc + fmt.Sprint(v, " ") })
				})}
			},
		},
		{
			name: "map of sleeps and children", want: []string{"[kid 0 posted kid 1 posted], <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				kid := l.kid(0)
				return []durable.Definition{durable.Define("map of sleeps and children", func(ctx context.Context, _ int) (string, error) {
					out, err := durable.Map(ctx, "items", []int{0, 1}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, n int) (string, error) {
						if err := durable.Sleep(ctx, short/2); err != nil {
							return "", err
						}
						v, err := kid.Run(ctx, durable.AutoID, n)
						if err != nil {
							return "", err
						}
						return l.step(ctx, "post", v+" posted")
					})
					return fmt.Sprint(out), err
				}), kid}
			},
		},
	}
}
