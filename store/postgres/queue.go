package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
	"github.com/holdfast-dev/holdfast/store/internal/line"
)

var _ store.Queues = (*Store)(nil)

// PutQueue implements store.Queues.
//
// It waits for the claims that hold the queue's lock because of its limits. It does
// not wait for those that found it without: the next claim that finds a limit does.
func (s *Store) PutQueue(ctx context.Context, q store.Queue) error {
	if err := q.Check(); err != nil {
		return err
	}
	if !holdable(q.Name) {
		return fmt.Errorf("postgres: queue %.80q: the name is not UTF-8 without NUL: %w", q.Name, store.ErrInvalid)
	}
	q.Reason, q.Per = store.CleanText(q.Reason), q.Per.Truncate(time.Microsecond)
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	maybe := false // an attempt whose answer was lost may have stored it
	err := s.again(ctx, func(w *wire) error {
		w.ctx = ctx
		err := s.putQueue(w, q, maybe)
		if _, lost := errors.AsType[*lostError](err); lost {
			maybe = true
		}
		return err
	})
	if err == nil {
		s.notices.tellAll()
	}
	return described("store queue "+q.Name, err)
}

func (s *Store) putQueue(w *wire, q store.Queue, maybe bool) error {
	have := &queue{}
	if err := readRows(w, "queues_of", map[string]*queue{q.Name: have}, []string{q.Name}); err != nil {
		return err
	}
	want := q
	want.Revision, want.UpdatedAt = q.Revision+1, have.Queue.UpdatedAt
	switch {
	case maybe && have.Queue == want:
		return w.replicated()
	case have.Queue.Revision != q.Revision:
		return fmt.Errorf("store: queue %q: revision %d was expected, it is at %d: %w", q.Name, q.Revision, have.Queue.Revision, store.ErrRevision)
	}
	if err := w.begin(); err != nil {
		return err
	}
	if _, err := w.exec("queue_add", texts(q.Name)); err != nil {
		return err
	}
	n, err := w.exec("queue_put", q.Name, q.Revision, int64(q.Max), int64(q.MaxPerPartition), int64(q.Rate), q.Per.Microseconds(), q.Paused, q.Reason)
	if err != nil {
		return err
	}
	if n == 0 {
		return errAgain // another was put since: the next attempt is refused
	}
	if q.Rate == 0 {
		if _, err := w.exec("begun_forget", texts(q.Name), ints(math.MaxInt64)); err != nil {
			return err
		}
	}
	return w.commit()
}

// scanQueue reads a row of a queue.
func scanQueue(v []driverValue) (q store.Queue, turn string, begun int64, err error) {
	sc := scanner{v: v}
	q = store.Queue{
		Name: sc.text(), Revision: sc.int(), Max: int(sc.int()), MaxPerPartition: int(sc.int()), Rate: int(sc.int()),
		Per: time.Duration(sc.int()) * time.Microsecond, Paused: sc.bool(), Reason: sc.text(), UpdatedAt: store.Time(sc.int()),
	}
	turn, begun = sc.text(), sc.int()
	return q, turn, begun, sc.err
}

// lockQueues locks the queues that a batch wants places in, and returns what it may
// take. Those with limits are locked for this claim alone, and looked at again, so that
// the limits are exact.
func (c *claiming) lockQueues(w *wire, b *batch) ([]line.Run, error) {
	var add, limited, free []string
	b.queues = map[string]*queue{}
	for _, name := range queuesOf(b.list) {
		l := *b.survey.queues[name]
		b.queues[name] = &l
		if !l.known {
			add = append(add, name)
		}
		if l.limited() {
			limited = append(limited, name)
		} else {
			free = append(free, name)
		}
	}
	b.limits = len(limited) > 0
	if err := lockRows(w, b.queues, add, limited, free); err != nil {
		return nil, err
	}
	if !b.limits {
		return b.list, nil
	}
	for _, name := range limited {
		if b.survey.inTurn && b.queues[name].turn != b.survey.queues[name].turn {
			return nil, errAgain // others were let in while this claim waited
		}
	}
	ahead, err := readUse(w, b.queues, limited)
	if err == nil {
		err = clamp(w, b.queues, ahead)
	}
	if err != nil {
		return nil, err
	}
	s := *b.survey
	s.named, s.queues = b.list, map[string]*queue{}
	for _, name := range limited {
		s.queues[name] = b.queues[name]
	}
	if !s.only {
		// What there is in line now, not what others have taken meanwhile.
		if err := c.readLines(w, &s, b.want); err != nil {
			return nil, err
		}
	}
	s.queues = b.queues
	return s.plan(len(b.list)).List, nil
}

// lockRows adds the rows of queues that have none, and locks and reads those of queues
// with limits and without.
func lockRows(w *wire, queues map[string]*queue, add, limited, free []string) error {
	if len(add) > 0 {
		if _, err := w.exec("queue_add", texts(add...)); err != nil {
			return err
		}
	}
	for _, q := range queues {
		q.known = false
	}
	if len(limited) > 0 {
		if err := readRows(w, "queue_lock", queues, limited); err != nil {
			return err
		}
	}
	if len(free) > 0 {
		if err := readRows(w, "queue_share", queues, free); err != nil {
			return err
		}
	}
	for _, name := range free {
		if queues[name].limited() {
			return errAgain // a limit, put meanwhile, is looked at under the lock for one
		}
	}
	for _, q := range queues {
		if !q.known {
			return errAgain // its row was there, and is gone
		}
	}
	return nil
}

