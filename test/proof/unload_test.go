package proof_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Of the guests, the even ones wait for a letter and the odd ones sleep.
const (
	guests = 20
	nap    = 3 * time.Second
)

func guestID(n int) string { return fmt.Sprintf("guest %02d", n) }

// host has guests that are unloaded as soon as they wait. On SIGINT it closes its
// engine.
func host(st store.Store, o orders) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT)
	defer stop()
	var here atomic.Int32
	guest := durable.Define("guest", func(ctx context.Context, n int) (string, error) {
		here.Add(1)
		defer here.Add(-1)
		if err := durable.Do(ctx, "check in", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		if n%2 == 1 {
			return "slept", durable.Sleep(ctx, nap)
		}
		return durable.Await[string](ctx, "letter")
	})
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{guest}, Logger: quiet(), UnloadAfter: time.Nanosecond})
	if err != nil {
		return err
	}
	ectx := durable.NewContext(context.Background(), eng)
	if _, err := durable.Recover(ectx); err != nil {
		return err
	}
	for n := range o.New {
		if _, err := guest.Start(ectx, guestID(n), n); err != nil {
			return err
		}
	}
	for {
		counts, err := st.Count(ctx, store.Filter{}, store.ByStatus)
		if err != nil {
			return err
		}
		if counts[string(store.Running)]+counts[string(store.Resuming)]+counts[string(store.Pending)] == 0 && here.Load() == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println("ready")
	<-ctx.Done()
	began := time.Now()
	if err := eng.Close(); err != nil {
		return err
	}
	fmt.Println("closed", time.Since(began) < time.Second, here.Load())
	return nil
}

func TestUnloadedRunsOutliveAKillAndAnInterruptOfTheirProcess(t *testing.T) {
	backends(t, func(t *testing.T, o orders) {
		o.Role, o.New = "host", guests
		st, err := openStore(o.Backend, o.DSN)
		require.NoError(t, err)
		defer st.Close()
		eng, err := durable.Open(t.Context(), st, durable.Options{Logger: quiet()})
		require.NoError(t, err)
		defer eng.Close()
		ctx, stop := context.WithTimeout(durable.NewContext(context.Background(), eng), time.Minute)
		defer stop()
		letter := func(guest int, v string) {
			require.NoError(t, durable.Signal(ctx, guestID(guest), "letter", v, durable.SignalID("1")))
		}
		result := func(guest int, want string) {
			h, err := durable.Ref[int, string]("guest").Handle(ctx, guestID(guest))
			require.NoError(t, err)
			out, err := h.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, want, out, guestID(guest))
		}
		waiting := func() int64 {
			n, err := st.Count(ctx, store.Filter{Statuses: []store.Status{store.Waiting}}, "")
			require.NoError(t, err)
			return n[""]
		}

		began := time.Now()
		a := start(t, o)
		a.await(t, "ready")
		require.EqualValues(t, guests, waiting())
		letter(0, "to the first")
		result(0, "to the first")
		a.kill(t)
		letter(2, "to nobody") // no process lives

		o.New = 0
		b := start(t, o)
		b.await(t, "ready")
		result(2, "to nobody")
		letter(4, "to the second")
		result(4, "to the second")
		require.NoError(t, b.Process.Signal(os.Interrupt))
		require.Equal(t, "true 0", b.await(t, "closed"), "at once, and nothing of them is left")
		require.NoError(t, b.Wait())
		left, err := st.Count(ctx, store.Filter{}, store.ByStatus)
		require.NoError(t, err)
		require.Zero(t, left[string(store.Interrupted)], "they wait, and were not in the midst of anything: %v", left)

		c := start(t, o)
		c.await(t, "ready")
		for n := range guests {
			switch {
			case n%2 == 1:
				result(n, "slept")
			case n > 4:
				letter(n, "to the third")
				result(n, "to the third")
			}
		}
		took := time.Since(began)
		t.Logf("three processes, naps of %s: %s", nap, took)
		require.GreaterOrEqual(t, took, nap)
		for n := range guests {
			checkIn(t, st, guestID(n))
		}
		require.NoError(t, c.Process.Signal(os.Interrupt))
		c.await(t, "closed")
		require.NoError(t, c.Wait())
	})
}

// checkIn looks at the history of a guest: each thing in it has happened once,
// however many processes have had it.
func checkIn(t *testing.T, st store.Store, id string) {
	h, err := st.Load(t.Context(), id, store.Cursor{All: true})
	require.NoError(t, err)
	count := map[store.Type]int{}
	for e, err := range h.Events {
		require.NoError(t, err)
		count[e.Type]++
	}
	for _, once := range []store.Type{store.WorkflowCreated, store.WorkflowStarted, store.StepCompleted, store.WorkflowCompleted} {
		require.Equal(t, 1, count[once], "%s of %s", once, id)
	}
	require.Equal(t, 1, count[store.TimerSet]+count[store.WaitRequested], "waits of %s", id)
	require.Zero(t, count[store.WorkflowInterrupted], id)
}
