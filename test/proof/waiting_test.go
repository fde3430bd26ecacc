package proof_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// letters waits for signals, and reports each on stdout.
func letters() *durable.Workflow[int, string] {
	return durable.Define("letters", func(ctx context.Context, n int) (string, error) {
		all := ""
		for range n {
			v, err := durable.Await[string](ctx, "letter")
			if err != nil {
				return "", err
			}
			all += v
			if err := durable.Do(ctx, "report", func(context.Context) error { fmt.Println("got", all); return nil }); err != nil {
				return "", err
			}
		}
		return all, durable.Do(ctx, "long", func(ctx context.Context) error {
			fmt.Println("inside")
			<-ctx.Done()
			fmt.Println("cause", context.Cause(ctx))
			return ctx.Err()
		})
	})
}

// waiter executes the letters run until it ends.
func waiter(st store.Store, o orders) error {
	wf := letters()
	ctx, eng, err := boot(st, o, wf)
	if err != nil {
		return err
	}
	run, err := wf.Start(ctx, "the run", 3)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = run.Wait(ctx)
	fmt.Println("outcome", errors.Is(err, durable.ErrRunCancelled))
	return eng.Close()
}

func TestSignalsAndACancelReachARunInAnotherProcessAcrossAKill(t *testing.T) {
	backends(t, func(t *testing.T, o orders) {
		o.Role, o.Lease = "waiter", 10*time.Minute // a beat comes too late for all of this
		st, err := openStore(o.Backend, o.DSN)
		require.NoError(t, err)
		defer st.Close()
		eng, err := durable.Open(t.Context(), st, durable.Options{Logger: quiet()})
		require.NoError(t, err)
		ctx := durable.NewContext(t.Context(), eng)

		a := start(t, o)
		a.await(t, "ready")
		began := time.Now()
		require.NoError(t, durable.Signal(ctx, "the run", "letter", "x", durable.SignalID("1")))
		require.Equal(t, "x", a.await(t, "got"))
		t.Logf("signal to step in another process: %s", time.Since(began))
		a.kill(t)
		a.isGone(t, st) // b looks at once, and then not again for minutes
		require.NoError(t, durable.Signal(ctx, "the run", "letter", "y", durable.SignalID("2")))

		b := start(t, o)
		got := b.await(t, "got")
		if got == "x" { // the report of the first was in flight at the kill
			got = b.await(t, "got")
		}
		require.Equal(t, "xy", got)
		require.NoError(t, durable.Signal(ctx, "the run", "letter", "z", durable.SignalID("3")))
		b.await(t, "inside")
		began = time.Now()
		require.NoError(t, eng.Cancel(ctx, "the run", "enough"))
		require.Equal(t, "run the run was cancelled: enough", b.await(t, "cause"))
		took := time.Since(began)
		t.Logf("cancel to body in another process: %s", took)
		require.Less(t, took, o.Lease/3, "by its notice and not by a beat")
		require.Equal(t, "true", b.await(t, "outcome"))
		require.NoError(t, b.Wait())
		require.NoError(t, eng.Close())
	})
}
