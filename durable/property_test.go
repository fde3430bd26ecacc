package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/durable"
)

// An op is one durable call of a generated workflow.
type op struct {
	kind  string
	name  string
	value int
	fails int // attempts that fail before one succeeds
	max   int
}

var ops = rapid.Custom(func(t *rapid.T) op {
	return op{
		kind:  rapid.SampledFrom([]string{"step", "retry", "relaxed", "long", "panic", "seek", "checkpoint", "draw", "sleep", "timeout", "branches", "first", "map"}).Draw(t, "kind"),
		name:  rapid.SampledFrom([]string{"a", "b", "a/b", "ü", "c#2"}).Draw(t, "name"),
		value: rapid.IntRange(0, 9).Draw(t, "value"),
		fails: rapid.IntRange(0, 4).Draw(t, "fails"),
		max:   rapid.IntRange(1, 4).Draw(t, "max"),
	}
})

// pause is how long a waiting op waits: from nothing to hours.
func (o op) pause() time.Duration { return time.Duration(o.fails*o.fails*o.fails) * time.Minute }

// interpret says what a program comes to, knowing nothing of durability.
func interpret(program []op) string {
	var out []string
	for _, o := range program {
		switch o.kind {
		case "step", "relaxed", "long":
			out = append(out, fmt.Sprint(o.value))
		case "retry", "seek":
			if o.fails >= o.max {
				out = append(out, fmt.Sprintf("gave up at %d", o.max))
			} else {
				out = append(out, fmt.Sprint(o.value+o.fails))
			}
		case "panic":
			out = append(out, fmt.Sprintf("panic: %d", o.value))
		case "timeout":
			out = append(out, "nobody")
		case "branches":
			out = append(out, fmt.Sprint(2*o.value+1))
		case "first":
			out = append(out, fmt.Sprint(o.value))
		case "map":
			out = append(out, fmt.Sprint(o.value*o.max))
		}
	}
	return strings.Join(out, ",")
}

// workflow makes the durable form of a program.
func workflow(j *journal, program []op) *durable.Workflow[int, string] {
	return durable.Define("program", func(ctx context.Context, _ int) (string, error) { return perform(ctx, j, program) })
}

// perform makes the calls of a program.
func perform(ctx context.Context, j *journal, program []op) (string, error) {
	var out []string
	for _, o := range program {
		v, err := execute(ctx, j, o)
		if err != nil {
			return "", err
		}
		if v != "" {
			out = append(out, v)
		}
	}
	return strings.Join(out, ","), nil
}

