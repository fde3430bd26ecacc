package durable

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// finish looks at what is not part of the log.
func (a *audit) finish() {
	if !a.unreadable {
		a.checkEnd()
	}
	a.checkBranches()
	a.checkInbox()
	a.checkRow()
}

func (a *audit) rowFinding(format string, args ...any) {
	a.v.add(auditFault{Kind: isCorrupt, Part: partRow, Text: fmt.Sprintf(format, args...)})
}

// checkEnd looks at where the log ends.
func (a *audit) checkEnd() {
	last := a.h.Run.Last
	switch {
	case last == nil || a.v.Events == 0:
		a.spoil(1)
		a.v.add(auditFault{Kind: isCorrupt, Part: partEvent, Seq: 1, Text: "the run has no event"})
	case a.before.Seq != last.Seq:
		a.damage(last.Seq, last.Key, partEvent, fmt.Sprintf("the log was read up to event %d only", a.before.Seq))
	case a.past.Events == 0 && a.bad == 0:
		a.damage(last.Seq, "", partEvent, "the current branch has no event that begins it")
	}
}

func (a *audit) checkBranches() {
	used := map[int32]bool{0: true}
	for _, n := range a.lineage.Branches() {
		used[n] = true
	}
	for _, b := range a.h.Branches {
		used[b.Parent] = true
	}
	for _, b := range a.facts.cuts {
		if err := history.CheckCut(a.h.Branches, b); err != nil {
			a.v.add(auditFault{Kind: isCorrupt, Part: partBranch, Seq: int64(b.N), Behind: !slices.Contains(a.lineage.Branches(), b.N), Text: err.Error()})
		}
	}
	for _, b := range a.h.Branches {
		f := auditFault{Kind: isCorrupt, Part: partBranch, Seq: int64(b.N), Behind: !slices.Contains(a.lineage.Branches(), b.N)}
		_, parent := a.branches[b.Parent]
		switch {
		case b.Parent < b.N && !parent:
			f.Text = fmt.Sprintf("it begins on branch %d, of which there is no record", b.Parent)
		case b.Cutoff < 0 || a.before.Seq != 0 && b.Cutoff > a.before.Seq:
			f.Text = fmt.Sprintf("it begins behind event %d, and the log ends with %d", b.Cutoff, a.before.Seq)
		case !a.seen[b.N] && !used[b.N]:
			f.Kind, f.Text = isOrphan, "nothing was ever recorded on it"
		default:
			continue
		}
		a.v.add(f)
	}
}

func (a *audit) checkInbox() {
	var last int64
	started := map[string]bool{}
	for _, calls := range a.past.Scopes {
		for _, rec := range calls {
			started[rec.Child] = true
		}
	}
	for i := range a.h.Inbox {
		m := &a.h.Inbox[i]
		f := auditFault{Kind: isCorrupt, Part: partMessage, Seq: m.Seq, Key: m.Name}
		if m.Seq != last+1 {
			f.Text = fmt.Sprintf("the message before it is %d", last)
			a.v.add(f)
		}
		last = m.Seq
		if err := history.CheckMessage(a.v.RunID, m); err != nil {
			f := f
			f.Text, f.Behind = err.Error(), a.past.Consumed(m)
			a.v.add(f)
		}
		if len(m.Payload) > 0 {
			a.v.Payloads++
			if err := a.payloads.message(a.v.RunID, m); err != nil {
				f.Kind, f.Text = a.payloads.kind(err), err.Error()
				// A value that was taken is in the log, too.
				f.Behind = a.past.Consumed(m)
				a.v.add(f)
			}
		}
		if child, _ := history.ChildOf(m); m.Kind == store.KindChild && !started[child] && a.root == 0 && len(a.h.Branches) == 0 && a.bad == 0 {
			f.Kind, f.Text = isOrphan, fmt.Sprintf("it is the outcome of %s, which the log does not say was started", child)
			a.v.add(f)
		}
	}
	if last != a.h.Run.Inbox {
		a.rowFinding("it counts %d messages, and the inbox has %d", a.h.Run.Inbox, last)
	}
	for n := range a.past.Taken {
		if n > last {
			a.v.add(auditFault{Kind: isCorrupt, Part: partMessage, Seq: n, Text: "the log says that it was taken, and the inbox does not have it"})
		}
	}
}

