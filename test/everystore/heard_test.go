package everystore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

var naps = durable.Define("naps", func(ctx context.Context, n int) (int, error) {
	return n, durable.Sleep(ctx, 1500*time.Millisecond)
})

var plain = durable.Define("plain", func(_ context.Context, n int) (int, error) { return n, nil })

// A run that is due only later is put in line by an engine that does not take it. The one that
// takes it must learn when it is due, and not only from its next beat.
func TestADelayedRunOfAnotherEngineBeginsInItsTime(t *testing.T) {
	onEach(t, func(t *testing.T, _ backend, d *data) {
		here, there := d.program(t, plain), d.program(t)
		require.NotNil(t, here)
		_, err := plain.Enqueue(there, "r", 1, durable.Delay(300*time.Millisecond))
		require.NoError(t, err)
		d.awaits(t, "r", store.Completed)
	})
}

// An engine passes over what a notice tells of its own start of a run. If the run was there
// already, there is no such notice, and the next one tells of what others have done.
func TestTheEndOfARunIsHeardThatWasStartedAgainInVain(t *testing.T) {
	onEach(t, func(t *testing.T, _ backend, d *data) {
		goOn := make(chan struct{})
		first := durable.Define("first", func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "work", func(context.Context) (int, error) { <-goOn; return n, nil })
		})
		serving := func(def durable.Definition) program {
			st, err := d.open()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, st.Close()) })
			return runProgram(t, st, durable.Options{Workflows: []durable.Definition{def}, Lease: longLease, Queues: []durable.Queue{{Name: "q", Max: 1}}})
		}
		one, two := serving(first), serving(plain)
		_, err := first.Enqueue(one, "a", 1, durable.OnQueue("q"))
		require.NoError(t, err)
		d.awaits(t, "a", store.Running)
		_, err = plain.Enqueue(two, "b", 1, durable.OnQueue("q"))
		require.NoError(t, err)
		_, err = first.Enqueue(two, "a", 1, durable.OnQueue("q"))
		require.NoError(t, err)
		close(goOn)
		d.awaits(t, "b", store.Completed)
	})
}

// Whoever goes on with the runs of an engine that has ended learns at once when they are due.
func TestARunThatSleepsGoesOnInItsTimeInAnotherEngine(t *testing.T) {
	onEach(t, func(t *testing.T, _ backend, d *data) {
		here, there := d.program(t, naps), d.program(t, naps)
		require.NotNil(t, there)
		_, err := naps.Start(here, "r", 1)
		require.NoError(t, err)
		d.awaits(t, "r", store.Waiting)
		require.NoError(t, here.eng.Close())
		d.awaits(t, "r", store.Completed)
	})
}