func execute(ctx context.Context, j *journal, o op) (string, error) {
	policy := durable.Policy{MaxAttempts: o.max, Initial: time.Second, Max: time.Hour}
	body := func(ctx context.Context) (int, error) { j.add(ctx); return o.value, nil }
	var n int
	var err error
	switch o.kind {
	case "step":
		n, err = durable.Step(ctx, o.name, body, durable.WithInput(o))
	case "relaxed":
		n, err = durable.Step(ctx, o.name, body, durable.Relaxed())
	case "long":
		n, err = durable.Step(ctx, o.name, body, durable.LongOperation())
	case "retry":
		n, err = durable.Retry(ctx, o.name, policy, func(ctx context.Context) (int, error) {
			if a := j.add(ctx); a.Number <= o.fails {
				return 0, fmt.Errorf("attempt %d", a.Number)
			}
			return o.value + o.fails, nil
		})
	case "seek":
		n, err = durable.Seek(ctx, o.name, policy, func(ctx context.Context) (int, error) {
			best := o.value
			a := j.add(ctx)
			if len(a.Failures) > 0 {
				if _, err := a.Failures[len(a.Failures)-1].Output(&best); err != nil {
					return 0, err
				}
				best++
			}
			return best, nil
		}, func(n int) error {
			if n < o.value+o.fails {
				return errors.New("too small")
			}
			return nil
		})
	case "sleep":
		return "", durable.Sleep(ctx, o.pause())
	case "timeout":
		if _, err := durable.Await[int](ctx, o.name, durable.Timeout(o.pause())); !errors.Is(err, durable.ErrTimeout) {
			return "", fmt.Errorf("no time-out: %w", err)
		}
		return "nobody", nil
	case "branches":
		// Twice the body, once behind a wait.
		work := func(more int, pause time.Duration) func(ctx context.Context) (int, error) {
			return func(ctx context.Context) (int, error) {
				if err := durable.Sleep(ctx, pause); err != nil {
					return 0, err
				}
				n, err := durable.Step(ctx, "work", body)
				return n + more, err
			}
		}
		a := durable.Go(ctx, o.name+"1", work(0, o.pause()))
		b := durable.Go(ctx, o.name+"2", work(1, 0))
		n, err := a.Wait(ctx)
		if err != nil {
			return "", err
		}
		m, err := b.Wait(ctx)
		return fmt.Sprint(n + m), err
	case "first":
		late := durable.Go(ctx, o.name+"late", func(ctx context.Context) (int, error) { return -1, durable.Sleep(ctx, 1000*time.Hour) })
		soon := durable.Go(ctx, o.name+"soon", func(ctx context.Context) (int, error) {
			if err := durable.Sleep(ctx, o.pause()); err != nil {
				return 0, err
			}
			return durable.Step(ctx, "work", body)
		})
		_, n, err = durable.First(ctx, o.name, late, soon)
	case "map":
		vs, err := durable.Map(ctx, o.name, make([]int, o.max), durable.MapOptions{Concurrency: 2}, func(ctx context.Context, _ int) (int, error) {
			if err := durable.Sleep(ctx, o.pause()); err != nil {
				return 0, err
			}
			return durable.Step(ctx, "work", body)
		})
		for _, v := range vs {
			n += v
		}
		return fmt.Sprint(n), err
	case "panic":
		_, err = durable.Step(ctx, o.name, func(ctx context.Context) (int, error) { j.add(ctx); panic(o.value) })
		if p := (*durable.PanicError)(nil); errors.As(err, &p) {
			return p.Error(), nil
		}
		return "", err
	case "checkpoint":
		return "", durable.Checkpoint(ctx)
	case "draw":
		// What is drawn is used as an input: were it another on replay, the
		// run would stop as changed.
		drawn := fmt.Sprint(durable.NewID(ctx), durable.Rand(ctx).Uint64(), durable.Now(ctx))
		return "", durable.Do(ctx, "draw", func(ctx context.Context) error { return nil }, durable.WithInput(drawn))
	}
	if se := (*durable.StepError)(nil); errors.As(err, &se) {
		return fmt.Sprintf("gave up at %d", se.Attempt), nil
	}
	return fmt.Sprint(n), err
}

// collector takes assertions inside a synctest bubble, so that rapid can report
// and shrink them outside.
type collector struct{ failure string }

func (c *collector) Errorf(format string, args ...any) { c.failure = fmt.Sprintf(format, args...) }
func (c *collector) FailNow()                          { panic(c) }

// bubble runs fn in a bubble with a virtual clock and returns the assertion
// that failed, if one did.
func bubble(t *testing.T, fn func(t require.TestingT)) string {
	c := &collector{}
	synctest.Test(t, func(*testing.T) {
		defer func() {
			if v := recover(); v != nil && v != any(c) {
				panic(v)
			}
		}()
		fn(c)
	})
	return c.failure
}

func TestAnyProgramUnderAnyKillsEqualsThePlainOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		program := rapid.SliceOfN(ops, 1, 12).Draw(rt, "program")
		unloadAfter := rapid.SampledFrom([]time.Duration{-1, time.Nanosecond, time.Minute}).Draw(rt, "unload after")
		var deaths []death
		for _, at := range rapid.SliceOfN(rapid.IntRange(1, 20), 0, 8).Draw(rt, "deaths") {
			deaths = append(deaths, death{at: at, after: rapid.Bool().Draw(rt, "after")})
		}
		if failure := bubble(t, func(t require.TestingT) {
			define := func(j *journal) []durable.Definition { return []durable.Definition{workflow(j, program)} }
			got, j, _ := livesOf(t, durable.Options{UnloadAfter: unloadAfter}, define, deaths)
			require.Equal(t, interpret(program)+", <nil>", got)
			for body, n := range j.times() {
				require.LessOrEqual(t, n, 1+len(deaths), "body %s", body)
			}
		}); failure != "" {
			rt.Fatal(failure)
		}
	})
}