// saveQueues saves where the turn of queues is now, and when runs began.
func saveQueues(w *wire, b *batch) error {
	turns, begun, at := map[string]string{}, map[string]int64{}, map[string]store.Time{}
	for _, k := range b.got {
		if !k.placed {
			continue
		}
		q := b.queues[k.Queue]
		if turns[k.Queue] = k.Partition; b.survey.only && !b.survey.inTurn {
			turns[k.Queue] = q.turn // who was asked for has no turn
		}
		if k.begins && q.Queue.Rate > 0 {
			begun[k.Queue]++
			at[k.Queue] = max(at[k.Queue], k.now)
		}
	}
	var queues, parts, counts, rated, firsts, times, ends array
	for _, name := range slices.Sorted(maps.Keys(turns)) {
		q := b.queues[name]
		if turns[name] != q.turn || begun[name] > 0 {
			queues.text(name)
			parts.text(turns[name])
			counts.int(begun[name])
		}
		if begun[name] > 0 {
			rated.text(name)
			firsts.int(q.begun)
			times.int(int64(at[name]))
			ends.int(int64(gate.Window(q.Queue, q.Now)))
		}
	}
	if len(queues.b) > 0 {
		if _, err := w.exec("queue_turns", queues.value(), parts.value(), counts.value()); err != nil {
			return err
		}
	}
	if len(rated.b) == 0 {
		return nil
	}
	names := rated.value()
	if _, err := w.exec("begun_add", names, firsts.value(), times.value()); err != nil {
		return err
	}
	_, err := w.exec("begun_forget", names, ends.value())
	return err
}

// Queue implements store.Queues.
func (s *Store) Queue(ctx context.Context, name string) (store.Queue, error) {
	if err := s.enter(ctx); err != nil {
		return store.Queue{}, err
	}
	defer s.calls.Done()
	put := store.Queue{Name: name}
	err := s.again(ctx, func(w *wire) error {
		w.ctx = ctx
		return w.query("queues_of", func(v []driverValue) error {
			q, _, _, err := scanQueue(v)
			if q.Revision > 0 { // else only runs have been on it
				put = q
			}
			return err
		}, names(name))
	})
	return put, described("look at queue "+name, err)
}

// Queues implements store.Queues.
func (s *Store) Queues(ctx context.Context, wanted ...string) ([]store.QueueState, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	var list []store.QueueState
	err := s.again(ctx, func(w *wire) (err error) {
		w.ctx = ctx
		list, err = queueStates(w, wanted)
		return err
	})
	return list, described("list queues", err)
}

func queueStates(w *wire, wanted []string) ([]store.QueueState, error) {
	states, all := map[string]*store.QueueState{}, len(wanted) == 0
	of := func(name string) *store.QueueState {
		if states[name] == nil {
			states[name] = &store.QueueState{Queue: store.Queue{Name: name}}
		}
		return states[name]
	}
	err := w.query("queue_counts", func(v []driverValue) error {
		sc := scanner{v: v}
		st, p := of(sc.text()), store.PartitionState{Name: sc.text(), Placed: sc.int(), InLine: sc.int()}
		st.Delayed += sc.int()
		oldest := store.Time(sc.int())
		st.Placed += p.Placed
		st.InLine += p.InLine
		if oldest != 0 && (st.Oldest == 0 || oldest < st.Oldest) {
			st.Oldest = oldest
		}
		if p.Placed > 0 || p.InLine > 0 {
			st.Partitions = append(st.Partitions, p)
		}
		return sc.err
	}, names(wanted...), all)
	if err != nil {
		return nil, err
	}
	rows := map[string]*queue{}
	err = w.query("queues_put", func(v []driverValue) error {
		q, _, begun, err := scanQueue(v)
		rows[q.Name] = &queue{Line: line.Line{Queue: q, Room: -1}, begun: begun}
		of(q.Name).Queue = q
		return err
	}, names(wanted...), all)
	if err != nil {
		return nil, err
	}
	rated := slices.DeleteFunc(slices.Sorted(maps.Keys(rows)), func(name string) bool { return rows[name].Queue.Rate == 0 })
	if _, err := readUse(w, rows, rated); err != nil {
		return nil, err
	}
	var list []store.QueueState
	for _, name := range slices.Sorted(maps.Keys(states)) {
		st := states[name]
		st.Partitions = topPartitions(st.Partitions)
		if q := rows[name]; q != nil && q.Queue.Rate > 0 {
			st.Begun, st.NextAt = q.Gate().Begun(), q.Gate().NextAt()
		}
		list = append(list, *st)
	}
	return list, nil
}

// topPartitions returns those with the most runs in line.
func topPartitions(list []store.PartitionState) []store.PartitionState {
	slices.SortFunc(list, func(a, b store.PartitionState) int {
		return cmp.Or(cmp.Compare(b.InLine, a.InLine), cmp.Compare(b.Placed, a.Placed), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), store.MaxPartitionsShown)]
}

// Ahead implements store.Queues.
func (s *Store) Ahead(ctx context.Context, runID string) (n int64, inLine bool, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, false, err
	}
	defer s.calls.Done()
	found := false
	err = s.again(ctx, func(w *wire) error {
		w.ctx = ctx
		found = false
		return w.query("queue_ahead", func(v []driverValue) error {
			found = true
			inLine, n = v[0].(bool), v[1].(int64)
			return nil
		}, names(runID))
	})
	if err == nil && !found {
		return 0, false, sqlstore.NotFound(runID)
	}
	return n, inLine, described(fmt.Sprintf("place in line of run %q", runID), err)
}
