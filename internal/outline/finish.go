package outline

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// Outline returns the story so far. It takes time proportional to the number of
// rows; more events may be added afterwards.
func (b *Builder) Outline() *Outline {
	row := b.in.Run
	row.Last = nil
	o := &Outline{
		Run: row, Now: b.in.Now, Begin: b.begin, End: row.EndedAt, Declared: b.declared, Steps: int(b.last.Steps),
		Attempts: b.attempts, FailedAttempts: b.failed, Events: b.events, LastSeq: b.last.Seq, LastAt: b.last.At,
		Active: b.last.Active, ForkedFrom: orElse(b.fork, row.ForkedFrom), zone: b.in.Zone,
	}
	if o.Begin == 0 {
		o.Begin = row.CreatedAt
	}
	if o.End == 0 {
		o.End = max(o.Now, b.last.At)
	}
	b.finishLives(o)
	if n := len(o.Lives); n > 0 {
		o.Replayed = o.Lives[n-1].Replayed
	}
	b.finishLanes(o)
	b.settle(o)
	o.Verdict = b.verdict(o)
	return o
}

func (b *Builder) finishLanes(o *Outline) {
	for _, n := range b.order {
		l := b.lanes[n]
		out := l.Lane
		sortRows(l.top)
		out.Rows = slices.Clone(l.top)
		if out.Current {
			out.Rows = append(out.Rows, b.expected()...)
		}
		for _, r := range l.leftOrder {
			if !r.skip {
				out.Left = append(out.Left, r)
			}
		}
		if out.LeftEvents > 0 {
			out.LeftBy = b.leaver(n)
		}
		o.Lanes = append(o.Lanes, out)
	}
}

// leaver returns the first branch that cut branch n.
func (b *Builder) leaver(n int32) int32 {
	for _, m := range b.order {
		if l := b.lanes[m]; m > n && l.Parent == n && !l.Root {
			return m
		}
	}
	return b.in.Run.Branch
}

// expected returns a row for each declared step of which nothing is recorded. Only
// the first call of a name outside branches and items counts: its key is the name.
func (b *Builder) expected() []*Row {
	if b.in.Run.Status == store.Completed || b.in.Run.Status == store.Cancelled {
		return nil
	}
	var rows []*Row
	for _, name := range b.declared {
		if key := escape.Replace(name); b.rows[key] == nil {
			rows = append(rows, &Row{Key: key, Name: name, Kind: Step, State: Expected, Branch: b.in.Run.Branch, life: -1})
		}
	}
	return rows
}

func sortRows(rows []*Row) {
	byOrdinal := func(a, b *Row) int { return int(a.Ordinal) - int(b.Ordinal) }
	if !slices.IsSortedFunc(rows, byOrdinal) {
		slices.SortStableFunc(rows, byOrdinal)
	}
	for _, r := range rows {
		if len(r.Rows) > 0 {
			sortRows(r.Rows)
		}
	}
}

// settle determines the state of open rows, and which row is the current one.
func (b *Builder) settle(o *Outline) {
	executing := o.Run.Status == store.Running || o.Run.Status == store.Resuming
	if o.KnowExecutors {
		executing = executing && o.Attended
	}
	var failed, open, group, next *Row
	for _, l := range o.Lanes {
		Each(l.Rows, func(r *Row) bool {
			switch {
			case r.State == Expected:
				if next == nil {
					next = r
				}
			case !r.open():
				if r.State == Failed && r.Kind != Item && (failed == nil || r.Outcome > failed.Outcome) {
					failed = r
				}
			default:
				b.settleRow(o, r, executing)
				if r.State == Waiting {
					o.Waits = append(o.Waits, r)
				} else if len(r.Rows) == 0 {
					open = r
				} else if r.Kind == Map || r.Kind == Branch {
					group = r
				}
			}
			return true
		})
	}
	slices.SortStableFunc(o.Waits, func(a, b *Row) int { return int(a.Seq - b.Seq) })
	switch o.Run.Status {
	case store.Failed:
		o.Current = b.cause()
		b.caught = failed
		if failed == o.Current {
			b.caught = nil
		}
	case store.Completed, store.Cancelled, store.Pending:
	case store.Waiting:
		if len(o.Waits) > 0 {
			o.Current = o.Waits[0]
			for _, w := range o.Waits {
				if w.Kind == Approval {
					o.Current = w
					break
				}
			}
		}
	default:
		if open == nil {
			open = group
		}
		if r := b.rows[b.in.Executing]; r != nil && b.in.Executing != "" && executing {
			if open = r; r.open() {
				r.State = Running
			}
		} else if b.in.Executing != "" && executing {
			// Nothing is recorded of it yet.
			open = &Row{Key: b.in.Executing, Name: nameOf(b.in.Executing), Kind: Step, State: Running, Branch: o.Run.Branch, life: -1}
			if next != nil && next.Key == b.in.Executing {
				open, next.State = next, Running
			}
		}
		if open == nil {
			open = next
		}
		if open == nil && len(o.Waits) > 0 {
			open = o.Waits[0]
		}
		o.Current = open
	}
}

// cause returns the call whose failure ended the run; nil: the function itself
// failed, or the engine did, or it is unknown. The recorded error shows it: by its
// type, or, if that is lost because the function returned another error, by its
// text, which begins with the call.
func (b *Builder) cause() *Row {
	f := &b.failure
	if f.code != "" && f.code != "error" && f.code != "panic" {
		return nil
	}
	byCause := func(c cause) (found *Row) {
		if c.RunID == "" {
			return b.rows[c.Key]
		}
		for _, r := range b.rows {
			if r.Kind == Child && r.ChildID == c.RunID {
				return r
			}
		}
		return nil
	}
	for _, c := range f.calls {
		if r := byCause(c); r != nil {
			return r
		}
	}
	var named *Row
	at := len(f.message)
	for _, r := range b.rows {
		if r.State != Failed && r.ItemsFailed == 0 {
			continue
		}
		for _, name := range []string{"step ", "map ", "item "} {
			if i := strings.Index(f.message, name+r.Key+": "); i >= 0 && (i < at || i == at && named != nil && len(r.Key) > len(named.Key)) {
				named, at = r, i
			}
		}
	}
	if named != nil {
		return named
	}
	// The error of a call on its own, unwrapped by the function.
	for _, r := range b.rows {
		if r.State == Failed && r.Error != "" && r.Error == f.message && (named == nil || r.Outcome > named.Outcome) {
			named = r
		}
	}
	return named
}

// settleRow determines the state of a row without an outcome.
func (b *Builder) settleRow(o *Outline, r *Row, executing bool) {
	ended := o.Run.Status.Terminal()
	switch r.Kind {
	case Timer, Wait, Approval, Request, Child:
		r.State = Waiting
		if ended {
			r.State = Closed
		}
		return
	}
	switch {
	case !executing && (o.Run.Status != store.Waiting || len(r.Rows) == 0):
		r.State = Stopped
	case r.NextAt > o.Now:
		r.State = Backoff
	default:
		r.State = Running
	}
}
