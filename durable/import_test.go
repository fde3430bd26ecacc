package durable_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Time stands still in a bubble while there is something to do, so that two
// imports of one moment have the same microsecond. Each of them has seen that the
// id is free before the other one has begun.
func TestTwoImportsInOneMicrosecondDoNotMixTheirFiles(t *testing.T) {
	for name, earlier := range map[string]time.Duration{"of one event": 0, "of many": time.Minute} {
		for _, sameEngine := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					wf := traveller()
					if earlier > 0 {
						w.boot(t, with(wf))
					} else {
						w.open(t, durable.Options{})
					}
					_, err := durable.Ref[int, string]("traveller").Start(w.ctx(), "r", 0)
					require.NoError(t, err)
					pass(earlier)
					poor := export(t, w, "r")
					require.NoError(t, w.eng.Signal(w.ctx(), "r", "on", "a letter"))
					synctest.Wait()
					rich := export(t, w, "r")

					w.data = newWorld(t).data
					one := w.open(t, durable.Options{})
					disk := w.disk
					other := one
					if !sameEngine {
						other = w.open(t, durable.Options{})
					}
					began := time.Now()
					disk.tamper(func(batch []store.Change, forward func() []error) []error {
						disk.tamper(nil)
						_, err := operate.On(other).Import(context.Background(), bytes.NewReader(poor), operate.ImportOptions{})
						require.NoError(t, err)
						return forward()
					})
					_, err = operate.On(one).Import(context.Background(), bytes.NewReader(rich), operate.ImportOptions{})
					require.ErrorIs(t, err, store.ErrExists, "its letter is not there")
					require.Equal(t, began, time.Now())
					require.Zero(t, w.row("r").Inbox)
					require.Empty(t, verify(t, w, "r").Findings)
				})
			})
		}
	}
}

// The other run of its queue goes on though the import was cut off.
func TestARunThatHasCompletedHoldsNoPlaceWhileItIsImported(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := traveller()
		one := with(wf)
		one.Queues = []durable.Queue{{Name: "q", Max: 1}}
		w.boot(t, one)
		h, err := wf.Start(w.ctx(), "r", 0, durable.OnQueue("q"))
		require.NoError(t, err)
		pass(5 * time.Second)
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", "one "))
		require.NoError(t, durable.Signal(w.ctx(), "r", "on", "two"))
		_, err = h.Wait(w.ctx())
		require.NoError(t, err)
		file := export(t, w, "r")

		w.data = newWorld(t).data
		w.boot(t, one)
		var held []int64
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			errs := forward()
			q, err := store.CapabilitiesOf(w.data).Queues.Queues(w.ctx(), "q")
			require.NoError(t, err)
			held = append(held, q[0].Placed)
			return errs
		})
		require.NoError(t, second(imports(w, file, operate.ImportOptions{})))
		w.disk.tamper(nil)
		require.Greater(t, len(held), 2)
		for i, n := range held {
			if i != len(held)-2 { // a completed run was running before
				require.Zero(t, n, "after write %d of %d", i+1, len(held))
			}
		}
		require.Equal(t, store.Completed, w.row("r").Status)
		require.Empty(t, verify(t, w, "r").Findings)
	})
}
