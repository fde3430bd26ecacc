package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/misuse"
)

// talks are workflows that talk to others while they run, or have something
// around their steps; each must end alike however it is killed. The first of
// each list is started, as run "r".
func talks(j *journal) map[string][]durable.Definition {
	body := func(v string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { j.add(ctx); return v, nil }
	}
	define := func(name string, fn func(ctx context.Context, in int) (string, error)) durable.Definition {
		return durable.Define(name, fn)
	}
	server := durable.Define("server", func(ctx context.Context, n int) (int, error) {
		for i := range n {
			q, err := durable.AwaitRequest[int](ctx, "half")
			if err != nil {
				return i, err
			}
			if q.Value%2 != 0 {
				err = q.Refuse(ctx, fmt.Errorf("%d is odd: %w", q.Value, errStock))
			} else {
				err = q.Reply(ctx, q.Value/2)
			}
			if err != nil {
				return i, err
			}
		}
		return n, nil
	})
	return map[string][]durable.Definition{
		"publish": {define("publish", func(ctx context.Context, _ int) (string, error) {
			for i := range 2 {
				if err := durable.Publish(ctx, "progress", i); err != nil {
					return "", err
				}
				if _, err := durable.Step(ctx, "work", body("x")); err != nil {
					return "", err
				}
			}
			err := durable.SetAttributes(ctx, map[string]string{"stage": "one", "gone": "x"})
			if err != nil {
				return "", err
			}
			_, err = durable.Go(ctx, "branch", func(ctx context.Context) (int, error) {
				return 0, errors.Join(durable.Publish(ctx, "progress", 7), durable.SetAttributes(ctx, map[string]string{"stage": "two", "gone": ""}))
			}).Wait(ctx)
			if err != nil {
				return "", err
			}
			return durable.Step(ctx, "read", func(ctx context.Context) (string, error) {
				j.add(ctx)
				n, ok, err := durable.Published[int](ctx, "r", "progress")
				return fmt.Sprint(n, ok), err
			})
		})},
		"requests": {define("requests", func(ctx context.Context, _ int) (string, error) {
			h, err := server.Start(ctx, durable.AutoID, 3)
			if err != nil {
				return "", err
			}
			all, err := durable.Step(ctx, "ask", func(ctx context.Context) (string, error) {
				j.add(ctx)
				a, err := durable.Request[int](ctx, h.ID(), "half", 10)
				if err != nil {
					return "", err
				}
				b, err := durable.Request[int](ctx, h.ID(), "half", 20)
				if err != nil {
					return "", err
				}
				_, err = durable.Request[int](ctx, h.ID(), "half", 3, durable.SignalID("mine"))
				if !errors.Is(err, errStock) {
					return "", fmt.Errorf("not refused: %w", err)
				}
				return fmt.Sprint(a, b, err), nil
			})
			if err != nil {
				return "", err
			}
			served, err := h.Wait(ctx)
			return fmt.Sprint(all, served), err
		}), server},
		"rivals": {define("rivals", func(ctx context.Context, _ int) (string, error) {
			rival := func(name string, at time.Duration) *durable.Future[string] {
				return durable.Go(ctx, name, func(ctx context.Context) (string, error) {
					if err := durable.Sleep(ctx, at); err != nil {
						return "", err
					}
					return durable.Await[string](ctx, "go")
				})
			}
			first, second := rival("first", 0), rival("second", time.Hour)
			_, err := second.Wait(ctx)
			var same *misuse.SameWaitError
			if !errors.As(err, &same) {
				return "", fmt.Errorf("not refused: %w", err)
			}
			if err := durable.Do(ctx, "send", func(ctx context.Context) error {
				j.add(ctx)
				return errors.Join(durable.Signal(ctx, "r", "go", 5, durable.SignalID("5")), durable.Signal(ctx, "r", "go", 6, durable.SignalID("6")), durable.Signal(ctx, "r", "go", "word", durable.SignalID("word")))
			}); err != nil {
				return "", err
			}
			_, err = first.Wait(ctx) // the first number, which is no string, is taken all the same
			if err == nil {
				return "", errors.New("a number was read as a string")
			}
			n, numberErr := durable.Await[int](ctx, "go")
			s, wordErr := durable.Await[string](ctx, "go")
			return fmt.Sprint(same, err, n, s), errors.Join(numberErr, wordErr)
		})},
		"rivals at once": {define("rivals at once", func(ctx context.Context, _ int) (string, error) {
			// Which of them is refused is chance, and then recorded; that it is
			// one, and that the other gets the signal, is none.
			var fs []*durable.Future[string]
			for range 3 {
				fs = append(fs, durable.Go(ctx, "rival", func(ctx context.Context) (string, error) {
					v, err := durable.Await[string](ctx, "go")
					if errors.As(err, new(*misuse.SameWaitError)) {
						return "refused", nil
					}
					return v, err
				}))
			}
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return "", err
			}
			if err := durable.Do(ctx, "send", func(ctx context.Context) error {
				j.add(ctx)
				return durable.Signal(ctx, "r", "go", "word", durable.SignalID("word"))
			}); err != nil {
				return "", err
			}
			n := map[string]int{}
			for _, f := range fs {
				v, err := f.Wait(ctx)
				if err != nil {
					return "", err
				}
				n[v]++
			}
			return fmt.Sprint(n), nil
		})},
		"dead letters": {define("dead letters", func(ctx context.Context, _ int) (string, error) {
			o := durable.MapOptions{KeepGoing: true, Concurrency: 2}
			item := func(last int) func(ctx context.Context, i int) (string, error) {
				return func(ctx context.Context, i int) (string, error) {
					return durable.Retry(ctx, "s", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(ctx context.Context) (string, error) {
						a := j.add(ctx)
						if i >= last {
							return "", errStock
						}
						return fmt.Sprint(i, ".", a.Number), nil
					})
				}
			}
			out, err := durable.Map(ctx, "m", upTo(4), o, item(2))
			out, err = durable.RetryFailed(ctx, "again", upTo(4), out, err, o, item(3))
			var me *durable.MapError
			if !errors.As(err, &me) {
				return "", err
			}
			return fmt.Sprint(out, me.Failed[0].Index, me.Failed[0].Attempts, me.Failed[0].Err), nil
		})},
		"around": {define("around", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Compensate(ctx, "undo", func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
				return "", err
			}
			_, err := durable.Retry(ctx, "faulty", durable.Policy{MaxAttempts: 3, Initial: time.Second}, body("v"))
			return "", durable.Permanent(fmt.Errorf("%v: undo it", err))
		})},
	}
}

