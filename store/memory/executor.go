package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

type executor struct {
	no int64 // order of registration
	store.Executor
}

// live reports whether an executor beat within its lease.
func (d *data) live(id string, now store.Time) bool {
	e := d.executors[id]
	return e != nil && now < e.BeatAt.Add(e.Lease)
}

// Beat implements store.Store.
func (s *Store) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	if e.ID == "" || (e.Lease <= 0 && !e.Leaving) {
		return store.Pulse{}, fmt.Errorf("store: executor %q needs an id and a lease: %w", e.ID, store.ErrInvalid)
	}
	if err := s.enter(ctx); err != nil {
		return store.Pulse{}, err
	}
	d := s.data
	defer d.mu.Unlock()
	s.counts.Statements++
	s.counts.Commits++
	now := d.now()
	known := d.executors[e.ID]
	p := store.Pulse{Now: now, Late: known != nil && !d.live(e.ID, now)}
	if e.Leaving {
		delete(d.executors, e.ID)
		d.notify(notice.Everything()) // its runs are free
	} else {
		d.register(known, e, now)
	}
	if !e.Leaving { // whoever leaves asks for nothing
		d.look(&p, e, now)
	}
	return p, nil
}

func (d *data) register(known *executor, e store.Executor, now store.Time) {
	e.StartedAt, e.BeatAt = now, now
	no := d.joined
	if known != nil {
		e.StartedAt, no = known.StartedAt, known.no
	} else {
		d.joined++
	}
	e.Serves = copyServed(e.Serves)
	d.executors[e.ID] = &executor{no: no, Executor: e}
}

// look fills in what follows from the runs.
func (d *data) look(p *store.Pulse, e store.Executor, now store.Time) {
	var mail []*run
	gone := make(map[string]struct{})
	for r := range d.unfinished {
		row := &r.row
		owned := row.Owner == e.ID
		free := d.free(r, now)
		if free && row.Owner != "" {
			gone[row.Owner] = struct{}{}
		}
		if owned && row.Inbox > row.Seen {
			mail = append(mail, r)
		}
		served := free && store.Serves(e.Serves, row.Workflow, row.Version)
		claimable := served && row.Claimable()
		if row.WakeAt > now && (owned || claimable) && (p.Next == 0 || row.WakeAt < p.Next) {
			p.Next = row.WakeAt
		}
		p.Due = p.Due || served && row.Due(now)
	}
	slices.SortFunc(mail, func(a, b *run) int { return cmp.Compare(a.no, b.no) })
	for _, r := range mail {
		p.Mail = append(p.Mail, store.Mail{RunID: r.row.ID, Inbox: r.row.Inbox})
	}
	for id := range gone {
		p.Gone = append(p.Gone, id)
	}
	slices.Sort(p.Gone)
}

// Executors implements store.Store.
func (s *Store) Executors(ctx context.Context) ([]store.Executor, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	d := s.data
	defer d.mu.Unlock()
	now := d.now()
	all := make([]*executor, 0, len(d.executors))
	for _, e := range d.executors {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *executor) int { return cmp.Compare(a.no, b.no) })
	list := make([]store.Executor, len(all))
	for i, e := range all {
		list[i] = e.Executor
		list[i].Serves = copyServed(e.Serves)
		list[i].Live = d.live(e.ID, now)
	}
	return list, nil
}

func copyServed(served []store.Served) []store.Served {
	c := slices.Clone(served)
	for i := range c {
		c[i].Versions, c[i].Queues = slices.Clone(c[i].Versions), slices.Clone(c[i].Queues)
	}
	return c
}
