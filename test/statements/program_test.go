package statements_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// program has each kind of write. once counts the bodies of Once.
func program(once *atomic.Int32) (parent, child *durable.Workflow[int, int]) {
	one := func(ctx context.Context, name string) error {
		return durable.Do(ctx, name, func(context.Context) error { return nil })
	}
	child = durable.Define("child", func(ctx context.Context, n int) (int, error) { return n + 1, one(ctx, "in child") })
	return durable.Define("parent", func(ctx context.Context, n int) (int, error) {
		if err := one(ctx, "first"); err != nil {
			return 0, err
		}
		_, err := durable.Retry(ctx, "flaky", durable.Policy{Initial: time.Millisecond}, func(ctx context.Context) (int, error) {
			if durable.Attempt(ctx).Number == 1 {
				return 0, errors.New("not yet")
			}
			return 1, nil
		})
		if err != nil {
			return 0, err
		}
		asked := durable.Reconcile(func(context.Context) (int, bool, error) { n := once.Load(); return int(n), n > 0, nil })
		if _, err := durable.Once(ctx, "once", func(context.Context) (int, error) { return int(once.Add(1)), nil }, asked); err != nil {
			return 0, err
		}
		v, err := child.Run(ctx, durable.RunID(ctx)+"/child", n)
		if err != nil {
			return 0, err
		}
		s, err := durable.Await[int](ctx, "go")
		if err != nil {
			return 0, err
		}
		return v + s, durable.Sleep(ctx, time.Millisecond)
	}), child
}

// trial is a program on one store whose statements are made to fail.
type trial struct {
	eng    *durable.Engine
	parent *durable.Workflow[int, int]
	once   atomic.Int32
}

func begin(t *testing.T, st store.Store) *trial {
	t.Helper()
	tr := &trial{}
	parent, child := program(&tr.once)
	eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{parent, child}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	tr.eng, tr.parent = eng, parent
	return tr
}

// A failure is a class of errors: arm lets the call of that number meet it, and disarm
// returns what that call was; empty: there was none.
type failure struct {
	name   string
	arm    func(at int)
	disarm func() string
}

// all tries each failure at each call, until none fires.
func (tr *trial) all(t *testing.T, failures []failure) (trials, fired int) {
	t.Helper()
	stride := 15
	if os.Getenv("DURABLE_SOAK") != "" {
		stride = 1
	}
	ctx, stop := context.WithTimeout(durable.NewContext(t.Context(), tr.eng), 10*time.Minute)
	defer stop()
	for _, f := range failures {
		for at := 1; ; at += stride {
			require.Less(t, at, 1000, "%s fires at every number", f.name)
			tr.once.Store(0)
			id := fmt.Sprint(f.name, " ", at)
			f.arm(at)
			got, err := whole(ctx, tr.eng, tr.parent, id)
			hit := f.disarm()
			said := id + ": " + hit
			require.NoError(t, err, said)
			require.Equal(t, 12, got, said)
			require.EqualValues(t, 1, tr.once.Load(), said)
			look(t, ctx, tr.eng, id, said)
			trials++
			if hit == "" {
				break
			}
			fired++
		}
	}
	require.NotZero(t, fired)
	return trials, fired
}

// whole takes a run through its life, as a program does whose calls may be refused because the
// database is not to be reached: it makes them again.
func whole(ctx context.Context, eng *durable.Engine, wf *durable.Workflow[int, int], id string) (int, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	again := func(call func() error) error {
		for {
			err := call()
			if err == nil || ctx.Err() != nil || !mayCallAgain(err) {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
	if err := again(func() error { _, err := wf.Start(ctx, id, 1); return err }); err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	if err := again(func() error { return eng.Signal(ctx, id, "go", 10, durable.SignalID("s")) }); err != nil {
		return 0, fmt.Errorf("signal: %w", err)
	}
	for {
		run, err := wf.Handle(ctx, id)
		if err != nil {
			return 0, err
		}
		looks, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		out, err := run.Wait(looks)
		stop()
		var parked *durable.InterruptedError
		if err == nil || ctx.Err() != nil || !errors.As(err, &parked) && !errors.Is(err, context.DeadlineExceeded) && !mayCallAgain(err) {
			return out, err
		}
		if err := mend(ctx, eng, id, id+"/child"); err != nil {
			return 0, err
		}
	}
}

// mend is what a person does about runs that are parked because the store is said to be damaged.
// No other error may park one.
func mend(ctx context.Context, eng *durable.Engine, ids ...string) error {
	for _, id := range ids {
		info, err := eng.Get(ctx, id)
		switch {
		case err != nil && (errors.Is(err, durable.ErrNotFound) || mayCallAgain(err)), err == nil && !info.Parked():
			continue
		case err != nil:
			return err
		case !strings.Contains(info.Reason, store.ErrCorrupt.Error()):
			return fmt.Errorf("%s is parked: %s: %s", id, info.Code, info.Reason)
		}
		if _, err := operate.On(eng).Resume(ctx, id, operate.ResumeOptions{}); err != nil && !mayCallAgain(err) {
			return err
		}
	}
	return nil
}

// mayCallAgain reports whether an error says that the same call may succeed later: also once a
// person has looked at a file that SQLite says is damaged.
func mayCallAgain(err error) bool {
	return errors.Is(err, durable.ErrUnavailable) || errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrCorrupt)
}

// look reads a run that has ended.
func look(t *testing.T, ctx context.Context, eng *durable.Engine, id, said string) {
	t.Helper()
	v, err := operate.On(eng).Verify(ctx, id)
	require.NoError(t, err, said)
	require.Empty(t, v.Findings, said)
	done := map[string]bool{}
	for e, err := range eng.History(ctx, id) {
		require.NoError(t, err, said)
		if e.Type == store.StepCompleted {
			require.False(t, done[e.Key], "%s: %s twice", said, e.Key)
			done[e.Key] = true
		}
	}
	require.Len(t, done, 3, said)
}
