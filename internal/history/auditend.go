package history

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

// Finish checks what is not part of the log.
func (a *Audit) Finish() {
	if !a.Unreadable {
		a.checkEnd()
	}
	a.checkBranches()
	a.checkInbox()
	a.checkRow()
}

func (a *Audit) rowFinding(format string, args ...any) {
	a.Verdict.Add(Fault{Kind: Corrupt, Part: PartRow, Text: fmt.Sprintf(format, args...)})
}

// checkEnd checks the end of the log.
func (a *Audit) checkEnd() {
	last := a.History.Run.Last
	switch {
	case last == nil || a.Verdict.Events == 0:
		a.spoil(1)
		a.Verdict.Add(Fault{Kind: Corrupt, Part: PartEvent, Seq: 1, Text: "the run has no event"})
	case a.Before.Seq != last.Seq:
		a.Damage(last.Seq, last.Key, PartEvent, fmt.Sprintf("the log was read up to event %d only", a.Before.Seq))
	case a.Past.Events == 0 && a.Bad == 0:
		a.Damage(last.Seq, "", PartEvent, "the current branch has no event that begins it")
	}
}

func (a *Audit) checkBranches() {
	used := map[int32]bool{0: true}
	for _, n := range a.Lineage.Branches() {
		used[n] = true
	}
	for _, b := range a.History.Branches {
		used[b.Parent] = true
	}
	for _, b := range a.Facts.cuts {
		if err := checkCut(a.History.Branches, b); err != nil {
			a.Verdict.Add(Fault{Kind: Corrupt, Part: partBranch, Seq: int64(b.N), Behind: !slices.Contains(a.Lineage.Branches(), b.N), Text: err.Error()})
		}
	}
	for _, b := range a.History.Branches {
		f := Fault{Kind: Corrupt, Part: partBranch, Seq: int64(b.N), Behind: !slices.Contains(a.Lineage.Branches(), b.N)}
		_, parent := a.Branches[b.Parent]
		switch {
		case b.Parent < b.N && !parent:
			f.Text = fmt.Sprintf("it begins on branch %d, of which there is no record", b.Parent)
		case b.Cutoff < 0 || a.Before.Seq != 0 && b.Cutoff > a.Before.Seq:
			f.Text = fmt.Sprintf("it begins behind event %d, and the log ends with %d", b.Cutoff, a.Before.Seq)
		case !a.seen[b.N] && !used[b.N]:
			f.Kind, f.Text = Orphan, "nothing was ever recorded on it"
		default:
			continue
		}
		a.Verdict.Add(f)
	}
}

func (a *Audit) checkInbox() {
	var last int64
	started := map[string]bool{}
	for _, calls := range a.Past.Scopes {
		for _, rec := range calls {
			started[rec.Child] = true
		}
	}
	for i := range a.History.Inbox {
		m := &a.History.Inbox[i]
		f := Fault{Kind: Corrupt, Part: partMessage, Seq: m.Seq, Key: m.Name}
		if m.Seq != last+1 {
			f.Text = fmt.Sprintf("the message before it is %d", last)
			a.Verdict.Add(f)
		}
		last = m.Seq
		if err := CheckMessage(a.Verdict.RunID, m); err != nil {
			f := f
			f.Text, f.Behind = err.Error(), a.Past.Consumed(m)
			a.Verdict.Add(f)
		}
		if len(m.Payload) > 0 {
			a.Verdict.Payloads++
			if err := a.payloads.Message(a.Verdict.RunID, m); err != nil {
				f.Kind, f.Text = a.payloads.Kind(err), err.Error()
				// A value that was taken is in the log, too.
				f.Behind = a.Past.Consumed(m)
				a.Verdict.Add(f)
			}
		}
		if child, _ := ChildOf(m); m.Kind == store.KindChild && !started[child] && a.root == 0 && len(a.History.Branches) == 0 && a.Bad == 0 {
			f.Kind, f.Text = Orphan, fmt.Sprintf("it is the outcome of %s, which the log does not say was started", child)
			a.Verdict.Add(f)
		}
	}
	if last != a.History.Run.Inbox {
		a.rowFinding("it counts %s, and the inbox has %d", count.Of(a.History.Run.Inbox, "message"), last)
	}
	for n := range a.Past.Taken {
		if n > last {
			a.Verdict.Add(Fault{Kind: Corrupt, Part: partMessage, Seq: n, Text: "the log says that it was taken, and the inbox does not have it"})
		}
	}
}

func orNever(t store.Time) string {
	if t == 0 {
		return "not recorded"
	}
	return t.Time().String()
}

// deadline returns the deadline according to the events; ok is false if they cannot be
// believed that far.
func (a *Audit) deadline() (at store.Time, ok bool) {
	if a.Bad != 0 || a.Unreadable || a.Past.Created.Seq == 0 {
		return 0, false
	}
	born, err := Of[Beginning](&a.Past.Created)
	return born.Deadline, err == nil
}

// attributes returns the attributes according to the events; ok is false if they cannot
// be believed that far.
func (a *Audit) attributes() (map[string]string, bool) {
	if a.Bad != 0 || a.Unreadable || a.Past.Created.Seq == 0 {
		return nil, false
	}
	if set := a.Past.Attributes; set != nil {
		return *set, true
	}
	born, err := Of[Beginning](&a.Past.Created)
	return born.Attributes, err == nil
}

// Life is what the events say of a run's status. Only the store knows of changes in the
// row alone, so it is a set of statuses.
type Life struct {
	Last store.Type // the event that decides
	may  []store.Status
}

var (
	executed = []store.Status{store.Running, store.Resuming, store.Waiting}
	paused   = []store.Status{store.Pending, store.Interrupted, store.Waiting}
)

func (l *Life) take(e *store.Event) {
	if l.Last == store.Edited {
		l.Last = e.Type // the new outcome, recorded in the same act, which decides about the run
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
		may = nil // acts that may leave the run in any status
	case store.InputReplaced:
		return // it had not begun, and has not yet
	case store.AttributesSet:
		if e.Key == "" {
			return // set from outside: the status stays as it was
		}
	}
	l.Last, l.may = e.Type, may
}

// stopped returns the statuses of a run after the event that pauses it, or that ends a pause:
// an execution has stopped, and an idle run stays as it was. A cancelled run is unpaused by
// the executor that has claimed it for that, or by the one that found it orphaned.
func (l *Life) stopped(e *store.Event) []store.Status {
	if d, err := Of[Stop](e); e.Type == store.WorkflowUnpaused && (err != nil || d.Reason != "") {
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
func (l *Life) agrees(row *store.Run) bool {
	if row.Status == store.Interrupted && row.Code == CodeImported {
		return !l.Ended() // an import appends no event
	}
	return len(l.may) == 0 || slices.Contains(l.may, row.Status)
}

// Ended reports whether the log says that the run has ended.
func (l *Life) Ended() bool { return len(l.may) == 1 && l.may[0].Terminal() }

// LiftedBy returns up to which message cancels stay taken back when the damage is set
// aside. The event that says so may be the damaged one; its branch is known.
func (a *Audit) LiftedBy() int64 {
	for _, n := range a.Lineage.Branches() {
		if a.Branches[n].Reason == Uncancelled && !a.History.Run.CancelAsked {
			return a.History.Run.Inbox
		}
	}
	return a.Past.Lifted
}
