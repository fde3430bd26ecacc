package durable_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The run that had the key has ended by the time the change is sent again, so the store refuses it
// although it was carried out.
func TestADebouncedStartWhoseAnswerIsLostIsOneRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var b beginnings
		wf := b.workflow(time.Hour)
		w.boot(t, queued(wf))
		soon := durable.Debounce("k", time.Second, time.Minute)
		one := bounce(t, w, wf, 1, soon)
		pass(2 * time.Second)
		require.Equal(t, store.Running, w.row(one).Status)
		var lost atomic.Bool
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if len(batch[0].Start) == 0 || lost.Swap(true) {
				return forward()
			}
			require.NoError(t, forward()[0])
			require.NoError(t, w.eng.Cancel(context.Background(), one, ""))
			pass(2 * time.Second) // it ends, and the new one begins
			return all(batch, store.ErrUnknown)
		})
		two := bounce(t, w, wf, 2, soon)
		require.True(t, lost.Load())
		pass(time.Minute)
		require.ElementsMatch(t, []string{one, two}, w.ids())
		require.Equal(t, []int{1, 2}, b.all())
	})
}

func TestADebouncedStartIsNotHeldBackBeyondTheDeadlineOfTheRunItFinds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var b beginnings
		wf := b.workflow(0)
		w.boot(t, queued(wf))
		hasty, patient := durable.Debounce("k", time.Second, 2*time.Second), durable.Debounce("k", 10*time.Second, 20*time.Second)
		one := bounce(t, w, wf, 1, hasty, durable.Deadline(5*time.Second))
		require.Equal(t, one, bounce(t, w, wf, 2, hasty))
		two := bounce(t, w, wf, 3, patient)
		require.NotEqual(t, one, two, "its time would be up before it begins")
		require.Equal(t, two, bounce(t, w, wf, 4, patient))
		waitAll(t, w, wf, one, two)
		require.Equal(t, []int{2, 4}, b.all())
	})
}

// A cancel that nobody has carried out yet: its process has died between the two writes.
func TestAStartIsNotDebouncedIntoARunThatIsBeingCancelled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var b beginnings
		wf := b.workflow(0)
		dying := w.open(t, queued(wf))
		broken := w.disk
		w.open(t, queued(wf)) // no engine takes the run up
		soon := durable.Debounce("k", time.Minute, time.Hour)
		one := bounce(t, w, wf, 1, soon)
		broken.cutBefore(store.WorkflowCancelled)
		var asked atomic.Bool
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if events := batch[0].Events; len(events) == 1 && events[0].Type == store.InputReplaced && !asked.Swap(true) {
				require.Error(t, dying.Cancel(context.Background(), one, ""))
				require.True(t, w.row(one).CancelAsked)
			}
			return forward()
		})
		two := bounce(t, w, wf, 2, soon)
		require.True(t, asked.Load())
		require.NotEqual(t, one, two, "a start that has returned is executed")
		w.boot(t, queued(wf))
		w.eventually(one, store.Cancelled)
		waitAll(t, w, wf, two)
		require.Equal(t, []int{2}, b.all())
		_ = dying.Close() // its disk is gone
	})
}

func TestADebouncedStartMayHaveTheLongestNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		long := strings.Repeat("n", store.MaxName)
		wf := durable.Define(long, func(_ context.Context, n int) (int, error) { return n, nil }, durable.Version(long))
		w.boot(t, queued(wf))
		soon := func(end string) []durable.StartOption {
			return []durable.StartOption{durable.OnQueue(long), durable.Debounce(long[1:]+end, time.Second, time.Minute)}
		}
		one := bounce(t, w, wf, 1, soon("a")...)
		require.Equal(t, one, bounce(t, w, wf, 2, soon("a")...))
		require.NotEqual(t, one, bounce(t, w, wf, 3, soon("b")...))
	})
}
