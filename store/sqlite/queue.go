//go:build cgo

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
)

var _ store.Queues = (*Store)(nil)

// PutQueue implements store.Queues.
func (s *Store) PutQueue(ctx context.Context, q store.Queue) error {
	if err := q.Check(); err != nil {
		return err
	}
	err := s.write(ctx, "put queue "+q.Name, func(t *tx) error {
		stored := int64(0)
		if err := t.query(t.s.q.queue, func(c *cells) error { stored = c.int(); return nil }, q.Name); err != nil {
			return err
		}
		if stored != q.Revision {
			return fmt.Errorf("sqlite: queue %q: revision %d was expected, it is at %d: %w", q.Name, q.Revision, stored, store.ErrRevision)
		}
		_, _, err := t.exec(t.s.q.queuePut, q.Name, q.Revision+1, int64(q.Max), int64(q.MaxPerPartition), int64(q.Rate), q.Per.Microseconds(),
			q.Paused, store.CleanText(q.Reason), int64(t.now))
		if err == nil && q.Rate == 0 {
			_, _, err = t.exec(t.s.q.queueUnbegin, q.Name, int64(0))
		}
		return err
	})
	if err == nil {
		s.tellAll() // it may let runs in
	}
	return err
}

// queueRow is a queue that was put.
type queueRow struct {
	Name            string `db:"name"`
	Revision        int64  `db:"revision"`
	Max             int    `db:"max"`
	MaxPerPartition int    `db:"max_per_partition"`
	Rate            int    `db:"rate"`
	Per             int64  `db:"per"`
	Paused          bool   `db:"paused"`
	Reason          string `db:"reason"`
	UpdatedAt       int64  `db:"updated_at"`
}

func (r *queueRow) queue() store.Queue {
	return store.Queue{
		Name: r.Name, Revision: r.Revision, Max: r.Max, MaxPerPartition: r.MaxPerPartition, Rate: r.Rate, Per: time.Duration(r.Per) * time.Microsecond,
		Paused: r.Paused, Reason: r.Reason, UpdatedAt: store.Time(r.UpdatedAt),
	}
}

// Queue implements store.Queues.
func (s *Store) Queue(ctx context.Context, name string) (store.Queue, error) {
	put := []queueRow{{Name: name}}
	err := s.read(ctx, "look at queue "+name, func(tx *sqlx.Tx) error {
		var rows []queueRow
		err := s.selectAll(ctx, tx, &rows, s.q.queueAsPut, name)
		put = append(put, rows...)
		return err
	})
	if err != nil {
		return store.Queue{}, err
	}
	return put[len(put)-1].queue(), nil
}

// aisleRow is an aisle, read outside a claim.
type aisleRow struct {
	Owner    string `db:"owner"`
	Queue    string `db:"queue"`
	Workflow string `db:"workflow"`
	Version  string `db:"version"`
	Line     int64  `db:"line"`
	Due      bool   `db:"due"`
}

// readyRow is a lane of runs that need no place, read outside a claim.
type readyRow struct {
	Owner    string `db:"owner"`
	Queue    string `db:"queue"`
	Workflow string `db:"workflow"`
	Version  string `db:"version"`
	Priority int64  `db:"priority"`
	Ready    int64  `db:"ready"`
	ReadyAt  int64  `db:"ready_at"`
}

func (r *aisleRow) args(more ...any) []any {
	return append([]any{r.Owner, r.Queue, r.Workflow, r.Version}, more...)
}

