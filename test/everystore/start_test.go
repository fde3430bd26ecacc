package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// startShapes are about what a start says beside the input.
func startShapes() []*shape {
	return []*shape{
		{
			name: "headers", want: []string{"tenant t user u, tenant t user v, <nil>"},
			start: []durable.StartOption{durable.Header("tenant", "t"), durable.Header("user", "u")},
			define: func(l *life) []durable.Definition {
				read := func(ctx context.Context) (string, error) {
					// In a step, so that a replay must find what they were.
					return durable.Step(ctx, "read", func(ctx context.Context) (string, error) {
						l.did(ctx)
						h := durable.Headers(ctx)
						return "tenant " + h["tenant"] + " user " + h["user"], nil
					})
				}
				kid := durable.Define("reader", func(ctx context.Context, _ int) (string, error) { return read(ctx) })
				return []durable.Definition{durable.Define("headers", func(ctx context.Context, _ int) (string, error) {
					mine, err := read(ctx)
					if err != nil {
						return "", err
					}
					kids, err := kid.Run(ctx, durable.AutoID, 1, durable.Header("user", "v"))
					if err != nil {
						return "", err
					}
					if h := durable.Headers(ctx); len(h) != 2 || h["user"] != "u" {
						return "", fmt.Errorf("headers of the parent: %v", h)
					}
					return mine + ", " + kids, nil
				}), kid}
			},
		},
		{
			name: "signal with the start", want: []string{"x y, <nil>"},
			start: []durable.StartOption{
				durable.WithSignal("letter", "x", durable.SignalID("1")), durable.WithSignal("letter", "y", durable.SignalID("2")),
			},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("signal with the start", func(ctx context.Context, _ int) (string, error) {
					x, err := durable.Await[string](ctx, "letter")
					if err != nil {
						return "", err
					}
					if x, err = l.step(ctx, "between", x); err != nil {
						return "", err
					}
					y, err := durable.Await[string](ctx, "letter")
					if err != nil {
						return "", err
					}
					// However often it was started, there is no third one.
					_, err = durable.Await[string](ctx, "letter", durable.Timeout(0))
					if !errors.Is(err, durable.ErrTimeout) {
						return "", fmt.Errorf("a third letter: %w", err)
					}
					return x + " " + y, nil
				})}
			},
		},
		{
			name: "child with a signal", want: []string{"kid got x, <nil>"},
			define: func(l *life) []durable.Definition {
				kid := durable.Define("reader", func(ctx context.Context, _ int) (string, error) {
					v, err := durable.Await[string](ctx, "letter")
					return "kid got " + v, err
				})
				return []durable.Definition{durable.Define("child with a signal", func(ctx context.Context, _ int) (string, error) {
					return kid.Run(ctx, durable.AutoID, 1, durable.WithSignal("letter", "x", durable.SignalID("1")))
				}), kid}
			},
		},
		{
			name: "exclusive children", may: []string{"r-first wait_requested let go"}, want: []string{"second was refused, then kid 3, <nil>"}, wide: 2,
			define: func(l *life) []durable.Definition {
				kid := l.kid(0)
				holder := durable.Define("holder", func(ctx context.Context, _ int) (string, error) {
					return durable.Await[string](ctx, "let go")
				})
				// The data of a trial is used again; a key that was left taken would
				// be noticed by the next one all the same, and is told from it here.
				key := "worktree:" + l.trial.id
				return []durable.Definition{durable.Define("exclusive children", func(ctx context.Context, _ int) (string, error) {
					first, err := holder.Start(ctx, l.trial.id+"-first", 1, durable.Exclusive(key))
					if err != nil {
						return "", err
					}
					_, refused := kid.Start(ctx, l.trial.id+"-second", 2, durable.Exclusive("another", key))
					if !errors.Is(refused, durable.ErrOccupied) {
						return "", fmt.Errorf("not refused: %w", refused)
					}
					if err := durable.Do(ctx, "let go", func(ctx context.Context) error {
						l.did(ctx)
						return ended(durable.Signal(ctx, l.trial.id+"-first", "let go", "", durable.SignalID("1")))
					}); err != nil {
						return "", err
					}
					if _, err := first.Wait(ctx); err != nil {
						return "", err
					}
					v, err := kid.Run(ctx, l.trial.id+"-third", 3, durable.Exclusive(key, "another"))
					return "second was refused, then " + v, err
				}), holder, kid}
			},
		},
		{
			name: "exclusive", want: []string{"did it, <nil>"},
			// The same key for every trial on the data: each must free it.
			start: []durable.StartOption{durable.Exclusive("the one")},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("exclusive", func(ctx context.Context, _ int) (string, error) {
					return l.step(ctx, "work", "did it")
				})}
			},
		},
		{
			name: "started in bulk", want: []string{"[kid 0 kid 1 kid 2], <nil>"}, wide: 4,
			define: func(l *life) []durable.Definition {
				kid := l.kid(0)
				id := func(n int) string { return fmt.Sprint(l.trial.id, "-kid-", n) }
				var all iter.Seq2[string, int] = func(yield func(string, int) bool) {
					for n := range 3 {
						if !yield(id(n), n) {
							return
						}
					}
				}
				return []durable.Definition{durable.Define("started in bulk", func(ctx context.Context, _ int) (string, error) {
					if err := durable.Do(ctx, "start", func(ctx context.Context) error {
						l.did(ctx)
						b, err := kid.StartAll(ctx, all)
						if err == nil && (b.Started+b.Existing != 3 || len(b.Refused) > 0) {
							err = fmt.Errorf("%+v", b)
						}
						return err
					}); err != nil {
						return "", err
					}
					return durable.Step(ctx, "wait", func(ctx context.Context) (string, error) {
						l.did(ctx)
						var list []string
						for n := range all {
							h, err := kid.Handle(ctx, n)
							if err != nil {
								return "", err
							}
							v, err := h.Wait(ctx)
							if err != nil {
								return "", err
							}
							list = append(list, v)
						}
						return fmt.Sprint(list), nil
					})
				}), kid}
			},
		},
		{
			name: "deadline", want: []string{", run r (deadline) failed: run r has passed its deadline, then"},
			start: []durable.StartOption{durable.Deadline(3 * short)},
			races: true, // how far it comes
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("deadline", func(ctx context.Context, _ int) (string, error) {
					if err := l.book(ctx, "hotel", nil); err != nil {
						return "", err
					}
					return "", durable.Sleep(ctx, time.Hour)
				})}
			},
		},
		{
			name: "deadline of a child", want: []string{"too late, <nil>"}, races: true,
			define: func(l *life) []durable.Definition {
				kid := l.kid(time.Hour)
				return []durable.Definition{durable.Define("deadline of a child", func(ctx context.Context, _ int) (string, error) {
					_, err := kid.Run(ctx, durable.AutoID, 1, durable.Deadline(2*short))
					if !errors.Is(err, durable.ErrDeadline) || !strings.Contains(err.Error(), "has passed its deadline") {
						return "", fmt.Errorf("no deadline: %w", err)
					}
					return l.step(ctx, "after", "too late")
				}), kid}
			},
		},
	}
}
