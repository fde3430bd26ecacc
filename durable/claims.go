package durable

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/claims"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// newClaims makes what takes runs from the store; internal/claims has the rules.
func newClaims(e *Engine) *claims.Claims {
	return claims.New(claims.Options{
		Executor: e.id, Serves: e.program.defs.served, Store: e.store, Heart: e.heart, Log: &e.log, Tracing: &e.tracing,
		Runs: claimedRuns{e}, Program: codeHere{e},
		Lease: e.options.Lease, MaxRuns: e.options.MaxRuns, RoomHere: e.options.roomHere(), Queues: e.options.ServeQueues,
		Declares: len(e.options.Queues)+len(e.options.Schedules) > 0, QuarantineAfter: e.options.QuarantineAfter, BootReason: e.options.BootReason,
		NoReconcileOnBoot: e.options.NoReconcileOnBoot, RerunLastStep: e.options.RerunLastStep,
		Now: e.now, Sign: func(d *history.Claim) { e.sign(d) },
		Resumed: func(ctx context.Context, workflow string) { e.metrics.RunRecovered(ctx, workflow) },
		List:    e.runsOf, Load: e.loadGeneration, View: e.view, Unreadable: unread, Act: e.act, Reopen: operators{e}.Reopen,
		EachUnheard: func(ctx context.Context, rows iter.Seq2[*store.Run, error], found func(stuck.Run)) error {
			return e.families.eachUnheard(ctx, rows, func(row *store.Run, lost *unheard) { found(lost.stuck(row)) })
		},
	})
}

// codeHere is the code of this process as claims see it.
type codeHere struct{ eng *Engine }

func (c codeHere) find(workflow, version string) *definition {
	return c.eng.program.defs.find(workflow, version)
}

func (c codeHere) Has(workflow, version string) bool { return c.find(workflow, version) != nil }

func (c codeHere) HasWorkflow(workflow string) bool {
	return c.eng.program.defs.byName[workflow] != nil
}

func (c codeHere) Steps(workflow, version string) []string { return c.find(workflow, version).steps }

func (c codeHere) OnBoot(workflow, version string) claims.Policy {
	return claims.Policy(c.eng.options.bootPolicy(c.find(workflow, version)))
}

func (c codeHere) VersionFor(row *store.Run) (version string, ok bool) {
	if def := c.eng.program.defs.codeOf(row); def != nil {
		return def.version, true
	}
	return "", false
}

func (c codeHere) Pins(row *store.Run) string      { return c.eng.program.defs.pins(row) }
func (c codeHere) NotServed(row *store.Run) string { return c.eng.program.defs.notServed(row) }

// claimedRuns are the executions of this engine as claims see them.
type claimedRuns struct{ eng *Engine }

func (cr claimedRuns) Executing(id string) bool  { return cr.eng.roster.active(id) != nil }
func (cr claimedRuns) Keeps(row *store.Run) bool { return cr.eng.roster.executes(row) }
func (cr claimedRuns) Changed(id string)         { cr.eng.watchers.notify([]string{id}) }
func (cr claimedRuns) Closing() bool             { return cr.eng.roster.isClosing() }
func (cr claimedRuns) Ending() <-chan struct{}   { return cr.eng.life.loops.Done() }

func (cr claimedRuns) Here(id string) bool {
	r, dormant := cr.eng.roster.find(id)
	return r != nil || dormant
}

func (cr claimedRuns) TakeUp(row *store.Run) {
	cr.eng.dormitory.takeUp(row, cr.eng.program.defs.codeOf(row))
}

func (cr claimedRuns) Background(fn func(context.Context)) bool {
	return cr.eng.roster.background(func() { fn(cr.eng.life.loops) })
}

