package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, runID string, c store.Cursor) (*store.History, error) {
	l := s.LoadAll(ctx, []store.RunCursor{{RunID: runID, Cursor: c}})[0]
	return l.History, l.Err
}

// maxSet bounds how many runs one statement loads.
const maxSet = 100

// LoadAll implements store.Loader: one statement for each hundred runs, and so one moment.
func (s *Store) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	if err := s.enter(ctx); err != nil {
		return store.LoadedNothing(len(loads), err)
	}
	defer s.calls.Done()
	return sqlstore.LoadInSets(loads, maxSet, func(loads []store.RunCursor, into []store.Loaded) { s.loadSet(ctx, loads, into) })
}

// found is a run that is being loaded.
type found struct {
	h      *store.History
	no     int64
	head   []store.Event
	loaded atomic.Pointer[[]store.Event] // head, until a range has handed it out
}

// loadSet loads runs by one statement.
func (s *Store) loadSet(ctx context.Context, loads []store.RunCursor, into []store.Loaded) {
	var ids, afters, tails, wanted, messages array
	mail := true // and nothing else
	for i := range loads {
		l := &loads[i]
		id := l.RunID
		if !holdable(id) {
			id = "" // no run has it
		}
		ids.text(id)
		afters.int(firstAfter(l.Cursor))
		tails.int(int64(max(l.Tail, 0)))
		wanted.bool(!l.NoEvents)
		messages.int(max(l.AfterMessage, 0))
		mail = mail && l.NoEvents && l.OnlyInbox
	}
	var list []*found
	err := s.reading(ctx, func(w *wire) error {
		list = make([]*found, len(loads))
		if mail {
			return w.query("load_inboxes", func(v []driverValue) error { return message(list, loads, v) }, ids.value(), messages.value())
		}
		return w.query("load_runs", func(v []driverValue) error {
			return part(list, v)
		}, ids.value(), afters.value(), tails.value(), wanted.value(), messages.value())
	})
	if err != nil && len(loads) > 1 && ctx.Err() == nil && faultOf(err).lasts() && !errors.Is(err, store.ErrClosed) {
		for i := range loads { // what one cannot be read for does not concern the others
			s.loadSet(ctx, loads[i:i+1], into[i:i+1])
		}
		return
	}
	for i := range loads {
		l := &loads[i]
		switch {
		case err != nil && len(loads) == 1:
			into[i].Err = described(fmt.Sprintf("load run %q", l.RunID), err)
		case err != nil:
			into[i].Err = described(fmt.Sprintf("load run %q and %d more", l.RunID, len(loads)-1), err)
		case list[i] == nil || list[i].h == nil || !holdable(l.RunID):
			into[i].Err = sqlstore.NotFound(l.RunID)
		default:
			into[i].History = s.loaded(ctx, list[i], l.Cursor)
		}
	}
}

// firstAfter returns the Seq after which a cursor reads, such that windows can be added to it.
func firstAfter(c store.Cursor) int64 { return min(max(c.After, 0), math.MaxInt64-maxChunk) }

func (s *Store) loaded(ctx context.Context, f *found, c store.Cursor) *store.History {
	h := f.h
	for i := range h.Inbox {
		h.Inbox[i].To = h.Run.ID
	}
	slices.SortFunc(h.Branches, func(a, b store.Branch) int { return int(a.N - b.N) })
	slices.SortFunc(h.Inbox, func(a, b store.Message) int { return int(a.Seq - b.Seq) })
	slices.SortFunc(f.head, func(a, b store.Event) int { return int(a.Seq - b.Seq) })
	s.numbers.put(h.Run.ID, f.no)
	h.Events = func(func(store.Event, error) bool) {}
	if !c.NoEvents {
		c.After = firstAfter(c)
		h.Events = s.events(ctx, f, c)
	}
	return h
}

// What a row of load_runs is.
const (
	partRun = iota
	partAttribute
	partBranch
	partMessage
	partLast
	_ // an event to begin with
)

// Where load_runs puts what is not a row of a run: into columns of rows of runs.
var (
	attributeAt = []int{5, 16}                                                  // name, value
	branchAt    = []int{20, 21, 22, 25, 5, 16, 12}                              // n, parent, generation, cutoff, cut_scope, reason, created_at
	messageAt   = []int{25, 4, 5, 1, 12, 16, 7}                                 // seq, kind, name, id, at, data, payload
	eventAt     = []int{0, 25, 19, 20, 4, 5, 21, 22, 12, 26, 30, 23, 16, 7, 31} // as scanEvent reads them
)

// part adds one row of load_runs to the run that it is about.
func part(list []*found, v []driverValue) error {
	head := scanner{v: v}
	i, kind := int(head.int())-1, head.int()
	if head.err != nil {
		return head.err
	}
	f := list[i]
	if f == nil {
		f = &found{h: &store.History{}}
		list[i] = f
	}
	switch v = v[2:]; kind {
	case partRun:
		return f.addRow(v)
	case partAttribute:
		sc := pick(v, attributeAt)
		setAttribute(&f.h.Run, sc.text(), sc.text())
		return sc.err
	case partBranch:
		return f.addBranch(pick(v, branchAt))
	case partMessage:
		return f.addMessage(pick(v, messageAt))
	}
	row, err := scanEvent(pick(v, eventAt).v)
	if err != nil {
		return err
	}
	if e := row.Event(); kind == partLast {
		f.h.Run.Last = &e
	} else {
		f.head = append(f.head, e)
	}
	return nil
}

// message adds one row of load_inboxes to the run that it is about.
func message(list []*found, loads []store.RunCursor, v []driverValue) error {
	head := scanner{v: v}
	i, no := int(head.int())-1, head.int()
	if head.err != nil {
		return head.err
	}
	f := list[i]
	if f == nil {
		f = &found{h: &store.History{Run: store.Run{ID: loads[i].RunID}}, no: no}
		list[i] = f
	}
	if v = v[2:]; v[0] == nil {
		return nil
	}
	return f.addMessage(&scanner{v: v})
}

// pick returns the values at these places of a row.
func pick(v []driverValue, at []int) *scanner {
	p := make([]driverValue, len(at))
	for i, n := range at {
		p[i] = v[n]
	}
	return &scanner{v: p}
}

func (f *found) addRow(v []driverValue) error {
	r, err := scanRun(v)
	attributes, last := f.h.Run.Attributes, f.h.Run.Last
	f.no, f.h.Run = r.No, r.Run()
	f.h.Run.Attributes, f.h.Run.Last = attributes, last
	return err
}

func (f *found) addBranch(sc *scanner) error {
	b := sqlstore.BranchRow{
		N: int32(sc.int()), Parent: int32(sc.int()), Generation: int32(sc.int()), Cutoff: sc.int(), CutScope: sc.text(),
		Reason: sc.text(), CreatedAt: sc.int(),
	}
	f.h.Branches = append(f.h.Branches, b.Branch())
	return sc.err
}

func (f *found) addMessage(sc *scanner) error {
	m := sqlstore.MessageRow{
		Seq: sc.int(), Kind: sc.text(), Name: sc.text(), ID: sc.text(), At: sc.int(), Data: sc.textBytes(), Payload: sc.bytes(),
	}
	f.h.Inbox = append(f.h.Inbox, m.Message(""))
	return sc.err
}
