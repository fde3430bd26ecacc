package durable_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// cancelsAtTheEnd has another process cancel run r while the end of r is on its way to the
// store.
func (w *world) cancelsAtTheEnd(t *testing.T) {
	elsewhere, err := durable.Open(t.Context(), w.data.Handle(), durable.Options{Grace: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, elsewhere.Close()) })
	cancelled := false
	w.disk.tamper(func(changes []store.Change, forward func() []error) []error {
		for i := range changes {
			ends := slices.ContainsFunc(changes[i].Events, func(e store.Event) bool { return e.Type == store.WorkflowCompleted })
			if ends && !cancelled {
				cancelled = true
				require.NoError(t, elsewhere.Cancel(t.Context(), "r", "no time"))
			}
		}
		return forward()
	})
}

// Of a cancel and a completion one comes first. If it is the cancel, the run is undone like
// any other that is cancelled.
func TestACancelThatComesBeforeTheCompletionIsRecordedUndoesTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var did []string
		wf := trip(func(what string) error { did = append(did, what); return nil }, func(context.Context) error { return nil })
		w.serve(t, wf)
		w.cancelsAtTheEnd(t)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.Equal(t, []string{"book flight", "book hotel", "book car", "cancel car", "cancel hotel", "cancel flight"}, did)
		w.allSound(t)
	})
}

func TestACancelThatComesBeforeTheCompletionIsRecordedUndoesTheRunInALaterProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var did []string
		crashes, killed := true, make(chan struct{})
		defer close(killed)
		wf := trip(func(what string) error {
			did = append(did, what)
			if what == "cancel hotel" && crashes {
				<-killed
			}
			return nil
		}, func(context.Context) error { return nil })
		w.serve(t, wf)
		w.cancelsAtTheEnd(t)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"cancel car", "cancel hotel"}, did[3:])
		crashes, did = false, nil
		w.reboot(t, durable.Options{Workflows: []durable.Definition{wf}})
		require.Equal(t, store.Cancelled, w.row("r").Status)
		require.Equal(t, []string{"cancel hotel", "cancel flight"}, did)
		w.allSound(t)
	})
}
