package durable_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// Others tell by the recorded event whether a person resumed a run or recovery did.
func TestTheEventOfAResumeSaysSoAndThatOfARecoveryDoesNot(t *testing.T) {
	resumed := func(t *testing.T, w *world, id string) (said []bool) {
		for _, e := range w.events(id) {
			if e.Type != store.RunResumed {
				continue
			}
			var d struct {
				Resumed bool `json:"resumed"`
			}
			require.NoError(t, json.Unmarshal(e.Data, &d))
			said = append(said, d.Resumed)
		}
		return said
	}
	inWorld(t, func(t *testing.T, w *world) {
		mended, bodies := false, 0
		wf := flaky("w", &mended, &bodies)
		held, _ := holding("held")
		w.serve(t, wf, held)
		_, err := run(t, w, wf, "failed", 10)
		require.Error(t, err)
		mended = true
		require.NoError(t, resume(w.eng, w.ctx(), "failed"))
		_, err = wait(t, w, wf, "failed")
		require.NoError(t, err)
		require.Equal(t, []bool{true}, resumed(t, w, "failed"))

		start(t, w, held, "orphaned", 1)
		synctest.Wait()
		w.crash()
		w.expire()
		w.boot(t, with(wf, held))
		_, err = wait(t, w, held, "orphaned")
		require.NoError(t, err)
		require.Equal(t, []bool{false}, resumed(t, w, "orphaned"))
	})
}
