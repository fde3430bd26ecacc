package durable

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// RunVersion returns the version of the code that executes the run ctx belongs
// to: in its function, in branches, items, step bodies and compensations. It is
// the version the run was started with, on every replay (unless recovery has
// fallen back, see Recover), and never that of another one that is registered
// beside it. It is empty outside a run.
func RunVersion(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	switch v := ctx.Value(scopeKey{}).(type) {
	case *scope:
		return v.run.def.version
	case *attempt:
		return v.step.call.scope.run.def.version
	}
	return ""
}

// pin records in the row which version executes a run that was started without
// one, by a Ref of a program that has no code of the workflow: whoever continues
// it must have the same. It is written before the function is called, so no call
// of another version can come before it.
func (r *run) pin() error {
	if r.row.Version != "" || r.def.version == "" {
		return nil
	}
	v := r.def.version
	if err := r.write(&write{row: &store.RowPatch{Version: &v}}); err != nil {
		return err
	}
	r.row.Version = v
	return nil
}

// versions returns the versions of a workflow that are registered here, sorted.
func (ds *definitions) versions(workflow string) []string {
	s := ds.byName[workflow]
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.versions))
}

// notServed says why a run cannot be executed here.
func (e *Engine) notServed(row *store.Run) string {
	have := e.defs.versions(row.Workflow)
	if have == nil {
		names := slices.Sorted(maps.Keys(e.defs.byName))
		if len(names) == 0 {
			return fmt.Sprintf("workflow %s is not registered here, and no other is", row.Workflow)
		}
		return fmt.Sprintf("workflow %s is not registered here; registered: %s", row.Workflow, someOf(names))
	}
	s := fmt.Sprintf("version %s of workflow %s is not registered here; registered: %s", row.Version, row.Workflow, someOf(have))
	if row.InitialVersion != "" && row.InitialVersion != row.Version {
		s += fmt.Sprintf(" (and neither is version %s, with which the run was started)", row.InitialVersion)
	}
	return s
}

// someOf joins names, and says how many more there are.
func someOf(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// fallsBack reports whether a run goes on with the version it was started with:
// the one it is pinned to is registered neither here nor with anybody alive, and
// its initial version is registered here. In all other cases a run without its
// code stays where it is.
func (ds *definitions) fallsBack(row *store.Run, live []store.Executor) bool {
	initial := row.InitialVersion
	if row.Status.Terminal() || initial == "" || initial == row.Version || ds.find(row.Workflow, row.Version) != nil || ds.find(row.Workflow, initial) == nil {
		return false
	}
	return !slices.ContainsFunc(live, func(x store.Executor) bool {
		return x.Live && store.Serves(x.Serves, row.Workflow, row.Version)
	})
}

// codeOf returns the code that a run would be continued with here, nil if there
// is none. older: it is that of the version the run was started with, and the run
// must be pinned to it first, by fallBack.
func (e *Engine) codeOf(ctx context.Context, row *store.Run) (def *definition, older bool, err error) {
	if def = e.defs.find(row.Workflow, row.Version); def != nil || row.InitialVersion == row.Version {
		return def, false, nil
	}
	executors, err := e.store.Executors(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("durable: finding out who serves version %s of workflow %s: %w", row.Version, row.Workflow, storeError(err))
	}
	if !e.defs.fallsBack(row, executors) {
		return nil, false, nil
	}
	return e.defs.find(row.Workflow, row.InitialVersion), true, nil
}

// fallBack pins a run to the version it was started with, durably when it returns
// nil, and records why. A run that is executed becomes interrupted, so that it is
// claimable also if this process dies before it claims it. Whoever acted on the
// run in the same moment decides instead: that is no error.
func (e *Engine) fallBack(ctx context.Context, row *store.Run) error {
	h, err := e.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: reading run %s: %w", row.ID, storeError(err))
	}
	now := &h.Run
	if _, older, err := e.codeOf(ctx, now); err != nil || !older {
		return err
	}
	initial := now.InitialVersion
	reason := fmt.Sprintf("E2: version %s is not registered with anybody alive; it goes on with version %s, with which it was started", now.Version, initial)
	patch := &store.RowPatch{Version: &initial}
	if now.Status == store.Running || now.Status == store.Resuming {
		interrupted, none := store.Interrupted, ""
		patch.Status, patch.Code, patch.Reason = &interrupted, &none, &none
	}
	_, err = e.operate(ctx, now, nil, act{
		from:  []store.Status{now.Status},
		event: store.Event{Type: store.WorkflowRecovered, Data: (&eventData{Reason: reason, Executor: e.id}).encode()},
		row:   patch,
	})
	switch {
	case overtaken(err):
		return nil
	case err != nil:
		return fmt.Errorf("durable: run %s could not fall back to version %s: %w", row.ID, initial, storeError(err))
	}
	e.logRun(slog.LevelWarn, row, "durable: run falls back to the version it was started with", slog.String("pinned", now.Version), slog.String("version", initial))
	row.Version = initial
	return nil
}

// fallsTo is fallBack, if that is needed, for Recover: what does not succeed is
// reported and keeps no other run.
func (e *Engine) fallsTo(ctx context.Context, row *store.Run, older bool, rep *Report) bool {
	if !older {
		return true
	}
	err := e.fallBack(ctx, row)
	if err != nil {
		rep.Stuck = append(rep.Stuck, Stuck{RunID: row.ID, Workflow: row.Workflow, Version: row.Version, Code: CodeNotRegistered, Reason: err.Error(), Next: "call Recover again"})
	}
	return err == nil
}

// servable makes sure that a run has its code here, falling back if need be; one
// that has not is reported as stuck.
func (e *Engine) servable(ctx context.Context, row *store.Run, rep *Report) (bool, error) {
	def, older, err := e.codeOf(ctx, row)
	switch {
	case err != nil:
		return false, err
	case def == nil:
		rep.Stuck = append(rep.Stuck, stuckOf(row, CodeNotRegistered, e.notServed(row)))
		return false, nil
	}
	return e.fallsTo(ctx, row, older, rep), nil
}

// resumeVersion lets a run that Resume is about to claim fall back, if its code
// is not here and that of its initial version is.
func (e *Engine) resumeVersion(ctx context.Context, row *store.Run) error {
	if e.defs.find(row.Workflow, row.Version) != nil {
		return nil
	}
	return e.fallBack(ctx, row)
}
