package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// journal is what the outside world sees: which bodies ran, with which key and
// attempt. It survives every crash.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) add(ctx context.Context) durable.AttemptInfo {
	a := durable.Attempt(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, fmt.Sprintf("%s/%d %s", a.Key, a.Number, durable.IdempotencyKey(ctx)))
	return a
}

// times returns how often each body ran.
func (j *journal) times() map[string]int {
	n := map[string]int{}
	for _, e := range j.entries {
		n[e]++
	}
	return n
}

// shapes are workflows of different kinds; each must end alike however often it
// is killed.
func shapes(j *journal) map[string]*durable.Workflow[int, string] {
	ok := func(v string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { j.add(ctx); return v, nil }
	}
	failing := func(times int) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			a := j.add(ctx)
			if len(a.Failures) != a.Number-1 {
				return "", durable.Permanent(fmt.Errorf("attempt %d knows %d failures", a.Number, len(a.Failures)))
			}
			if a.Number <= times {
				return "", fmt.Errorf("failure %d", a.Number)
			}
			return fmt.Sprintf("ok after %d", times), nil
		}
	}
	define := func(name string, fn func(ctx context.Context, in int) (string, error)) *durable.Workflow[int, string] {
		return durable.Define(name, fn)
	}
	return map[string]*durable.Workflow[int, string]{
		"sequence": define("sequence", func(ctx context.Context, in int) (string, error) {
			var out []string
			for i := range 4 {
				v, err := durable.Step(ctx, "step", ok(fmt.Sprint(i)))
				if err != nil {
					return "", err
				}
				out = append(out, v)
			}
			return strings.Join(out, ","), nil
		}),
		"retries": define("retries", func(ctx context.Context, in int) (string, error) {
			a, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 4, Initial: time.Second}, failing(3))
			if err != nil {
				return "", err
			}
			b, err := durable.Retry(ctx, "ship", durable.Policy{Initial: time.Hour, Max: time.Hour}, failing(1))
			return a + b, err
		}),
		"exhausted": define("exhausted", func(ctx context.Context, in int) (string, error) {
			_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3, Initial: time.Second}, failing(9))
			var se *durable.StepError
			if !errors.As(err, &se) {
				return "", err
			}
			refund, err2 := durable.Step(ctx, "refund", ok("refunded"))
			return fmt.Sprintf("%v: %s", err, refund), err2
		}),
		"failing run": define("failing run", func(ctx context.Context, in int) (string, error) {
			if _, err := durable.Step(ctx, "first", ok("x")); err != nil {
				return "", err
			}
			return "", durable.Permanent(errors.New("out of stock"))
		}),
		"panic": define("panic", func(ctx context.Context, in int) (string, error) {
			_, err := durable.Step(ctx, "boom", func(ctx context.Context) (string, error) { j.add(ctx); panic("boom") })
			var p *durable.PanicError
			if !errors.As(err, &p) {
				return "", err
			}
			return durable.Step(ctx, "after", ok("survived "+p.Value))
		}),
		"relaxed": define("relaxed", func(ctx context.Context, in int) (string, error) {
			id := durable.NewID(ctx)
			a, err := durable.Step(ctx, "pure", ok("a"), durable.Relaxed())
			if err != nil {
				return "", err
			}
			n := durable.Rand(ctx).IntN(1000)
			b, err := durable.Step(ctx, "effect", func(ctx context.Context) (string, error) { j.add(ctx); return fmt.Sprint(a, n, id[14]), nil })
			if err != nil {
				return "", err
			}
			if err := durable.Do(ctx, "long", func(ctx context.Context) error { j.add(ctx); return nil }, durable.LongOperation()); err != nil {
				return "", err
			}
			// The numbers differ from run to run: only that they are the same
			// live and on replay is checked, by the second effect.
			again, err := durable.Step(ctx, "check", func(ctx context.Context) (string, error) {
				j.add(ctx)
				if want := fmt.Sprint(a, n, id[14]); want != b {
					return "", fmt.Errorf("drew %s, recorded %s", want, b)
				}
				return "same", nil
			})
			return again, err
		}),
		"seek": define("seek", func(ctx context.Context, in int) (string, error) {
			n, err := durable.Seek(ctx, "tune", durable.Policy{MaxAttempts: 5, Initial: time.Second}, func(ctx context.Context) (int, error) {
				a := j.add(ctx)
				best := 0
				if len(a.Failures) > 0 {
					if ok, err := a.Failures[len(a.Failures)-1].Output(&best); !ok || err != nil {
						return 0, durable.Permanent(fmt.Errorf("the last output is lost: %w", err))
					}
				}
				durable.Note(ctx, "best", best)
				return best + 40, nil
			}, func(score int) error {
				if score < 100 {
					return fmt.Errorf("score %d", score)
				}
				return nil
			})
			return fmt.Sprint(n), err
		}),
	}
}

