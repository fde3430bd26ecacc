package archive_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// snapshotOf returns the snapshot of a run as it is in its store now.
func snapshotOf(t *testing.T, p *process, id string) *archive.RunSnapshot {
	t.Helper()
	a := openGit(t, repository(t))
	require.NoError(t, a.Store(t.Context(), id, exported(t, p, id)))
	e, err := a.Get(t.Context(), id)
	require.NoError(t, err)
	return archive.BuildSnapshot(e)
}

func say(ctx context.Context, step string) error {
	_, err := durable.Step(ctx, step, func(context.Context) (string, error) { return "done " + step, nil })
	return err
}

func TestOfSeveralWaitsTheSnapshotIsAtTheLastWithAllStepsBeforeIt(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
		for i := range in {
			if err := say(ctx, fmt.Sprint("step-", i)); err != nil {
				return 0, err
			}
			if _, err := durable.Await[int](ctx, fmt.Sprint("ask-", i), durable.Prompt(fmt.Sprintf("Question %d?", i))); err != nil {
				return 0, err
			}
		}
		return in, say(ctx, "end")
	})
	p := boot(t, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}})
	run, err := wf.Start(p.ctx, "r", 3)
	require.NoError(t, err)
	steps := map[string]json.RawMessage{}
	for i := range 3 {
		eventually(t, "it asks", func() bool {
			open, err := operate.On(p.Engine).ApprovalsOf(p.ctx, "r")
			return err == nil && len(open) == 1 && open[0].Name == fmt.Sprint("ask-", i)
		})
		steps[fmt.Sprint("step-", i)] = json.RawMessage(fmt.Sprintf(`"done step-%d"`, i))
		s := snapshotOf(t, p, "r")
		require.Equal(t, fmt.Sprint("ask-", i), s.ResumeAt)
		require.Equal(t, fmt.Sprintf("Question %d?", i), s.Prompt)
		require.Equal(t, steps, s.CompletedSteps)
		require.NoError(t, durable.Signal(p.ctx, "r", fmt.Sprint("ask-", i), 1))
	}
	_, err = run.Wait(p.ctx)
	require.NoError(t, err)
	s := snapshotOf(t, p, "r")
	require.Equal(t, []string{"ask-2", "Question 2?"}, []string{s.ResumeAt, s.Prompt})
	require.Contains(t, s.CompletedSteps, "end", "all steps, also those behind it")
}

func TestASnapshotIsOfThePresentGeneration(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
		if err := say(ctx, fmt.Sprint("step-", n)); err != nil {
			return 0, err
		}
		if n == 2 {
			return n, nil
		}
		if _, err := durable.Await[int](ctx, fmt.Sprint("ask-", n), durable.Prompt("More?")); err != nil {
			return 0, err
		}
		return 0, durable.Continue(ctx, n+1)
	})
	p := boot(t, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}})
	_, err := wf.Start(p.ctx, "r", 0)
	require.NoError(t, err)
	require.NoError(t, durable.Signal(p.ctx, "r", "ask-0", 1))
	eventually(t, "the second generation waits", func() bool {
		row := rowOf(t, p, "r")
		return row.Generation == 1 && row.Status == store.Waiting
	})
	s := snapshotOf(t, p, "r")
	require.Equal(t, "ask-1", s.ResumeAt)
	require.Equal(t, map[string]json.RawMessage{"step-1": json.RawMessage(`"done step-1"`)}, s.CompletedSteps)
	require.JSONEq(t, "0", string(s.Input), "what the run was started with")

	require.NoError(t, durable.Signal(p.ctx, "r", "ask-1", 1))
	eventually(t, "it ends", func() bool { return rowOf(t, p, "r").Status == store.Completed })
	require.Nil(t, snapshotOf(t, p, "r"), "the last generation has waited for nothing")
}

