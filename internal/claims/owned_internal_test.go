package claims

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/runlog"
	"github.com/holdfast-dev/holdfast/store"
)

// auditWorld is an engine that owns one run in the store, as the audit sees it. The
// functions act in the middle of a look.
type auditWorld struct {
	store.Store
	Runs
	Program
	executes bool
	listed   func() // the store has answered, and its answer is on the way
	kept     func() // Keeps has been asked
	takenUp  int
}

func (w *auditWorld) List(context.Context, store.Filter) (store.Page, error) {
	p := store.Page{Runs: []store.Run{{ID: "r", Workflow: "w", Status: store.Running, Owner: "ex", Epoch: 2}}}
	if w.listed != nil {
		w.listed()
	}
	return p, nil
}

func (w *auditWorld) Keeps(*store.Run) bool {
	is := w.executes
	if w.kept != nil {
		w.kept()
	}
	return is
}

func (w *auditWorld) TakeUp(*store.Run)                    { w.takenUp++ }
func (w *auditWorld) VersionFor(*store.Run) (string, bool) { return "", true }

func newAudit(w *auditWorld) *owned {
	log := &runlog.Log{Logger: slog.New(slog.DiscardHandler)}
	return &owned{o: &Options{Executor: "ex", Store: w, Runs: w, Program: w, Log: log, Lease: time.Minute}}
}

func TestARunIsTakenUpOnlyIfItWasMissingAtEachMomentOfTwoLooks(t *testing.T) {
	ctx := t.Context()
	t.Run("missing at both", func(t *testing.T) {
		w := &auditWorld{}
		ow := newAudit(w)
		ow.look(ctx)
		require.Zero(t, w.takenUp)
		ow.look(ctx)
		require.Equal(t, 1, w.takenUp)
	})
	t.Run("the claim that took it is answered while the second look compares", func(t *testing.T) {
		w := &auditWorld{}
		ow := newAudit(w)
		done := ow.claiming()
		ow.look(ctx)
		w.kept = func() {
			if !w.executes {
				w.executes = true
				done()
			}
		}
		ow.look(ctx)
		ow.look(ctx)
		require.Zero(t, w.takenUp)
	})
	t.Run("the claim that took it began while the first answer was on its way", func(t *testing.T) {
		w := &auditWorld{}
		ow := newAudit(w)
		w.listed = func() { ow.claiming(); w.listed = nil } // the answer to it is long in coming
		ow.look(ctx)
		ow.look(ctx)
		require.Zero(t, w.takenUp)
	})
	t.Run("it is executed until the second answer is on its way", func(t *testing.T) {
		w := &auditWorld{}
		ow := newAudit(w)
		ow.look(ctx)
		w.executes = true
		w.listed = func() { w.executes = false } // it has ended
		ow.look(ctx)
		require.Zero(t, w.takenUp)
	})
}