func TestWhatTalksKilledAtAnyWriteEndsAsIfItHadNotBeen(t *testing.T) {
	o := durable.Options{Errors: []durable.ErrorKind{durable.Sentinel("stock", errStock)}}
	o.Around = []around{func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error {
		if a.Key == "faulty" && a.Number < 3 {
			return fmt.Errorf("fault %d", a.Number)
		}
		return next(ctx)
	}}
	points := 0
	for name := range talks(&journal{}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				define := func(j *journal) []durable.Definition { return talks(j)[name] }
				want, clean, writes := livesOf(t, o, define, nil)
				t.Log(want)
				for body, n := range clean.times() {
					require.Equal(t, 1, n, "body %s without any crash", body)
				}
				for at := 1; at <= writes; at++ {
					for _, after := range []bool{false, true} {
						points++
						got, j, _ := livesOf(t, o, define, []death{{at, after}})
						require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
						require.Len(t, j.times(), len(clean.times()))
						for body, n := range j.times() {
							require.LessOrEqual(t, n, 2, "body %s, killed once at write %d, after=%v", body, at, after)
						}
					}
				}
				for stride := 1; stride <= 3; stride++ {
					var deaths []death
					for i := range 10 {
						deaths = append(deaths, death{at: 2 + i%(stride+1), after: i%2 == 0})
					}
					got, _, _ := livesOf(t, o, define, deaths)
					require.Equal(t, want, got, "killed again and again, stride %d", stride)
				}
			})
		})
	}
	t.Logf("%d crash points", points)
}
