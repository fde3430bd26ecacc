package claims

import (
	"context"
	"fmt"
	"math"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// recoverSlice is how many runs recovery reads, judges and continues at a time.
const recoverSlice = maxClaimBatch

// tailSet is how many ends of logs are read in one call: their payloads, which no decision needs,
// are in memory until the next call.
const tailSet = 64

// tails are the ends of the logs of runs that are decided about together: those that the
// decision needs are read in one go.
type tails struct {
	o    *Options
	read map[string]tail // by run id; what is not there is read when it is asked for
}

// tail is the end of a log, as it was when its last event was seq.
type tail struct {
	seq    int64
	events []store.Event // of the lineage, at most trialTail
	err    error
}

// tailsOf reads the ends of the logs of those rows about which nothing can be decided without them.
func (o *Options) tailsOf(ctx context.Context, rows []*store.Run) *tails {
	t := &tails{o: o, read: map[string]tail{}}
	var loads []store.RunCursor
	var of []*store.Run
	for _, row := range rows {
		if o.needsTail(row) {
			loads = append(loads, store.RunCursor{RunID: row.ID, Cursor: store.Cursor{Tail: trialTail, AfterMessage: math.MaxInt64}})
			of = append(of, row)
		}
	}
	for from := 0; from < len(loads); from += tailSet {
		to := min(from+tailSet, len(loads))
		for i, l := range store.LoadAll(ctx, o.Store, loads[from:to]) {
			if l.Err != nil {
				continue // it is asked for again, and what is wrong is found then
			}
			row := of[from+i]
			read := tail{seq: row.Last.Seq}
			read.events, read.err = eventsOf(l.History)
			t.read[row.ID] = read
		}
	}
	return t
}

// needsTail reports whether it takes more than the last event of a run to tell whether it is
// consistent, or whether it has ended processes.
func (o *Options) needsTail(row *store.Run) bool {
	if row.Last == nil || !o.Program.Has(row.Workflow, row.Version) {
		return false
	}
	return mayHaveStrikes(row) || !o.NoReconcileOnBoot && history.Glance(row, len(o.Program.Steps(row.Workflow, row.Version))) == history.LookTail
}

// of returns the last n events of a run's lineage.
func (t *tails) of(ctx context.Context, row *store.Run, n int) ([]store.Event, error) {
	if t != nil && n <= trialTail && row.Last != nil {
		if r, ok := t.read[row.ID]; ok && r.seq == row.Last.Seq {
			return r.events[max(0, len(r.events)-n):], r.err
		}
	}
	h, err := t.o.Store.Load(ctx, row.ID, store.Cursor{Tail: n, AfterMessage: math.MaxInt64})
	if err != nil {
		return nil, err
	}
	return eventsOf(h)
}

// damagedTail is the error of a log whose end could be read in part.
type damagedTail struct{ error }

func (d damagedTail) Unwrap() error { return d.error }

// eventsOf returns the events of a history without their payloads.
func eventsOf(h *store.History) (list []store.Event, err error) {
	for ev, err := range h.Events {
		if err != nil {
			return list, damagedTail{err}
		}
		ev.Payload = nil
		list = append(list, ev)
	}
	return list, nil
}

// eachSlice calls do with the rows that match, recoverSlice at a time: decisions about the first
// are carried out before the last have been read. what says what could not be listed.
func (o *Options) eachSlice(ctx context.Context, f store.Filter, what string, do func([]*store.Run, *tails) error) error {
	f.OldestFirst, f.WithLast, f.Limit = true, true, recoverSlice
	var rows []*store.Run
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		t := o.tailsOf(ctx, rows)
		err := do(rows, t)
		if rows = nil; err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	for row, err := range o.List(ctx, f) {
		if err != nil {
			return fmt.Errorf("durable: recovery could not list %s runs: %w", what, commit.StoreError(err))
		}
		if rows = append(rows, row); len(rows) == recoverSlice {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