func orNever(t store.Time) string {
	if t == 0 {
		return "not recorded"
	}
	return t.Time().String()
}

// deadline returns what the events say the deadline is; ok is false when they cannot
// be believed as far as that.
func (a *audit) deadline() (at store.Time, ok bool) {
	if a.bad != 0 || a.unreadable || a.past.Created.Seq == 0 {
		return 0, false
	}
	born, err := history.DataOf(&a.past.Created)
	return born.Deadline, err == nil
}

// attributes returns what the events say the attributes are; ok is false when
// they cannot be believed as far as that.
func (a *audit) attributes() (map[string]string, bool) {
	if a.bad != 0 || a.unreadable || a.past.Created.Seq == 0 {
		return nil, false
	}
	if set := a.past.Attributes; set != nil {
		return *set, true
	}
	born, err := history.DataOf(&a.past.Created)
	return born.Attributes, err == nil
}

// lifeOf is what the events say of a run's status. Only the store knows of what
// changes in the row alone, so it is a set of statuses.
type lifeOf struct {
	last store.Type // the event that decides
	may  []store.Status
}

var (
	executed = []store.Status{store.Running, store.Resuming, store.Waiting}
	paused   = []store.Status{store.Pending, store.Interrupted, store.Waiting}
)

func (l *lifeOf) take(e *store.Event) {
	if l.last == store.Edited {
		l.last = e.Type // the new outcome, recorded in the same act: the run is as that leaves it
		return
	}
	may := executed
	switch e.Type {
	case store.WorkflowCreated:
		may = []store.Status{store.Pending}
	case store.WorkflowCompleted:
		may = []store.Status{store.Completed}
	case store.WorkflowFailed:
		may = []store.Status{store.Failed}
	case store.WorkflowCancelled:
		may = []store.Status{store.Cancelled}
	case store.WorkflowInterrupted:
		may = []store.Status{store.Interrupted}
	case store.WorkflowPaused, store.WorkflowUnpaused:
		may = l.stopped(e)
	case store.WorkflowRecovered, store.JumpRequested, store.JumpActivated, store.Edited, store.FailuresReset:
		may = nil // acts on a run that leave it in any status
	case store.AttributesSet:
		if e.Key == "" {
			return // set from outside: whatever it was, it stays
		}
	}
	l.last, l.may = e.Type, may
}

// stopped returns the statuses of a run behind the event that pauses it, or that ends a
// pause: who executed it has stopped, and what was idle stays as it was. One that was
// cancelled is unpaused by who has claimed it for that, or by who found it left behind.
func (l *lifeOf) stopped(e *store.Event) []store.Status {
	if d, err := history.DataOf(e); e.Type == store.WorkflowUnpaused && (err != nil || d.Reason != "") {
		return append(slices.Clone(executed), store.Interrupted)
	}
	var may []store.Status
	for _, s := range l.may {
		if s == store.Running || s == store.Resuming {
			s = store.Interrupted
		}
		may = append(may, s)
	}
	if may == nil {
		return paused
	}
	return may
}

// agrees reports whether the row has a status that the events allow.
func (l *lifeOf) agrees(row *store.Run) bool {
	if row.Status == store.Interrupted && row.Code == history.CodeImported {
		return !l.ended() // an import appends no event
	}
	return len(l.may) == 0 || slices.Contains(l.may, row.Status)
}

// ended reports whether the log says that the run has ended.
func (l *lifeOf) ended() bool { return len(l.may) == 1 && l.may[0].Terminal() }
