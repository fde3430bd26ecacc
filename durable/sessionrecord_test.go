package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// What is on record of a run is read from the store by another process, after each
// step of each iteration: how far it is, when that was saved, and the whole of
// what a session is made of.
func TestAfterEachStepOfEachIterationTheRecordSaysWhereTheRunStands(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("cook", func(ctx context.Context, n int) (string, error) {
			for _, name := range []string{"chop", "stir"} {
				_, err := durable.Step(ctx, name, func(context.Context) (string, error) {
					time.Sleep(time.Minute)
					return fmt.Sprint(name, " ", n), nil
				})
				if err != nil {
					return "", err
				}
			}
			if n < 2 {
				return "", durable.Continue(ctx, n+1)
			}
			return "served", nil
		}, durable.Steps("chop", "stir"))
		o := with(wf)
		w.boot(t, o)
		began := time.Now()
		_, err := wf.Start(w.ctx(), "cook-1757231340", 0, durable.Header("tenant", "acme"), durable.Exclusive("worktree:/src/app"))
		require.NoError(t, err)
		reader := w.open(t, durable.Options{})
		get := func() durable.Info {
			i, err := reader.Get(context.Background(), "cook-1757231340")
			require.NoError(t, err)
			return i
		}
		pass(30 * time.Second)
		require.Equal(t, began.UTC(), get().LastCheckpoint.Time(), "nothing but its start is saved yet")
		for iteration := range 3 {
			for k, name := range []string{"chop", "stir"} {
				if k == 1 && iteration < 2 {
					continue // it begins the next iteration in the same moment
				}
				at := began.Add(time.Duration(2*iteration+k+1) * time.Minute)
				pass(time.Until(at) + time.Millisecond)
				i := get()
				require.Equal(t, at.UTC(), i.LastCheckpoint.Time(), "%s of iteration %d", name, iteration)
				require.Equal(t, []any{name, k + 1, 2, int32(iteration)}, []any{lastStep(t, w), i.Steps, i.Total, i.Generation})
			}
		}
		i := get()
		require.Equal(t, []any{"cook-1757231340", "cook", store.Completed}, []any{i.ID, i.Workflow, i.Status})
		require.Equal(t, began.UTC(), i.StartedAt.Time())
		require.Equal(t, []string{"chop", "stir"}, i.Declared)
		require.Equal(t, map[string]string{"tenant": "acme"}, i.Headers)
		require.Equal(t, []string{"worktree:/src/app"}, i.Exclusive)
		require.NotEmpty(t, i.Environment.Dir)

		var results []string
		var input any
		for generation := range 3 {
			for ev, err := range operate.On(reader).HistoryOf(context.Background(), "cook-1757231340", generation) {
				require.NoError(t, err)
				p, err := operate.On(reader).Payload("cook-1757231340", ev)
				require.NoError(t, err)
				switch ev.Type {
				case store.WorkflowCreated:
					require.NoError(t, json.Unmarshal(p.Data, &input))
				case store.StepCompleted:
					results = append(results, string(p.Data))
				}
			}
		}
		require.Equal(t, 0.0, input)
		require.Equal(t, []string{`"chop 0"`, `"stir 0"`, `"chop 1"`, `"stir 1"`, `"chop 2"`, `"stir 2"`}, results)
	})
}

// lastStep is the key of the step that was recorded last.
func lastStep(t *testing.T, w *world) (key string) {
	t.Helper()
	for _, ev := range w.wholeLog("cook-1757231340") {
		if ev.Type == store.StepCompleted {
			key = ev.Key
		}
	}
	return key
}

// A checkpoint is as large after a hundred steps as after one, and a step costs one
// write and no read (TestAStepIsOneWriteAndNoReadAndARelaxedOneNone).
func TestACheckpointDoesNotGrowWithTheStepsBeforeIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			for range n {
				if _, err := durable.Step(ctx, "same", func(context.Context) (string, error) { return "the same result", nil }); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 200)
		require.NoError(t, err)
		var sizes []int
		for _, ev := range w.events("r") {
			if ev.Type == store.StepCompleted {
				sizes = append(sizes, len(ev.Data)+len(ev.Payload))
			}
		}
		require.Len(t, sizes, 200)
		for i, size := range sizes[1:] {
			require.Equal(t, sizes[1], size, "checkpoint %d", i+2)
		}
		require.LessOrEqual(t, sizes[1], sizes[0]+1)
	})
}
