package outline

import (
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// claim begins a life. If the previous one had not given the run up, it was lost.
func (b *Builder) claim(e *store.Event, d *history.Claim) {
	if d.Executor == "" {
		return
	}
	b.claimed = true
	if l := b.life(); l != nil && l.How == Alive {
		b.lose(l, e.Type == store.RunClaimed)
	}
	b.suspect = nil
	if l := b.life(); l != nil && l.How == Lost { // found now, or by whoever let the run go on
		b.suspect = &suspects{life: len(b.lives) - 1, seen: map[string]bool{}}
	}
	l := Life{Executor: d.Executor, Begin: e.At, End: e.At, How: Alive, Resumed: d.Resumed, claim: e.Type, Replayed: int(e.Steps)}
	l.Name, l.Host, l.PID = d.Name, d.Host, d.PID
	if x := b.execs[d.Executor]; x != nil && l.Name == "" {
		l.Name, l.Host, l.PID = x.Name, x.Host, x.PID
	}
	if l.Name == "" {
		l.Name = short(d.Executor)
	}
	b.lives = append(b.lives, l)
}

// life returns the last one, nil if there was none.
func (b *Builder) life() *Life {
	if len(b.lives) == 0 {
		return nil
	}
	return &b.lives[len(b.lives)-1]
}

// lose ends a life that gave no sign of its end: at the last event it wrote, or
// at the last beat of its executor if that is still known.
func (b *Builder) lose(l *Life, waited bool) {
	l.How, l.End = Lost, max(b.last.At, l.Begin)
	if waited {
		l.How = Gone
	}
	if x := b.execs[l.Executor]; x != nil && x.BeatAt > l.End && !x.Live {
		l.End = x.BeatAt
	}
}

// close ends the last life, if e gives the run up, either written by that life or
// by another process that found the run abandoned.
func (b *Builder) close(e *store.Event, said any) {
	l := b.life()
	if l == nil || l.How != Alive {
		return
	}
	if e.Key != "" && e.Type != store.Edited {
		l.After = e.Key
		l.End = e.At
		return
	}
	executor, _, reason, _ := actOf(said)
	switch e.Type {
	case store.WorkflowCompleted, store.WorkflowFailed, store.WorkflowCancelled, store.WorkflowInterrupted, store.WorkflowPaused:
		if executor != "" && executor != l.Executor {
			b.lose(l, false)
			return
		}
		l.How, l.End, l.Reason = Clean, e.At, orElse(reason, string(b.in.Run.Status))
		if e.Type != store.WorkflowInterrupted && e.Type != store.WorkflowPaused {
			l.Reason = ""
		}
	case store.WorkflowRecovered, store.Edited, store.JumpActivated, store.JumpRequested, store.FailuresReset:
		if executor != l.Executor {
			// An act on a run requires that it has no owner, or waits without one.
			b.lose(l, b.waitsNow())
		}
	default:
		l.End = e.At
	}
}

// waitsNow reports whether the last thing recorded was the beginning of a wait.
func (b *Builder) waitsNow() bool {
	switch b.last.Type {
	case store.WaitRequested, store.TimerSet, store.ChildStarted, store.RunClaimed:
		return true
	}
	return false
}

// short identifies an executor for people when nothing else is known.
func short(executor string) string {
	if len(executor) > 9 {
		return executor[:9]
	}
	return executor
}

// finishLives returns the lives in their current state.
func (b *Builder) finishLives(o *Outline) {
	o.Lives = append([]Life(nil), b.lives...)
	row := &b.in.Run
	o.KnowExecutors = b.in.Executors != nil
	for i := range b.in.Executors {
		x := &b.in.Executors[i]
		o.coded = o.coded || x.Live && store.Serves(x.Serves, row.Workflow, row.Version)
		o.Served = o.Served || x.Live && store.Takes(x.Serves, row)
		o.Attended = o.Attended || x.Live && x.ID == row.Owner
	}
	if len(o.Lives) == 0 {
		return
	}
	l := &o.Lives[len(o.Lives)-1]
	switch {
	case l.How != Alive:
	case row.Status.Terminal() || row.Status == store.Interrupted || row.Owner != l.Executor:
		// The row is ahead of the events that were read.
		l.How = Clean
		l.End = max(l.End, min(row.UpdatedAt, o.Now))
	case !o.KnowExecutors || o.Attended:
		l.End = o.Now
	default:
		l.How = Lost
		if row.Status == store.Waiting {
			l.How = Gone
		}
		if x := b.execs[l.Executor]; x != nil {
			l.End = max(l.End, x.BeatAt)
		}
	}
}
