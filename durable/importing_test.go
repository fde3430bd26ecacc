package durable_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// halfImported leaves run "r" of a traveller half imported, by a process that was killed.
// completed: the run in the file has completed.
func halfImported(t *testing.T, w *world, completed bool) (file []byte) {
	t.Helper()
	wf := traveller()
	w.boot(t, with(wf))
	start(t, w, wf, "r", 1)
	pass(5 * time.Second)
	if completed {
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", "one "))
		require.NoError(t, durable.Signal(w.ctx(), "r", "on", "two"))
		require.NoError(t, second(finish(t, w, wf, "r")))
	}
	file = export(t, w, "r")
	w.data = newWorld(t).data
	w.open(t, with(wf))
	appends := 0
	w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
		if len(batch[0].Events) > 0 {
			appends++
		}
		if appends > 2 {
			return all(batch, store.ErrClosed)
		}
		return forward()
	})
	_, err := imports(w, file, operate.ImportOptions{})
	require.Error(t, err)
	w.crash()
	w.expire()
	w.boot(t, with(wf))
	require.Equal(t, durable.CodeImporting, w.row("r").Code)
	return file
}

func TestAPauseOfARunWhoseImportHasNotFinishedIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		file := halfImported(t, w, false)
		require.ErrorIs(t, w.eng.Pause(w.ctx(), "r", "lunch"), durable.ErrNotResumable)
		require.NoError(t, second(imports(w, file, operate.ImportOptions{})))
		require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
		require.ErrorIs(t, second(operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})), durable.ErrNotResumable)
	})
}

func TestARunWhoseImportHasNotFinishedIsNotForked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		file := halfImported(t, w, false)
		_, err := operate.On(w.eng).PlanFork(w.ctx(), "r", operate.ForkOptions{ID: "f"})
		require.ErrorIs(t, err, durable.ErrNotResumable)
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f"})
		require.ErrorIs(t, err, durable.ErrNotResumable)
		require.NoError(t, second(imports(w, file, operate.ImportOptions{})))
		require.NoError(t, second(operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f"})))
		pass(time.Minute)
		require.Equal(t, store.Waiting, w.row("f").Status)
	})
}

func TestWhatIsAskedOfARunWhoseImportHasNotFinishedIsRefusedByEveryDoor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		halfImported(t, w, false)
		op := operate.On(w.eng)
		for name, ask := range map[string]func(dry bool) error{
			"edit": func(dry bool) error {
				return second(op.Edit(w.ctx(), "r", "try", "other", operate.EditOptions{DryRun: dry}))
			},
			"jump": func(dry bool) error {
				return second(op.Jump(w.ctx(), "r", 1, operate.JumpOptions{DryRun: dry}))
			},
			"resume": func(dry bool) error {
				return second(op.Resume(w.ctx(), "r", operate.ResumeOptions{DryRun: dry}))
			},
			"pause":   func(bool) error { return w.eng.Pause(w.ctx(), "r", "") },
			"unpause": func(bool) error { return w.eng.Unpause(w.ctx(), "r") },
		} {
			for _, dry := range []bool{true, false} {
				err := ask(dry)
				require.ErrorIs(t, err, durable.ErrNotResumable, "%s, dry=%v", name, dry)
				require.NotErrorIs(t, err, durable.ErrUnavailable, "%s, dry=%v: asking again does not help", name, dry)
			}
		}
	})
}

func TestAnImportIsNotTakenForAnotherOnesBecauseASignalHasCome(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := traveller()
		w.boot(t, with(wf))
		require.NoError(t, second(wf.Start(w.ctx(), "r", 0, durable.Delay(time.Hour))))
		file := export(t, w, "r")
		require.Len(t, w.whole("r"), 1)
		w.data = newWorld(t).data
		w.boot(t, with(wf))
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			errs := forward()
			if batch[0].Create != nil {
				require.NoError(t, durable.Signal(w.ctx(), "r", "go", "one "))
			}
			return errs
		})
		require.NoError(t, second(imports(w, file, operate.ImportOptions{})))
		require.EqualValues(t, 1, w.row("r").Inbox)
	})
}

func TestACancelThatComesWhileItsRunIsImportedHolds(t *testing.T) {
	for _, completed := range []bool{false, true} {
		t.Run(fmt.Sprint("completed=", completed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				file := halfImported(t, w, completed)
				require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
				require.NoError(t, second(imports(w, file, operate.ImportOptions{})))
				require.Empty(t, verify(t, w, "r").Findings)
				if completed {
					require.Equal(t, store.Completed, w.row("r").Status)
					return
				}
				plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
				require.NoError(t, err)
				require.Contains(t, fmt.Sprint(plan.Warnings), "a cancel of the run is recorded")
				pass(time.Minute)
				require.Equal(t, store.Cancelled, w.row("r").Status)
				require.Empty(t, verify(t, w, "r").Findings)
			})
		})
	}
}
