package durable_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A history names the types of errors, and log lines do. What an event of a newer
// version is called there stays, wherever the type is declared.
func TestAnEventOfANewerVersionIsCalledInHistoryAndLogWhatItAlwaysWas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if _, err := durable.Step(ctx, "a", one); err != nil {
				return 0, err
			}
			return 1, durable.Sleep(ctx, time.Hour)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 1)
		synctest.Wait()
		w.crash()
		w.expire()
		rebuild(t, w, "r", true, func(e *store.Event) {
			if e.Key == "a" {
				e.Type = "step_dreamt"
			}
		})
		w.boot(t, with(wf))
		row := w.eventually("r", store.Interrupted)
		require.Equal(t, durable.CodeUndecodable, row.Code, w.log)
		var d struct {
			Error struct {
				Causes []struct{ Message, Go string }
			}
		}
		require.NoError(t, json.Unmarshal(row.Last.Data, &d))
		require.Len(t, d.Error.Causes, 1, "%s", row.Last.Data)
		require.Contains(t, d.Error.Causes[0].Message, "step_dreamt")
		require.Equal(t, "*github.com/holdfast-dev/holdfast/durable.futureEventError", d.Error.Causes[0].Go)
		require.Contains(t, w.log.find("run parked")[0], "error_type=*durable.futureEventError")
	})
}

// That a program is too old for a run is no fault of the store, and is not to be tried
// again.
func TestRecoveringARunOfANewerVersionSaysThatItCannotBeReadHere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if _, err := durable.Step(ctx, "a", one); err != nil {
				return 0, err
			}
			return 1, durable.Sleep(ctx, time.Hour)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 1)
		synctest.Wait()
		w.crash()
		w.expire()
		rebuild(t, w, "r", true, func(e *store.Event) {
			if e.Key == "a" {
				e.Type = "step_dreamt"
			}
		})
		w.serve(t, wf)
		_, err := w.eng.RecoverRun(w.ctx(), "r")
		var cannot *durable.UndecodableError
		require.ErrorAs(t, err, &cannot)
		require.Equal(t, "step_dreamt", cannot.Recorded)
		require.NotErrorIs(t, err, durable.ErrUnavailable)
		require.ErrorContains(t, err, "newer version")

		op := operate.On(w.eng)
		for name, act := range map[string]func() error{
			"CheckpointOf": func() error { return second(op.CheckpointOf(w.ctx(), "r", "a")) },
			"Standing":     func() error { return second(op.Standing(w.ctx(), "r")) },
			"Resume":       func() error { return second(op.Resume(w.ctx(), "r", operate.ResumeOptions{})) },
			"Jump":         func() error { return second(op.Jump(w.ctx(), "r", 1, operate.JumpOptions{})) },
			"Edit":         func() error { return second(op.Edit(w.ctx(), "r", "a", 2, operate.EditOptions{})) },
			"Fork":         func() error { return second(op.Fork(w.ctx(), "r", operate.ForkOptions{ID: "f"})) },
		} {
			err := act()
			require.ErrorAs(t, err, &cannot, name)
			require.NotErrorIs(t, err, durable.ErrUnavailable, name)
		}
	})
}
