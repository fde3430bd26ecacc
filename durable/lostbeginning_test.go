package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// headless is a store that has lost the first events of every run.
type headless struct{ store.Store }

func (h headless) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	found, err := h.Store.Load(ctx, id, c)
	if err == nil && found.Events != nil {
		all := found.Events
		found.Events = func(yield func(store.Event, error) bool) {
			for ev, err := range all {
				if err == nil && ev.Seq <= 2 {
					continue
				}
				if !yield(ev, err) {
					return
				}
			}
		}
	}
	return found, err
}

func TestARunThatHasLostItsBeginningIsStillDescribed(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Do(ctx, "first", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		return 0, errors.New("no")
	})
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, wf)
		start(t, w, wf, "r", 1)
		_, err := wait(t, w, wf, "r")
		require.Error(t, err)
		eng, err := durable.Open(context.Background(), headless{w.data}, durable.Options{})
		require.NoError(t, err)
		defer eng.Close()
		got, err := eng.Get(context.Background(), "r")
		require.NoError(t, err)
		require.Equal(t, store.Failed, got.Status)
		require.Equal(t, 1, got.Steps)
	})
}

// A call whose key is too long is refused and records nothing, but the calls after it
// must find a stop of the run where it was: after that call, which is no wait.
func TestACallThatIsRefusedForItsKeyIsNoWaitOfAStoppedRun(t *testing.T) {
	long := strings.Repeat("%", 255)
	nothing := func(context.Context) error { return nil }
	inWorld(t, func(t *testing.T, w *world) {
		stopped := make(chan struct{})
		var dive func(ctx context.Context, depth int) (int, error)
		dive = func(ctx context.Context, depth int) (int, error) {
			if depth > 0 {
				return durable.Go(ctx, long, func(ctx context.Context) (int, error) { return dive(ctx, depth-1) }).Wait(ctx)
			}
			if err := durable.Do(ctx, "a", nothing); err != nil {
				return 0, err
			}
			<-stopped
			return 0, errors.Join(errors.New("over"), durable.Do(ctx, long, nothing))
		}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Compensate(ctx, "undo", func(ctx context.Context) error { return durable.Do(ctx, "u", nothing) }); err != nil {
				return 0, err
			}
			if err := durable.Do(ctx, "first", nothing); err != nil {
				return 0, err
			}
			return dive(ctx, 5)
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "why"))
		synctest.Wait()
		close(stopped)
		_, err := wait(t, w, wf, "r")
		require.Error(t, err)
		said := false
		for ev, err := range w.eng.History(w.ctx(), "r") {
			require.NoError(t, err)
			var data struct {
				Stopped map[string]int
				Waits   map[string]int `json:"stopped_waits"`
			}
			if ev.Data != nil {
				require.NoError(t, json.Unmarshal(ev.Data, &data))
			}
			if data.Stopped != nil {
				said = true
				scope := strings.Repeat(strings.Repeat("%25", 255)+"/", 4) + strings.Repeat("%25", 255)
				require.Equal(t, 2, data.Stopped[scope], "after the refused call")
				require.Zero(t, data.Waits[scope])
			}
		}
		require.True(t, said)
	})
}
