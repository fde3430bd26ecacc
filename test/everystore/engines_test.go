package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A program is an engine, and the context that carries it.
type program struct {
	context.Context
	eng *durable.Engine
}

// program opens an engine on a handle of its own, as another process has it. Its
// beats are rare, so that what it must learn from others it learns from notices.
func (d *data) program(t *testing.T, defs ...durable.Definition) program {
	t.Helper()
	return d.beating(t, longLease, defs...)
}

// beating is program with another lease, of which a third is between two beats.
func (d *data) beating(t *testing.T, lease time.Duration, defs ...durable.Definition) program {
	t.Helper()
	st, err := d.open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return runProgram(t, st, durable.Options{Workflows: defs, Lease: lease})
}

// unloading is program with an engine that unloads every wait at once.
func (d *data) unloading(t *testing.T, defs ...durable.Definition) program {
	t.Helper()
	st, err := d.open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return runProgram(t, st, durable.Options{Workflows: defs, Lease: longLease, UnloadAfter: time.Nanosecond})
}

func runProgram(t *testing.T, st store.Store, o durable.Options) program {
	t.Helper()
	p := openProgram(t, st, o)
	_, err := durable.Recover(p)
	require.NoError(t, err)
	return p
}

// openProgram is runProgram before it has recovered what others have left.
func openProgram(t *testing.T, st store.Store, o durable.Options) program {
	t.Helper()
	o.Logger, o.Grace = slog.New(slog.DiscardHandler), -1
	eng, err := durable.Open(context.Background(), st, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	ctx, stop := context.WithTimeout(durable.NewContext(context.Background(), eng), patience)
	t.Cleanup(stop)
	return program{ctx, eng}
}

// awaits looks from outside until a run has this status.
func (d *data) awaits(t *testing.T, id string, s store.Status) store.Run {
	t.Helper()
	for began := time.Now(); ; time.Sleep(moment) {
		h, err := d.outside.Load(context.Background(), id, store.Cursor{NoEvents: true})
		if err == nil && h.Run.Status == s {
			return h.Run
		}
		if !errors.Is(err, store.ErrNotFound) {
			require.NoError(t, err)
		}
		require.Less(t, time.Since(began), patience, "%s does not become %s", id, s)
	}
}

// letters waits for two letters.
var letters = durable.Define("letters", func(ctx context.Context, _ int) (string, error) {
	a, err := durable.Await[string](ctx, "letter")
	if err != nil {
		return "", err
	}
	b, err := durable.Await[string](ctx, "letter")
	return a + b, err
})

func TestARunThatWaitsIsSignalledFromAnotherEngine(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		here, there := d.program(t, letters), d.program(t)
		run, err := letters.Start(here, "r", 0)
		require.NoError(t, err)
		d.awaits(t, "r", store.Waiting)
		began := time.Now()
		for range 2 { // the second is the same one
			require.NoError(t, durable.Signal(there, "r", "letter", "x", durable.SignalID("1")))
		}
		require.NoError(t, durable.Signal(there, "r", "letter", "y", durable.SignalID("2")))
		out, err := run.Wait(here)
		require.NoError(t, err)
		require.Equal(t, "xy", out)
		t.Logf("two signals from another engine to the end of the run: %s", time.Since(began))
		// Its end is heard of there too.
		other, err := letters.Handle(there, "r")
		require.NoError(t, err)
		out, err = other.Wait(there)
		require.NoError(t, err)
		require.Equal(t, "xy", out)
		require.EqualValues(t, 2, d.awaits(t, "r", store.Completed).Inbox)
	})
}

func TestARunIsCancelledFromAnotherEngine(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		began, cause := make(chan struct{}), make(chan error, 1)
		long := durable.Define("long", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "body", func(ctx context.Context) (int, error) {
				close(began)
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return 0, ctx.Err()
			})
		})
		here, there := d.program(t, letters, long), d.program(t)
		waiting, err := letters.Start(here, "waiting", 0)
		require.NoError(t, err)
		busy, err := long.Start(here, "busy", 0)
		require.NoError(t, err)
		d.awaits(t, "waiting", store.Waiting)
		<-began
		asked := time.Now()
		for _, id := range []string{waiting.ID(), busy.ID()} {
			require.NoError(t, there.eng.Cancel(there, id, "enough"))
		}
		require.ErrorIs(t, <-cause, durable.ErrCancelled)
		took := time.Since(asked)
		t.Logf("cancel from another engine to the body: %s", took)
		_, err = waiting.Wait(here)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		_, err = busy.Wait(here)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
	})
}

func TestAChildIsExecutedByAnotherEngineThanItsParent(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		kid := durable.Define("kid", func(ctx context.Context, n int) (string, error) {
			if err := durable.Sleep(ctx, short); err != nil {
				return "", err
			}
			return durable.Step(ctx, "work", func(context.Context) (string, error) {
				if n == 13 {
					return "", durable.Permanent(errOdd)
				}
				return fmt.Sprint("kid ", n), nil
			})
		})
		ref := durable.Ref[int, string]("kid")
		parent := durable.Define("parent", func(ctx context.Context, _ int) (string, error) {
			good, err := ref.Start(ctx, durable.AutoID, 1)
			if err != nil {
				return "", err
			}
			_, bad := ref.Run(ctx, durable.AutoID, 13)
			v, err := good.Wait(ctx)
			return fmt.Sprint(v, ", ", errors.Is(bad, durable.ErrRunFailed)), err
		})
		here := d.program(t, parent)
		run, err := parent.Start(here, "r", 0)
		require.NoError(t, err)
		row := d.awaits(t, "r", store.Waiting)
		require.Equal(t, store.Pending, d.awaits(t, "r/kid", store.Pending).Status)
		began := time.Now()
		d.program(t, kid)
		out, err := run.Wait(here)
		require.NoError(t, err)
		require.Equal(t, "kid 1, true", out)
		t.Logf("two children elsewhere, begun once their code is there: %s", time.Since(began))
		require.Equal(t, row.Epoch+1, d.awaits(t, "r", store.Completed).Epoch, "the parent stayed with its owner")
	})
}

// What waits needs no owner: when the one engine closes, the other takes what is
// sent there at once, and what comes due there by itself within a beat.
func TestARunThatWaitsGoesOnInAnotherEngineWhenItsOwnHasClosed(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		const beat = 500 * time.Millisecond
		nap := durable.Define("nap", func(ctx context.Context, _ int) (string, error) {
			return "awake", durable.Sleep(ctx, 2*beat)
		})
		here := d.program(t, letters, nap)
		letterer, napper := d.program(t, letters), d.beating(t, 3*beat, nap)
		began := time.Now()
		for id, wf := range map[string]*durable.Workflow[int, string]{"r": letters, "nap": nap} {
			_, err := wf.Start(here, id, 0)
			require.NoError(t, err)
			d.awaits(t, id, store.Waiting)
		}
		require.NoError(t, here.eng.Close())
		for _, v := range []string{"x", "y"} {
			require.NoError(t, durable.Signal(letterer, "r", "letter", v))
		}
		h, err := letters.Handle(letterer, "r")
		require.NoError(t, err)
		out, err := h.Wait(letterer)
		require.NoError(t, err)
		require.Equal(t, "xy", out)
		if h, err = nap.Handle(napper, "nap"); err == nil {
			out, err = h.Wait(napper)
		}
		require.NoError(t, err)
		require.Equal(t, "awake", out)
		took := time.Since(began)
		t.Logf("a sleep of %s, taken over in its midst: %s", 2*beat, took)
		require.GreaterOrEqual(t, took, 2*beat-short)
	})
}
