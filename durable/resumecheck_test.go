package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// failsAt is a workflow of two steps whose second one fails while it is broken.
func failsAt(ran *[]string, broken *bool, steps ...string) *durable.Workflow[int, string] {
	return durable.Define("order", func(ctx context.Context, _ int) (string, error) {
		out := ""
		for i, name := range steps {
			v, err := durable.Retry(ctx, name, durable.Policy{MaxAttempts: 2, Initial: time.Millisecond}, func(context.Context) (string, error) {
				*ran = append(*ran, name)
				if i == 1 && *broken {
					return "", errors.New("no stock")
				}
				return name, nil
			})
			if err != nil {
				return "", err
			}
			out += v
		}
		return out, nil
	})
}

// unchanged runs do, and requires that it has written nothing of these runs.
func (w *world) unchanged(t *testing.T, do func(), ids ...string) {
	t.Helper()
	type state struct {
		row    store.Run
		events int
	}
	look := func() (all []state) {
		for _, id := range ids {
			all = append(all, state{w.row(id), len(w.whole(id))})
		}
		return all
	}
	before := look()
	do()
	require.Equal(t, before, look())
}

func TestAResumeWhoseCodeDoesNotFitIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ran []string
		broken := true
		w.open(t, durable.Options{Workflows: []durable.Definition{failsAt(&ran, &broken, "one", "two", "three")}})
		h, err := failsAt(&ran, &broken, "one", "two", "three").Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrRunFailed)
		ran = nil

		w.serve(t, failsAt(&ran, &broken, "zero", "two", "three"))
		for _, o := range []operate.ResumeOptions{{}, {DryRun: true}, {ResetFailures: true}} {
			w.unchanged(t, func() {
				_, err := operate.On(w.eng).Resume(w.ctx(), "r", o)
				var changed *durable.DefinitionChangedError
				require.ErrorAs(t, err, &changed)
				require.Equal(t, "zero", changed.Call)
			}, "r")
		}
		require.Equal(t, store.Failed, w.row("r").Status)
		require.True(t, w.row("r").Recoverable)
		require.Empty(t, ran)

		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true, DryRun: true})
		require.NoError(t, err)
		require.Contains(t, plan.Warnings[len(plan.Warnings)-1], "zero is new")

		wrong := durable.Define("order", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil })
		})
		w.serve(t, wrong)
		w.unchanged(t, func() {
			_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
			var unreadable *durable.UndecodableError
			require.ErrorAs(t, err, &unreadable)
		}, "r")

		broken = false
		w.serve(t, failsAt(&ran, &broken, "one", "two", "three"))
		plan, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
		require.NoError(t, err)
		require.Empty(t, plan.Unchecked)
		require.Equal(t, []string{"two"}, plan.Reset)
		require.Equal(t, []string{"one"}, plan.Skipped)
		require.Equal(t, "Resuming from step 2 of 3", operate.Plan{Step: plan.Step, Steps: 3}.String())
		w.eventually("r", store.Completed)
		require.Equal(t, []string{"two", "three"}, ran)
	})
}

func TestAResumeLooksIntoBranchesAndItemsToo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		names, end := []string{"a", "b"}, errors.New("no")
		fn := func(ctx context.Context, _ int) (int, error) {
			f := durable.Go(ctx, "branch", func(ctx context.Context) (int, error) {
				for _, n := range names {
					if _, err := durable.Step(ctx, n, func(context.Context) (int, error) { return 1, nil }); err != nil {
						return 0, err
					}
				}
				return 0, durable.Sleep(ctx, time.Hour)
			})
			out, err := durable.Map(ctx, "items", []int{1, 2, 3, 4, 5, 6}, durable.MapOptions{Concurrency: 2, KeepGoing: true}, func(ctx context.Context, n int) (int, error) {
				return durable.Step(ctx, names[0], func(context.Context) (int, error) { return n, nil })
			})
			if err != nil {
				return 0, err
			}
			last := func(context.Context) (int, error) {
				time.Sleep(time.Second) // of the virtual clock: both steps of the branch are recorded
				return len(out), end
			}
			if _, err := durable.Step(ctx, "last", last); err != nil {
				return 0, err
			}
			return f.Wait(ctx)
		}
		wf := durable.Define("wide", fn)
		w.serve(t, wf)
		h, err := wf.Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrRunFailed)
		resume := func(o operate.ResumeOptions) error {
			_, err := operate.On(w.eng).Resume(w.ctx(), "r", o)
			return err
		}
		require.NoError(t, resume(operate.ResumeOptions{DryRun: true}))
		names = []string{"a", "x"}
		w.unchanged(t, func() { require.ErrorIs(t, resume(operate.ResumeOptions{}), durable.ErrDefinitionChanged) }, "r")
		names, end = []string{"a", "b"}, nil
		require.NoError(t, resume(operate.ResumeOptions{}))
		w.eventually("r", store.Waiting)
		pass(2 * time.Hour)
		w.eventually("r", store.Completed)
	})
}

func TestAResumeSaysThatNothingIsLeftToRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("order", func(ctx context.Context, _ int) (int, error) {
			if _, err := durable.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
			return 0, errors.New("the function says no")
		})
		w.serve(t, wf)
		h, err := wf.Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.Error(t, err)
		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{DryRun: true})
		require.NoError(t, err)
		require.Contains(t, plan.Ends, "the function says no")
		require.Contains(t, plan.Warnings[0], "it fails again at once")
	})
}

// A run that a kill has left behind and whose log is damaged is refused like one
// that has failed, and nothing is appended to it.
func TestADamagedRunIsNotResumedWhateverItsStatus(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ran []string
		broken := true
		wf := failsAt(&ran, &broken, "one", "two")
		w.serve(t, wf)
		h, err := wf.Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.Error(t, err)
		for _, status := range []store.Status{store.Running, store.Interrupted, store.Failed} {
			w.damage("r", status)
			w.unchanged(t, func() {
				for _, o := range []operate.ResumeOptions{{}, {DryRun: true}} {
					_, err := operate.On(w.eng).Resume(w.ctx(), "r", o)
					require.ErrorIs(t, err, store.ErrCorrupt, status)
				}
			}, "r")
		}
	})
}

// damage makes a run again, in this status and without an owner, from events of
// which one was changed.
func (w *world) damage(id string, status store.Status) {
	w.t.Helper()
	row, events := w.row(id), w.whole(id)
	for i := range events {
		if events[i].Type == store.StepCompleted {
			events[i].Payload = append([]byte{}, events[i].Payload...)
			events[i].Payload[len(events[i].Payload)-2] = 'X'
		}
	}
	row.Status, row.Owner, row.Epoch, row.Last = status, "", row.Epoch+100, nil
	_, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{id}, Force: true})
	require.NoError(w.t, err)
	errs := w.data.Commit(context.Background(), []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: events}})
	require.NoError(w.t, errs[0])
}