// claimedAs is what is known from the claim that took the run.
type claimedAs struct {
	run    *run
	counts bool // against Options.MaxRuns
	// probation: it was claimed from an owner that died. Set before it is launched; it is
	// over when something is recorded.
	probation bool
	// silent: it was claimed while it waited or was interrupted, and the row still
	// says that it waits or is resuming. That must change before a body runs; see
	// recordRunning.
	silent atomic.Bool
	// ctx is the run's context when it was claimed, for the code that claimed it: the
	// run's own changes while the history is read.
	ctx context.Context
}

// onProbation reports whether the run was claimed from an owner that ended without a
// word, and has still recorded nothing.
func (cd *claimedAs) onProbation() bool {
	if !cd.probation {
		return false
	}
	select {
	case <-cd.run.recorded:
		return false
	default:
		return true
	}
}

// Claiming notes that a claim is in progress.
func (cr claimedRuns) Claiming() (done func()) { return cr.eng.roster.claiming() }

// Together makes runs that begin in between read their histories together.
func (cr claimedRuns) Together() (done func(loads int)) { return cr.eng.loads.Hold() }

// Begin begins to execute a run that was claimed.
func (cr claimedRuns) Begin(row store.Run, s *telemetry.Segment, v *history.View, created *store.Event) claims.Execution {
	e := cr.eng
	r := newRun(e, row, e.program.defs.codeOf(&row))
	r.ctx = r.spans.Enter(r.ctx, s, row.Trace)
	switch {
	case v != nil && len(v.Events) > 0:
		r.source.prefetched = &prefetch{branch: v.Row.Branch, events: v.Events}
	case created != nil:
		r.source.created = created
	}
	r.claimed.counts, r.claimed.probation, r.claimed.ctx = true, row.Strikes > 0, r.ctx
	r.claimed.silent.Store(row.Status != store.Running)
	e.dormitory.drop(row.ID, row.Epoch) // of ours, if it was lost and is claimed back
	r.logLine(slog.LevelDebug, "durable: run claimed", slog.String("status", string(row.Status)), slog.Int("strikes", int(row.Strikes)))
	cr.begin(r)
	return claims.Execution{
		Row: &r.row, Ctx: r.claimed.ctx, Loaded: r.loaded, Recorded: r.recorded, Ended: r.ended,
		Parked: func() (code, reason string, ok bool) {
			if d := r.unread; d != nil && d.kind == deathParked {
				return d.code, d.err.Error(), true
			}
			return "", "", false
		},
	}
}

// beginAfter ends what stands in r's place, and then begins r: an execution of
// ours that has lost the run, or a start that is about to find it exists. It
// reports false when the engine closes.
func (cr claimedRuns) beginAfter(old, r *run) bool {
	_ = old.die(&death{kind: deathLost, err: ErrLost})
	r.source.created = nil // what comes meanwhile reaches old, and the claim is over: there may be more to the history
	return cr.eng.roster.background(func() {
		select {
		case <-old.ended:
		case <-cr.eng.life.loops.Done(): // then begin gives it back
		}
		cr.begin(r)
	})
}

// begin executes r, or gives it back when the engine closes.
func (cr claimedRuns) begin(r *run) {
	e := cr.eng
	for {
		err := e.roster.add(r)
		if err == nil {
			e.claims.Occupy()
			r.launch()
			return
		}
		if !errors.Is(err, store.ErrOwned) {
			break
		}
		if old := e.roster.active(r.id); old != nil && cr.beginAfter(old, r) {
			return
		}
	}
	// The engine closes. What was claimed in the same moment is given back, so
	// that it does not look like a run whose process died.
	r.cancel(nil)
	r.log.Follow(&r.row)
	interrupted, none := store.Interrupted, ""
	change := r.log.Last(store.Event{Type: store.WorkflowInterrupted}, e.now())
	change.Row, change.Yield = &store.RowPatch{Status: &interrupted, Code: &none, Reason: &none}, true
	if err := e.commitOne(context.Background(), change); err != nil {
		r.logLine(slog.LevelWarn, "durable: a run claimed during Close could not be given back; it is recovered like one that was interrupted", slog.Any("error", err))
	}
	close(r.recorded)
	close(r.ended)
}
