package durable_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// askingOne waits for a person and then makes a step.
func askingOne() *durable.Workflow[int, string] {
	return durable.Define("ask", func(ctx context.Context, _ int) (string, error) {
		ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Go on?"))
		if err != nil || !ok {
			return "no", err
		}
		return durable.Step(ctx, "act", func(context.Context) (string, error) { return "done", nil })
	}, durable.Steps("approve", "act"))
}

func TestAdoptExecutesOneWaitingRunAndNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := askingOne()
		w.boot(t, with(wf))
		for _, id := range []string{"mine", "other"} {
			_, err := wf.Start(w.ctx(), id, 0)
			require.NoError(t, err)
			w.eventually(id, store.Waiting)
		}
		w.crash()
		w.expire()

		w.open(t, with(wf)) // no Recover
		for _, id := range []string{"mine", "other"} {
			require.NoError(t, w.eng.Signal(context.Background(), id, "approve", true))
		}
		pass(time.Minute)
		require.Equal(t, store.Waiting, w.row("mine").Status, "nothing is claimed by itself")

		require.NoError(t, w.eng.Adopt(context.Background(), "mine"))
		if err := w.eng.Adopt(context.Background(), "mine"); err != nil { // adopting again does nothing, unless it has completed by now
			var no *durable.NotResumableError
			require.ErrorAs(t, err, &no)
			require.Equal(t, store.Completed, no.Status)
		}
		w.eventually("mine", store.Completed)
		require.Equal(t, []string{"workflow_created", "workflow_started", "wait_requested approve", "run_claimed", "signal_received approve", "step_completed act", "workflow_completed"}, w.story("mine"))
		pass(time.Minute)
		require.Equal(t, store.Waiting, w.row("other").Status)
	})
}

func TestAdoptRefusesWhatIsNotItsToTake(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := askingOne()
		w.boot(t, with(wf))
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		owner := w.eng

		var no *durable.NotResumableError
		second := w.open(t, with(wf))
		require.ErrorAs(t, second.Adopt(context.Background(), "r"), &no)
		require.Equal(t, "already in progress on executor "+owner.ID(), no.Reason)
		require.ErrorIs(t, second.Adopt(context.Background(), "nobody"), durable.ErrNotFound)

		require.NoError(t, owner.Close())
		without := w.open(t, durable.Options{})
		require.ErrorIs(t, without.Adopt(context.Background(), "r"), durable.ErrNotRegistered)
		require.NoError(t, without.Pause(context.Background(), "r", ""))
		require.ErrorAs(t, second.Adopt(context.Background(), "r"), &no)
		require.Equal(t, "it is paused", no.Reason)
		require.NoError(t, without.Cancel(context.Background(), "r", ""))
		before := w.story("r")
		require.NotContains(t, before, "run_claimed")
	})
}

func TestAdoptBeginsNoRunBeforeItMay(t *testing.T) {
	for name, o := range map[string]durable.StartOption{
		"Delay":    durable.Delay(time.Hour),
		"StartAt":  durable.StartAt(time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)), // an hour after a bubble begins
		"Debounce": durable.Debounce("k", time.Hour, 2*time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
				w.open(t, with(wf)) // no Recover
				h, err := wf.Start(w.ctx(), durable.AutoID, 1, o)
				require.NoError(t, err)
				pass(30 * time.Minute)
				var no *durable.NotResumableError
				require.ErrorAs(t, w.eng.Adopt(w.ctx(), h.ID()), &no)
				require.Equal(t, store.Pending, no.Status)
				require.Equal(t, "it may begin at "+w.row(h.ID()).WakeAt.Time().UTC().Format(time.RFC3339Nano)+" by the store's clock, and not before", no.Reason)
				require.Equal(t, []string{"workflow_created"}, w.story(h.ID()), "nothing has changed")
				pass(time.Hour)
				require.NoError(t, w.eng.Adopt(w.ctx(), h.ID()))
				w.eventually(h.ID(), store.Completed)
			})
		})
	}
}

func TestARunStartedThroughARefHasTheDeclaredStepsOfItsCode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, with(askingOne()))
		_, err := durable.Ref[json.RawMessage, json.RawMessage]("ask").Start(w.ctx(), "r", json.RawMessage(`7`))
		require.NoError(t, err)
		form, err := operate.On(w.eng).Form(context.Background(), "r")
		require.NoError(t, err)
		require.Equal(t, []string{"approve", "act"}, form.Declared)
	})
}