func TestASnapshotTellsWhatStepsUnderWayHaveSaved(t *testing.T) {
	saved := make(chan struct{}, 2)
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		for _, name := range []string{"done", "agent"} {
			f := durable.Go(ctx, name, func(ctx context.Context) (int, error) {
				return 1, durable.Do(ctx, "talk", func(ctx context.Context) error {
					if err := durable.SaveProgress(ctx, "session of "+name); err != nil || name == "done" {
						return err
					}
					saved <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				})
			})
			if name == "done" {
				if _, err := f.Wait(ctx); err != nil {
					return 0, err
				}
			}
		}
		_, err := durable.Await[int](ctx, "go on")
		return 0, err
	})
	st := memory.Open()
	p := boot(t, st.Handle(), durable.Options{Workflows: []durable.Definition{wf}, Grace: -1})
	_, err := wf.Start(p.ctx, "r", 0)
	require.NoError(t, err)
	<-saved
	eventually(t, "it asks", func() bool {
		for ev, err := range p.History(p.ctx, "r") {
			if err == nil && ev.Type == store.WaitRequested {
				return true
			}
		}
		return false
	})
	require.NoError(t, p.Close())
	p = boot(t, st.Handle(), durable.Options{})
	s := snapshotOf(t, p, "r")
	require.Equal(t, "go on", s.ResumeAt)
	require.Equal(t, map[string]json.RawMessage{"agent/talk": json.RawMessage(`"session of agent"`)}, s.StepsInProgress)
	require.Contains(t, s.CompletedSteps, "done/talk")
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(text), `"step_in_progress":{"agent/talk":"session of agent"}`)
}

func TestWhatAJumpHasLeftBehindCountsForNothingInTheSnapshot(t *testing.T) {
	var mended atomic.Bool
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		if err := say(ctx, "first"); err != nil {
			return 0, err
		}
		name := "wrong"
		if mended.Load() {
			name = "right"
		}
		if err := say(ctx, "after "+name); err != nil {
			return 0, err
		}
		if _, err := durable.Await[int](ctx, name, durable.Prompt(name+"?")); err != nil {
			return 0, err
		}
		return 0, errors.New("not this way")
	})
	p := boot(t, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}})
	run, err := wf.Start(p.ctx, "r", 0)
	require.NoError(t, err)
	require.NoError(t, durable.Signal(p.ctx, "r", "wrong", 1))
	_, err = run.Wait(p.ctx)
	require.ErrorIs(t, err, durable.ErrRunFailed)
	mended.Store(true)
	at, err := operate.On(p.Engine).CheckpointOf(p.ctx, "r", "first")
	require.NoError(t, err)
	_, err = operate.On(p.Engine).Resume(p.ctx, "r", operate.ResumeOptions{FromCheckpoint: at})
	require.NoError(t, err)
	eventually(t, "it waits", func() bool { return rowOf(t, p, "r").Status == store.Waiting })

	s := snapshotOf(t, p, "r")
	require.Equal(t, []string{"right", "right?"}, []string{s.ResumeAt, s.Prompt})
	require.Equal(t, map[string]json.RawMessage{"first": json.RawMessage(`"done first"`), "after right": json.RawMessage(`"done after right"`)}, s.CompletedSteps)
	left := 0
	for _, ev := range s.Trace {
		if ev.Abandoned {
			left++
		}
	}
	require.Positive(t, left, "it is in the trace all the same, and says that it was left")
}

// An entry of a run that never waited has no snapshot, and a start with what BuildSnapshot
// returned for it begins from nothing.
func TestAStartFromNoSnapshotBeginsFromNothing(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, in int) (int, error) { return in, say(ctx, "only") })
	p := boot(t, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}})
	_, err := wf.Run(p.ctx, "r", 1)
	require.NoError(t, err)
	none := snapshotOf(t, p, "r")
	require.Nil(t, none)

	out, err := wf.Run(p.ctx, "again", 2, none.Option())
	require.NoError(t, err)
	require.Equal(t, 2, out)
}
