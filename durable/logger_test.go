package durable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// lines is a JSON log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// of returns the lines with this message.
func (l *lines) of(t *testing.T, msg string) []map[string]any {
	return slices.DeleteFunc(l.all(t), func(m map[string]any) bool { return m["msg"] != msg })
}

func (l *lines) all(t *testing.T) (all []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		all = append(all, m)
	}
	return all
}

func TestTheLoggerOfARunNamesItAndIsSilentOnReplay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			durable.Logger(ctx).Info("begun")
			if err := durable.Do(ctx, "work", func(ctx context.Context) error {
				durable.Logger(ctx).Info("in the body")
				return nil
			}); err != nil {
				return 0, err
			}
			durable.Logger(ctx).WithGroup("g").With("n", 1).Info("behind the step")
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			_, err := durable.Go(ctx, "branch", func(ctx context.Context) (int, error) {
				durable.Logger(ctx).Info("in the branch")
				return 0, nil
			}).Wait(ctx)
			durable.Logger(ctx).Info("at the end")
			return 0, err
		})
		var log lines
		o := durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.NewJSONHandler(&log, nil))}
		w.boot(t, o)
		run, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		w.reboot(t, o)
		_, err = run.Wait(w.ctx())
		require.Error(t, err, "that handle is of the process that died")
		w.eventually("r", store.Waiting)
		pass(time.Hour)
		w.eventually("r", store.Completed)
		for _, msg := range []string{"begun", "in the body", "behind the step", "in the branch", "at the end"} {
			found := log.of(t, msg)
			require.Len(t, found, 1, msg)
			require.Equal(t, "r", found[0]["run"])
			require.Equal(t, "w", found[0]["workflow"])
		}
		require.Equal(t, "work", log.of(t, "in the body")[0]["step"])
		require.EqualValues(t, 1, log.of(t, "in the body")[0]["attempt"])
		require.Equal(t, "branch", log.of(t, "in the branch")[0]["scope"])
		require.Equal(t, map[string]any{"n": 1.0}, log.of(t, "behind the step")[0]["g"])
	})
}

func TestTheLoggerOutsideARunIsTheEngines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t)
		durable.Logger(w.ctx()).Info("hello")
		require.Len(t, w.log.find("hello"), 1)
		require.NotNil(t, durable.Logger(context.Background()))
	})
}

func TestHealthSaysWhetherAnEngineCanTakeWork(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, durable.Sleep(ctx, 1000*time.Hour) })
		eng := w.serve(t, wf)
		h, err := eng.Health(w.ctx())
		require.NoError(t, err)
		require.ErrorContains(t, h.Ready(), "Recover")

		_, err = eng.Recover(w.ctx())
		require.NoError(t, err)
		_, err = wf.Start(w.ctx(), "asleep", 0)
		require.NoError(t, err)
		_, err = durable.Ref[int, int]("elsewhere").Start(w.ctx(), "pending", 0)
		require.NoError(t, err)
		seed(t, w, store.Run{ID: "parked", Workflow: "w", Version: "1", Status: store.Interrupted, Code: durable.CodeDefinitionChanged},
			store.Event{Type: store.WorkflowCreated}, store.Event{Type: store.WorkflowInterrupted})
		synctest.Wait()
		h, err = eng.Health(w.ctx())
		require.NoError(t, err)
		require.NoError(t, h.Ready())
		require.Equal(t, 1, h.Unloaded)
		require.Zero(t, h.Executing)
		require.EqualValues(t, 1, h.Backlog)
		require.Equal(t, map[string]int64{durable.CodeDefinitionChanged: 1}, h.Stuck)

		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "beat" {
				return errors.New("the network is down")
			}
			return forward()
		})
		pass(time.Minute)
		h, err = eng.Health(w.ctx())
		require.NoError(t, err)
		require.ErrorContains(t, h.Ready(), "the last beat")
		w.disk.tamperCalls(nil)

		require.NoError(t, eng.Close())
		h, err = eng.Health(w.ctx())
		require.NoError(t, err)
		require.ErrorIs(t, h.Ready(), durable.ErrClosed)
		w.disk.cut()
	})
}