// outcome runs a shape on a fresh store, killing its process at write k of each
// life listed, until it ends, and returns what it came to.
func outcome(t require.TestingT, name string, deaths []death) (result string, j *journal, writes int) {
	return lives(t, func(j *journal) *durable.Workflow[int, string] { return shapes(j)[name] }, deaths)
}

func lives(t require.TestingT, define func(*journal) *durable.Workflow[int, string], deaths []death) (result string, j *journal, writes int) {
	return livesOf(t, durable.Options{}, func(j *journal) []durable.Definition { return []durable.Definition{define(j)} }, deaths)
}

// livesOf is lives for several workflows, of which the first is started, on
// engines with these options.
func livesOf(t require.TestingT, o durable.Options, define func(*journal) []durable.Definition, deaths []death) (result string, j *journal, writes int) {
	j = &journal{}
	data := memory.Open()
	ctx := context.Background()
	quiet := slog.New(slog.DiscardHandler)
	for life := 0; ; life++ {
		defs := define(j)
		wf := defs[0].(*durable.Workflow[int, string])
		m := crashstore.New(data.Handle())
		if life < len(deaths) {
			m.DieAt(deaths[life].at, deaths[life].after)
		}
		o.Workflows, o.Logger, o.QuarantineAfter = defs, quiet, 100
		eng, err := durable.Open(ctx, m, o)
		require.NoError(t, err)
		ectx := durable.NewContext(ctx, eng)
		_, err = durable.Recover(ectx)
		if err == nil {
			var run *durable.Run[string]
			if run, err = wf.Start(ectx, "r", 7); err == nil {
				var out string
				wait, stop := context.WithTimeout(ectx, 30*24*time.Hour)
				go func() { // the waiter dies with its process
					select {
					case <-m.Died():
					case <-wait.Done():
					}
					stop()
				}()
				out, err = run.Wait(wait)
				stop()
				result = fmt.Sprintf("%s, %v", out, err)
			}
		}
		died := m.IsDead()
		_ = eng.Close()
		writes += m.Writes()
		if !died {
			require.NotErrorIs(t, err, context.Canceled)
			break
		}
		time.Sleep(2 * durable.DefaultLease)
	}
	check(t, data)
	require.NoError(t, data.Close())
	return result, j, writes
}

type death struct {
	at    int
	after bool
}

// check looks at the finished history: gapless, every step with one outcome,
// every attempt failed once, and no body run without need.
func check(t require.TestingT, data store.Store) {
	h, err := data.Load(context.Background(), "r", store.Cursor{All: true})
	require.NoError(t, err)
	var before store.Event
	seen := map[string]bool{}
	for e, err := range h.Events {
		require.NoError(t, err)
		require.Equal(t, before.Seq+1, e.Seq)
		require.Equal(t, store.Seal("r", before.Sum, &e), e.Sum)
		require.GreaterOrEqual(t, e.At, before.At)
		switch e.Type {
		case store.StepCompleted, store.StepFailed:
			require.False(t, seen[e.Key], "two outcomes of %s", e.Key)
			seen[e.Key] = true
		case store.AttemptFailed:
			id := fmt.Sprintf("%s/%d", e.Key, e.Attempt)
			require.False(t, seen[id], "attempt %s failed twice", id)
			require.False(t, seen[e.Key], "an attempt of %s after its outcome", e.Key)
			seen[id] = true
		}
		before = e
	}
	require.True(t, h.Run.Status.Terminal(), "it ended as %s", h.Run.Status)
	require.Empty(t, h.Run.Owner)
	checkVerified(t, data)
	checkStanding(t, data)
}

func TestARunKilledAtAnyWriteEndsAsIfItHadNotBeen(t *testing.T) {
	points := 0
	for name := range shapes(&journal{}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want, clean, writes := outcome(t, name, nil)
				for body, n := range clean.times() {
					require.Equal(t, 1, n, "body %s without any crash", body)
				}
				for at := 1; at <= writes; at++ {
					for _, after := range []bool{false, true} {
						points++
						got, j, _ := outcome(t, name, []death{{at, after}})
						require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
						for body, n := range j.times() {
							require.Contains(t, clean.times(), body, "killed at write %d, after=%v", at, after)
							require.LessOrEqual(t, n, 2, "body %s, killed once at write %d, after=%v", body, at, after)
						}
						require.Len(t, j.times(), len(clean.times()))
					}
				}
			})
		})
	}
	t.Logf("%d crash points", points)
}

func TestARunKilledAgainAndAgainEndsAsIfItHadNotBeen(t *testing.T) {
	for name := range shapes(&journal{}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want, clean, _ := outcome(t, name, nil)
				// In each life one write more is reached: a kill in every step
				// and during every recovery.
				for _, after := range []bool{false, true} {
					for stride := 1; stride <= 3; stride++ {
						var deaths []death
						for i := range 12 {
							deaths = append(deaths, death{at: 2 + i%(stride+1), after: after})
						}
						got, j, _ := outcome(t, name, deaths)
						require.Equal(t, want, got, "stride %d, after=%v", stride, after)
						require.Len(t, j.times(), len(clean.times()))
					}
				}
			})
		})
	}
}
