package durable

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A change of a workflow's code that inserts, removes or replaces durable calls
// becomes legal for the runs in progress if the code asks which path each of them
// takes:
//
//	if durable.Patched(ctx, "fraud-check") {
//		... the code as it is now
//	} else {
//		... the code as it was
//	}
//
// The answer is a marker in the history of the scope that asked. A marker has a
// place there but no ordinal: calls are counted alike with and without it, so it
// shifts nothing in the runs that were recorded before.

// Patched reports whether the scope that ctx belongs to (the workflow function, a
// branch, an item) takes the new path of a change of its code. It is true if the
// history ends at this place, or has the marker of the change. It is false for a
// run that has recorded calls after this place without the marker: the old code
// made those.
//
// The answer is given once for each change and scope and stays the same, in a
// loop too, in this process and on every replay. True is recorded with a marker,
// in the next durable write; if the process dies before that, nothing was
// recorded after this place and the question is open again. False costs nothing.
// If the history has the marker and the code no longer asks, the run stops,
// parked; see DeprecatePatch.
//
// change names the change: 1 to 255 bytes, never to be used for another one.
// Outside a run the answer is true. Patched panics where it has no other way to
// report an error: with an unusable name, in the body of a step, and with the
// context of another scope. In a run that is an error of the run like any panic.
func Patched(ctx context.Context, change string) bool {
	s, name := patchScope(ctx, "Patched", change)
	if s == nil {
		return true
	}
	defer s.end()
	if yes, asked := s.replay.Answer(name); asked {
		return yes
	}
	yes := s.replay.Marker(name) != nil
	if !yes && s.replay.AtFrontier() && s.run.dead.Load() == nil {
		if s.stopped() == nil && !s.ended { // otherwise no call follows for which the answer must be known
			// Not s.stash: the clock of the scope must not depend on whether the
			// marker was recorded now or is read.
			s.run.stash(s.replay.MarkerEvent(name, change, false))
		}
		yes = true
	}
	s.replay.Told(name, yes)
	return yes
}

// DeprecatePatch replaces Patched once the old code is gone: it accepts histories
// with the marker of the change and without it, and records no marker of its own.
// The run takes the new path in both cases; a run that has taken the old path
// stops, parked, at the first call that differs.
//
// If it finds a marker, it records that as deprecated, durably when it returns,
// which costs one write once. From then on the run needs neither Patched nor
// DeprecatePatch: the call can be removed when all runs that have the marker have
// made this call or have ended. It panics as Patched does.
func DeprecatePatch(ctx context.Context, change string) {
	s, name := patchScope(ctx, "DeprecatePatch", change)
	if s == nil {
		return
	}
	defer s.end()
	if _, asked := s.replay.Answer(name); asked {
		return
	}
	s.replay.Told(name, true)
	if p := s.replay.Marker(name); p != nil && !p.Deprecated && s.stopped() == nil && !s.ended {
		// An error means that the run is lost or stopped: the next call says so.
		_ = s.run.write(&commit.Write{Events: []store.Event{s.replay.MarkerEvent(name, change, true)}})
	}
}

// patchScope returns the scope of a question, entered, and the escaped name of
// the change. The scope is nil outside a run.
func patchScope(ctx context.Context, what, change string) (*scope, string) {
	if err := store.CheckName("change", change); err != nil {
		panic(err)
	}
	if ctx == nil {
		panic(fmt.Errorf("durable: %s %q was called with a nil context: %w", what, change, ErrInvalid))
	}
	switch v := ctx.Value(scopeKey{}).(type) {
	case *scope:
		if key := history.JoinKey(v.path, history.PatchPrefix+history.EscapeName(change), 1); len(key) > store.MaxKey {
			panic(&store.NameError{Kind: "key", Value: key[:80], Reason: fmt.Sprintf("is %d bytes long; at most %d are allowed", len(key), store.MaxKey)})
		}
		_ = v.run.alive() // ends the goroutine of a loop that ignores errors
		if err := v.enterAs(change); err != nil {
			panic(err)
		}
		return v, history.EscapeName(change)
	case *attempt:
		panic(fmt.Errorf("%w: %s %q was called in the body of %s. Ask in the workflow function and hand the answer to the body", ErrNested, what, change, v.step.call.key))
	}
	return nil, ""
}
