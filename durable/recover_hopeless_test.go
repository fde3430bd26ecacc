package durable_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Recover meets such runs in three places: among those whose process is gone, those
// that wait, and those that were interrupted.
func TestRunsThatOnlyAPersonCanMendAreReportedAndKeepNoOtherFromBeingRecovered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w")
		w.serve(t, wf)
		start(t, w, wf, "before", 1)
		start(t, w, wf, "zz behind", 1)
		synctest.Wait()
		w.crash()
		w.expire()
		// A jump that was lost, and behind it an effect that must not happen twice.
		jumped := []store.Event{
			{Type: store.WorkflowCreated, Data: []byte(`{"seed":"0123456789abcdef"}`)}, {Type: store.WorkflowStarted},
			{Type: store.JumpRequested, Data: []byte(`{"to_branch":1}`)}, {Type: store.StepStarted, Key: "effect", Attempt: 1, Ordinal: 1, Data: []byte(`{"once":true}`)},
			{Type: store.RunResumed},
		}
		seed(t, w, store.Run{ID: "m orphaned", Workflow: "w", Version: "1", Status: store.Running, Owner: "gone"}, jumped...)
		seed(t, w, store.Run{ID: "m interrupted", Workflow: "w", Version: "1", Status: store.Interrupted}, jumped...)
		seed(t, w, store.Run{ID: "m waiting", Workflow: "w", Version: "1", Status: store.Waiting}, jumped[:2]...)

		rep := w.boot(t, with(wf))
		codes := map[string]string{}
		for _, s := range rep.Stuck {
			codes[s.RunID] = s.Code
			require.NotEmpty(t, s.Reason, s.RunID)
			require.Contains(t, s.Next, "Engine.History", s.RunID)
		}
		require.Equal(t, map[string]string{"m orphaned": durable.CodeUnrecoverable, "m interrupted": durable.CodeUnrecoverable, "m waiting": durable.CodeUnrecoverable}, codes)
		require.Equal(t, []string{"before", "zz behind"}, rep.Resumed)
		for _, id := range rep.Resumed {
			_, err := wait(t, w, wf, id)
			require.NoError(t, err)
		}
	})
}