// Queues implements store.Queues. It counts the runs in line, which takes a while where there are
// very many.
func (s *Store) Queues(ctx context.Context, names ...string) (list []store.QueueState, err error) {
	err = s.read(ctx, "look at queues", func(tx *sqlx.Tx) error {
		v := &queueView{s: s, ctx: ctx, tx: tx, now: store.TimeOf(s.opts.Clock()), states: make(map[string]*store.QueueState)}
		if err := v.find(names); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(v.states)) {
			st := v.states[name]
			if err := v.count(st); err != nil {
				return err
			}
			list = append(list, *st)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// queueView reads the states of queues, as of one moment.
type queueView struct {
	s      *Store
	ctx    context.Context
	tx     *sqlx.Tx
	now    store.Time
	states map[string]*store.QueueState
	aisles []aisleRow
}

func (v *queueView) all(dest any, q *query, args ...any) error {
	return v.s.selectAll(v.ctx, v.tx, dest, q, args...)
}

// find finds the queues that were put or have unfinished runs.
func (v *queueView) find(names []string) error {
	asked := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	var put []queueRow
	if err := v.all(&put, v.s.q.queuesPut); err != nil {
		return err
	}
	for i := range put {
		if asked(put[i].Name) {
			v.states[put[i].Name] = &store.QueueState{Queue: put[i].queue()}
		}
	}
	if err := v.all(&v.aisles, v.s.q.lines, int64(v.now)); err != nil {
		return err
	}
	var with []string
	if err := v.all(&with, v.s.q.queueNames); err != nil {
		return err
	}
	for i := range v.aisles {
		with = append(with, v.aisles[i].Queue)
	}
	var ready []readyRow // among them those that were cancelled in line
	if err := v.all(&ready, v.s.q.lanes); err != nil {
		return err
	}
	for i := range ready {
		if ready[i].Queue != "" {
			with = append(with, ready[i].Queue)
		}
	}
	for _, name := range with {
		if v.states[name] == nil && asked(name) {
			v.states[name] = &store.QueueState{Queue: store.Queue{Name: name}}
		}
	}
	return nil
}

// partRow counts runs of a partition; Oldest is since when the oldest of them has been due.
type partRow struct {
	Name   string `db:"name"`
	N      int64  `db:"n"`
	Oldest int64  `db:"oldest"`
}

// count fills in what follows from the runs.
func (v *queueView) count(st *store.QueueState) error {
	parts := make(map[string]*store.PartitionState)
	part := func(name string) *store.PartitionState {
		if parts[name] == nil {
			parts[name] = &store.PartitionState{Name: name}
		}
		return parts[name]
	}
	var placed []partRow
	if err := v.all(&placed, v.s.q.queuePartsPlaced, st.Name); err != nil {
		return err
	}
	for _, r := range placed {
		part(r.Name).Placed += r.N
		st.Placed += r.N
	}
	for i := range v.aisles {
		if v.aisles[i].Queue != st.Name {
			continue
		}
		rows, delayed, err := v.inLine(&v.aisles[i])
		if err != nil {
			return err
		}
		st.Delayed += delayed
		for _, r := range rows {
			part(r.Name).InLine += r.N
			st.InLine += r.N
			if oldest := store.Time(r.Oldest); st.Oldest == 0 || oldest < st.Oldest {
				st.Oldest = oldest
			}
		}
	}
	for _, p := range parts {
		st.Partitions = append(st.Partitions, *p)
	}
	slices.SortFunc(st.Partitions, func(a, b store.PartitionState) int {
		return cmp.Or(cmp.Compare(b.InLine, a.InLine), cmp.Compare(b.Placed, a.Placed), cmp.Compare(a.Name, b.Name))
	})
	st.Partitions = st.Partitions[:min(len(st.Partitions), store.MaxPartitionsShown)]
	return v.rate(st)
}

// inLine counts the runs of an aisle that are in line, by partition, and those whose time has not come.
func (v *queueView) inLine(a *aisleRow) (rows []partRow, delayed int64, err error) {
	if a.Line != lineDelayed {
		if a.Due {
			err = v.all(&rows, v.s.q.queuePartsInLine, a.args(a.Line)...)
		}
		return rows, 0, err
	}
	var n []int64
	if err := v.all(&n, v.s.q.queueDelayed, a.args(int64(v.now))...); err != nil {
		return nil, 0, err
	}
	if a.Due {
		err = v.all(&rows, v.s.q.queuePartsDue, a.args(int64(v.now))...)
	}
	return rows, n[0], err
}

// rate fills in how far the rate is used up.
func (v *queueView) rate(st *store.QueueState) error {
	if st.Rate == 0 {
		return nil
	}
	var begun []struct {
		At int64 `db:"at"`
		N  int64 `db:"n"`
	}
	if err := v.all(&begun, v.s.q.queueBegunSince, st.Name, int64(gate.Window(st.Queue, v.now))); err != nil {
		return err
	}
	var use gate.Use
	for _, b := range begun {
		use.Count += int(b.N)
	}
	left := use.Count
	for _, b := range begun { // the one after which Rate are left
		if use.First = min(store.Time(b.At), v.now); left-int(b.N) < st.Rate {
			break
		}
		left -= int(b.N)
	}
	g := gate.New(st.Queue, -1, v.now, use)
	st.Begun, st.NextAt = g.Begun(), g.NextAt()
	return nil
}

// Ahead implements store.Queues.
func (s *Store) Ahead(ctx context.Context, runID string) (n int64, inLine bool, err error) {
	err = s.read(ctx, "look at the line before "+runID, func(tx *sqlx.Tx) error {
		v := &queueView{s: s, ctx: ctx, tx: tx, now: store.TimeOf(s.opts.Clock())}
		var row sqlstore.RunRow
		s.counts.statements.Add(1)
		s.counts.reads.Add(1)
		err := tx.GetContext(ctx, &row, s.q.runByID.text, runID)
		if errors.Is(err, sql.ErrNoRows) {
			return sqlstore.NotFound(runID)
		}
		if err != nil {
			return err
		}
		r := row.Run()
		if inLine = r.NeedsPlace() && r.Due(v.now); !inLine {
			return nil
		}
		if err := v.all(&v.aisles, s.q.lines, int64(v.now)); err != nil {
			return err
		}
		rank := int64(store.Rank(r.Since(v.now), r.Priority))
		for i := range v.aisles {
			a := &v.aisles[i]
			if a.Queue != r.Queue || !a.Due {
				continue
			}
			var ahead []int64
			if a.Line == lineDelayed {
				err = v.all(&ahead, s.q.queueAheadDelayed, a.args(r.Partition, rank, row.No, int64(v.now))...)
			} else {
				err = v.all(&ahead, s.q.queueAhead, a.args(a.Line, r.Partition, rank, row.No)...)
			}
			if err != nil {
				return err
			}
			n += ahead[0]
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	return n, inLine, nil
}
