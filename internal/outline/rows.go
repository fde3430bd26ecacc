package outline

import (
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// take adds an event to its row.
func (b *Builder) take(r *Row, e *store.Event, said any) {
	if r.Begin == 0 {
		r.Begin = e.At.Add(-e.Took)
	}
	if r.waits(e, said) {
		return
	}
	switch d := said.(type) {
	case *history.Progress:
		r.note = true
		switch d.Slot {
		case commandSlot:
			r.command = e.Seq
		case "":
			r.Progress = e.Seq
		}
	case *history.Begun:
		r.note, r.Once = true, r.Once || d.Once
		r.startedAt, r.startedN = e.At, max(int(e.Attempt), 1)
	case *history.StepEnd:
		b.endStep(r, e, d)
		if e.Type == store.AttemptFailed {
			return
		}
	case *history.ItemEnd:
		b.endItem(r, e, d)
	case *history.WaitEnd:
		switch e.Type {
		case store.WaitTimedOut:
			r.end(e, TimedOut)
		case store.WaitClosed:
			r.end(e, Closed)
			r.Error = messageOf(d.Error)
		default:
			r.end(e, Done)
		}
	case *history.ChildEnd:
		r.ChildStatus = d.Status
		r.end(e, Done)
		if d.Status != store.Completed {
			r.State = Failed
			r.Error = orElse(messageOf(d.Error), d.Reason)
		}
	case *history.Publication:
		r.Signal = d.Name
		r.end(e, Done)
	default:
		r.end(e, Done)
	}
	if r.life < 0 {
		r.life = len(b.lives) - 1
	}
}

// waits notes the beginning of a wait, a timer or a child; ok is false if e is no such event.
func (r *Row) waits(e *store.Event, said any) (ok bool) {
	switch d := said.(type) {
	case *history.WaitBegun:
		r.Prompt, r.Signal, r.Until, r.Sample = d.Prompt, d.Name, d.Until, d.Sample
	case *history.Timer:
		if e.Type != store.TimerSet {
			return false
		}
		r.Until = d.Until
	case *history.ChildBegun:
		r.ChildID = d.Child
	default:
		return false
	}
	r.State = Waiting
	return true
}

// endStep adds the end of an attempt, or of all of them, or of a branch or a Map.
func (b *Builder) endStep(r *Row, e *store.Event, d *history.StepEnd) {
	if d.Max > 0 {
		r.Max = d.Max
	}
	state, attempt := Done, AttemptDone
	switch e.Type {
	case store.AttemptFailed:
		b.attempt(r, e, d, AttemptFailed)
		r.NextAt, r.State = d.NextAt, Stopped
		return
	case store.StepFailed:
		state, attempt = Failed, AttemptFailed
	}
	if r.Kind == Step || r.Kind == Undo {
		b.attempt(r, e, d, attempt)
	}
	r.Items = max(r.Items, d.Items)
	r.end(e, state)
	r.Error = messageOf(d.Error)
}

// endItem adds the end of an item of a Map.
func (b *Builder) endItem(r *Row, e *store.Event, d *history.ItemEnd) {
	if e.Type == store.ItemFailed {
		r.end(e, Failed)
		r.Error = messageOf(d.Error)
		b.count(r, 0, 1)
		return
	}
	if r.Edited == nil || r.open() {
		b.count(r, 1, 0)
	}
	r.end(e, Done)
}

// end records the outcome of a row. An edit leaves the times as they were: the
// step ran when it ran.
func (r *Row) end(e *store.Event, s State) {
	r.Outcome, r.State, r.NextAt, r.Error = e.Seq, s, 0, ""
	if r.Edited == nil || r.End == 0 {
		r.End = e.At
	}
}

// count adds the outcome of an item to the enclosing Map.
func (b *Builder) count(item *Row, done, failed int) {
	if m := b.rows[scopeOf(item.Key)]; m != nil && b.rows[item.Key] == item {
		m.ItemsDone += done
		m.ItemsFailed += failed
	}
}

func (b *Builder) attempt(r *Row, e *store.Event, d *history.StepEnd, s AttemptState) {
	if r.Edited != nil && (r.Edited.Seq != 0 || r.Copied) && s == AttemptDone {
		return // nothing ran: a result replaced another
	}
	a := Attempt{
		N: max(int(e.Attempt), 1), Seq: e.Seq, State: s, Begin: e.At.Add(-e.Took), End: e.At, Took: e.Took,
		Error: messageOf(d.Error), NextAt: d.NextAt, Notes: notesOf(d.Notes), Life: len(b.lives) - 1,
	}
	a.Permanent = d.Error != nil && d.Error.Permanent
	r.Attempts = append(r.Attempts, a)
	if b.rows[r.Key] != r {
		return // left behind: it does not count
	}
	b.attempts++
	if s == AttemptFailed {
		b.failed++
	}
}

// scopeTimes holds when the last outcome was recorded in each scope: a call of a
// function does not begin before the previous call's outcome. It is only needed
// for the scopes of open rows, so the map is small.
type scopeTimes map[string]store.Time

func (s scopeTimes) set(e *store.Event) { s[scopeOf(e.Key)] = e.At }

// suspects holds the calls that a lost life may have begun without recording it.
// There is one in each scope: the first that appears afterwards, unless part of it
// had an outcome before.
type suspects struct {
	life int
	seen map[string]bool
}

// suspicion examines the first event of a scope after a life was lost, and notes
// the attempt that may have been cut off.
//
// For example, after "attempt_failed charge 2, next attempt at 9 s", a claim at 50
// s, and then "step_completed charge 3": attempt 3 may have run in the lost
// process, from 9 s on. No event says whether it did, except for steps that record
// their beginning.
func (b *Builder) suspicion(r *Row, e *store.Event) {
	s := b.suspect
	if s == nil {
		return
	}
	scope := scopeOf(e.Key)
	if s.seen[scope] {
		return
	}
	s.seen[scope] = true
	if e.Type != store.StepCompleted && e.Type != store.StepFailed && e.Type != store.AttemptFailed && e.Type != store.StepStarted || r.Kind != Step && r.Kind != Undo || r.Edited != nil {
		return
	}
	if scope != "" && b.scopeAt[scope] == 0 && len(r.Attempts) == 0 && !r.note {
		return // it is unknown whether an item or a branch that had recorded nothing had begun
	}
	life := &b.lives[s.life]
	from := max(r.NextAt, b.scopeAt[scope], life.Begin)
	if len(r.Attempts) == 0 && r.Begin != 0 && r.note {
		from = r.Begin
	}
	if taken := b.lives[len(b.lives)-1].Begin; from >= taken {
		return // it died before the attempt was due
	}
	r.Attempts = append(r.Attempts, Attempt{
		N: max(int(e.Attempt), 1), State: AttemptCut, Begin: from, End: max(life.End, from), Life: s.life, Begun: r.note && r.Seq < e.Seq,
	})
	if r.Begin == 0 || from < r.Begin {
		r.Begin = from
	}
}
