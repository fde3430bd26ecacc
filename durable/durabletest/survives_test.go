package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

func step(ctx context.Context, name string, v int) (int, error) {
	return durable.Step(ctx, name, func(context.Context) (int, error) { return v, nil })
}

func define(fn func(ctx context.Context, in int) (string, error)) *durable.Workflow[int, string] {
	return durable.Define("wf", fn)
}

// sound has one of each kind of call.
func sound(ctx context.Context, in int) (string, error) {
	start, id := durable.Now(ctx), durable.NewID(ctx)
	a, err := durable.Retry(ctx, "flaky", durable.Policy{MaxAttempts: 3, Initial: time.Second}, func(ctx context.Context) (int, error) {
		if n := durable.Attempt(ctx).Number; n < 3 {
			return 0, fmt.Errorf("failure %d", n)
		}
		return in, nil
	})
	if err != nil {
		return "", err
	}
	if err := durable.Sleep(ctx, 300*24*time.Hour); err != nil {
		return "", err
	}
	squares, err := durable.Map(ctx, "squares", []int{1, 2, 3}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, n int) (int, error) {
		return step(ctx, "square", n*n)
	})
	if err != nil {
		return "", err
	}
	answer, err := durable.Await[string](ctx, "approval")
	if err != nil {
		return "", err
	}
	if durable.NewID(ctx) == id || !durable.Now(ctx).After(start) {
		return "", errors.New("neither time nor chance")
	}
	return fmt.Sprint(a, squares, answer), nil
}

func TestAWorkflowThatIsSoundSurvives(t *testing.T) {
	durabletest.Survives(t, define(sound), 7, durabletest.Start(durable.WithSignal("approval", "yes")))
}

func TestItSurvivesInABubbleOfTheTestsOwnAndInRealTime(t *testing.T) {
	quick := define(func(ctx context.Context, in int) (string, error) {
		a, err := step(ctx, "a", in)
		return fmt.Sprint(a), errors.Join(err, durable.Sleep(ctx, time.Millisecond))
	})
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { durabletest.Survives(t, quick, 7) })
	})
	t.Run("real time", func(t *testing.T) { durabletest.Survives(t, quick, 7, durabletest.RealTime()) })
}

func TestSignalsComeFromBesideInEveryLife(t *testing.T) {
	durabletest.Survives(t, define(sound), 7, durabletest.Beside(func(ctx context.Context, id string) {
		_ = durable.Signal(ctx, id, "approval", "yes", durable.SignalID("only"))
	}))
}

func TestARunThatFailsAlikeSurvives(t *testing.T) {
	durabletest.Survives(t, define(func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return "", errors.Join(err, durable.Permanent(errors.New("out of stock")))
	}), 7, durabletest.Fails())
}

func TestARunOfOneWorkflowThatStartsAnotherSurvives(t *testing.T) {
	child := durable.Define("child", func(ctx context.Context, in int) (int, error) { return step(ctx, "double", 2*in) })
	durabletest.Survives(t, define(func(ctx context.Context, in int) (string, error) {
		n, err := child.Run(ctx, durable.AutoID, in)
		return fmt.Sprint(n), err
	}), 7, durabletest.Engine(durable.Options{Workflows: []durable.Definition{child}}))
}

// total is state that a replay does not restore.
var total int

// breaches are workflows that do not survive, with what the failure has to say.
var breaches = map[string]struct {
	fn   func(ctx context.Context, in int) (string, error)
	o    []durabletest.Option
	says []string
}{
	"the clock decides": {fn: func(ctx context.Context, in int) (string, error) {
		name := "even"
		if time.Now().Nanosecond()/1000%2 == 1 {
			name = "odd"
		}
		if _, err := step(ctx, name, in); err != nil {
			return "", err
		}
		_, err := step(ctx, "last", in)
		return "", err
	}, says: []string{`even`, `odd`, "durable.Now"}},
	"the clock in the output": {fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		return time.Now().Format(time.DateOnly), err
	}, says: []string{"the outcome is another one", "2000-01-0", "durable.Now"}},
	"map order decides": {fn: func(ctx context.Context, in int) (string, error) {
		for name := range map[string]int{"red": 1, "green": 2, "blue": 3, "white": 4} {
			if _, err := step(ctx, name, in); err != nil {
				return "", err
			}
		}
		return "", nil
	}, says: []string{"call ", "sort the keys"}},
	"map order in the output": {fn: func(ctx context.Context, in int) (string, error) {
		_, err := step(ctx, "a", in)
		m := map[string]int{"red": 1, "green": 2, "blue": 3, "white": 4}
		return fmt.Sprint(slices.Collect(maps.Keys(m))), err
	}, says: []string{"the outcome is another one", "red", "sort the keys"}},
	"a closure that a body sets": {fn: func(ctx context.Context, in int) (string, error) {
		var seen int
		err := durable.Do(ctx, "look", func(context.Context) error { seen = in; return nil })
		if err != nil {
			return "", err
		}
		_, err = step(ctx, "act", 0)
		return fmt.Sprint(seen), err
	}, says: []string{`completed with "7"`, `completed with "0"`, "return it from the step"}},
	"package state that a body sets": {fn: func(ctx context.Context, in int) (string, error) {
		if err := durable.Do(ctx, "add", func(context.Context) error { total = in; return nil }); err != nil {
			return "", err
		}
		if total == in {
			_, err := step(ctx, "all there", 0)
			return "", err
		}
		_, err := step(ctx, "something missing", 0)
		return "", err
	}, says: []string{"in a process of its own", "all there", "something missing", "package variable"}},
	"package state that is rebooted": {fn: func(ctx context.Context, in int) (string, error) {
		if err := durable.Do(ctx, "add", func(context.Context) error { total = in; return nil }); err != nil {
			return "", err
		}
		return fmt.Sprint(total), nil
	}, o: []durabletest.Option{durabletest.SameProcess(), durabletest.Reboot(func() { total = 0 })}, says: []string{`"7"`, `"0"`, "package variable"}},
	"a goroutine of the user's own": {fn: func(ctx context.Context, in int) (string, error) {
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = durable.Do(ctx, "notify", func(context.Context) error { time.Sleep(time.Second); return nil })
		})
		time.Sleep(time.Millisecond)
		_, err := step(ctx, "ship", in)
		wg.Wait()
		return "", err
	}, says: []string{"notify", "ship", "durable.Go"}},
	"a goroutine that races": {fn: func(ctx context.Context, in int) (string, error) {
		first := make(chan string, 2)
		go func() { _, _ = step(ctx, "a", in); first <- "step" }()
		go func() { time.Sleep(time.Duration(time.Now().Nanosecond()/1000%7) * time.Millisecond); first <- "timer" }()
		defer func() { <-first }()
		return <-first, nil
	}, says: []string{"goroutine of one's own"}},
	"chance decides how often": {fn: func(ctx context.Context, in int) (string, error) {
		for range 1 + time.Now().Nanosecond()/1000%3 {
			if _, err := step(ctx, "again", in); err != nil {
				return "", err
			}
		}
		return "", nil
	}, says: []string{"again"}},
}

func TestBreachesAreFoundAndTheirCauseIsNamed(t *testing.T) {
	for name, b := range breaches {
		t.Run(name, func(t *testing.T) {
			err := durabletest.Examine(t, define(b.fn), 7, b.o...)
			require.Error(t, err)
			t.Log(err)
			for _, part := range b.says {
				require.ErrorContains(t, err, part)
			}
		})
	}
}
