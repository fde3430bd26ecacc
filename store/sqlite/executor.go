//go:build cgo

package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// isLive reports whether an executor is live: its lease has not expired, and where
// its lock file can be trusted, its process holds the lock.
func (s *Store) isLive(e *sqlstore.ExecutorRow, now time.Time) bool {
	exists := func() bool { return s.presence.exists(e.ID, e.Presence) }
	return s.sightings.Live(e, store.TimeOf(now), now, exists) && !s.presence.gone(e.ID, e.Presence)
}

// executors returns the registered executors, read once in a transaction.
func (t *tx) executors() ([]sqlstore.ExecutorRow, error) {
	if t.loaded {
		return t.known, nil
	}
	err := t.query(t.s.q.executors, func(c *cells) error {
		t.known = append(t.known, c.executor())
		return nil
	})
	t.loaded = err == nil
	return t.known, err
}

// live reports whether an executor is registered and live.
func (t *tx) live(id string) (bool, error) {
	known, err := t.executors()
	if err != nil {
		return false, err
	}
	for i := range known {
		if known[i].ID == id {
			return t.s.isLive(&known[i], t.clock), nil
		}
	}
	return false, nil
}

// liveSet returns the ids of all live executors.
func (t *tx) liveSet() (map[string]bool, error) {
	known, err := t.executors()
	if err != nil {
		return nil, err
	}
	set := make(map[string]bool, len(known))
	for i := range known {
		set[known[i].ID] = t.s.isLive(&known[i], t.clock)
	}
	return set, nil
}

// Executors implements store.Store.
func (s *Store) Executors(ctx context.Context) ([]store.Executor, error) {
	var list []store.Executor
	err := s.read(ctx, "list executors", func(tx *sqlx.Tx) error {
		list = list[:0]
		rows, err := s.executorRows(ctx, tx)
		if err != nil {
			return err
		}
		now := s.opts.Clock()
		for i := range rows {
			e, err := rows[i].Executor()
			if err != nil {
				return err
			}
			e.Live = s.isLive(&rows[i], now)
			list = append(list, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (s *Store) executorRows(ctx context.Context, tx *sqlx.Tx) (rows []sqlstore.ExecutorRow, err error) {
	err = s.selectAll(ctx, tx, &rows, s.q.executors)
	return rows, err
}

// Beat implements store.Store.
func (s *Store) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	if e.ID == "" || (e.Lease <= 0 && !e.Leaving) {
		return store.Pulse{}, fmt.Errorf("sqlite: executor %q needs an id and a lease: %w", e.ID, store.ErrInvalid)
	}
	serves, err := sqlstore.FormatServed(e.Serves)
	if err != nil {
		return store.Pulse{}, err
	}
	if err := s.checkFiles(ctx); err != nil {
		return store.Pulse{}, err
	}
	// Take the lock before the row becomes visible, so that no observer finds the
	// lock free and believes that an executor is dead which has only just started.
	presence := ""
	if !e.Leaving && !s.opts.ReadOnly {
		presence = s.presence.hold(e.ID)
	}
	said := sqlstore.ExecutorRow{
		ID: e.ID, Name: e.Name, Host: e.Host, Boot: e.Boot, PID: int64(e.PID), Lease: int64(e.Lease / time.Microsecond), Serves: serves, Presence: presence,
	}
	var p store.Pulse
	var gone []string
	err = s.write(ctx, "beat", func(t *tx) (err error) {
		p, gone, err = t.beatOrAgain(&e, said)
		return err
	})
	if err != nil {
		return store.Pulse{}, err
	}
	for _, id := range gone {
		s.presence.remove(id)
	}
	if e.Leaving {
		s.presence.release(e.ID)
	}
	if e.Leaving || len(gone) > 0 {
		s.tellAll() // there are runs that lost their owner
	}
	return p, nil
}

// checkFiles checks whether the files are still those that were opened.
func (s *Store) checkFiles(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.files.Look()
}

// skew returns how far another executor's clock is known to be ahead of this
// process's clock: its beat is committed, but lies in the future.
func (t *tx) skew(self string) (d time.Duration) {
	for i := range t.known {
		if k := &t.known[i]; k.ID != self {
			d = max(d, store.Time(k.BeatAt).Sub(t.now))
		}
	}
	return d
}

// mourn marks the executors whose lock is free, so that their files can be
// removed, and those whose last beat lies in the future and has not been renewed.
func (t *tx) mourn() (gone []string, err error) {
	known, err := t.executors()
	if err != nil {
		return nil, err
	}
	for i := range known {
		k := &known[i]
		expired, dead := t.mourns(k)
		if expired {
			// A process that starts later has not seen that this beat was never
			// renewed, and would believe it.
			ended := int64(t.now) - k.Lease
			if _, _, err := t.exec(t.s.q.executorExpire, k.ID, k.BeatAt, ended); err != nil {
				return nil, err
			}
			k.BeatAt = ended
		}
		if !dead {
			continue
		}
		if _, _, err := t.exec(t.s.q.executorGone, k.ID); err != nil {
			return nil, err
		}
		k.Presence = presenceGone
		gone = append(gone, k.ID)
	}
	return gone, nil
}

// beatOrAgain beats, and looks at what a beat is to find, unless it knows. gone are executors
// whose files can be removed.
func (t *tx) beatOrAgain(e *store.Executor, said sqlstore.ExecutorRow) (p store.Pulse, gone []string, err error) {
	p.Now = t.now
	if !e.Leaving {
		if again, err := t.beatAgain(said, &p); again || err != nil {
			return p, nil, err
		}
	}
	if gone, err = t.mourn(); err != nil {
		return p, nil, err
	}
	p.Skew = t.skew(e.ID)
	if err := t.beat(said, e.Leaving, &p); err != nil || e.Leaving { // who asks for nothing more
		return p, gone, err
	}
	if err = t.pulse(e, &p); err == nil {
		err = t.remember(said, &p)
	}
	return p, gone, err
}

// mourns reports whether the last beat of an executor lies in the future and was not renewed,
// and whether its lock is free and it is not yet marked as gone.
func (t *tx) mourns(k *sqlstore.ExecutorRow) (expired, gone bool) {
	return k.Ahead(t.now) && !t.s.isLive(k, t.clock), k.Presence != presenceGone && t.s.presence.gone(k.ID, k.Presence)
}

// late reports whether the lease of an executor had run out before it beats at now. It learns
// nothing from its own lock, only from a mark that others set.
func late(own *sqlstore.ExecutorRow, now store.Time) bool {
	return !own.Leased(now) || own.Presence == presenceGone
}

func (t *tx) beat(said sqlstore.ExecutorRow, leaving bool, p *store.Pulse) error {
	known, err := t.executors()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(known, func(k sqlstore.ExecutorRow) bool { return k.ID == said.ID })
	p.Late = i >= 0 && late(&known[i], t.now)
	t.s.sightings.Keep(known)
	if leaving {
		t.loaded, t.known = false, nil
		_, _, err := t.exec(t.s.q.executorDelete, said.ID)
		return err
	}
	_, _, err = t.exec(t.s.q.executorBeat, said.ID, said.Name, said.Host, said.Boot, said.PID, said.Lease, said.Serves, int64(t.now), said.Presence)
	if err != nil {
		return err
	}
	if i >= 0 { // what the statement has made of the row
		said.StartedAt, said.BeatAt = known[i].StartedAt, int64(t.now)
		known[i] = said
		return nil
	}
	t.loaded, t.known = false, nil
	return t.sweep(known)
}

// sweepAfter is how long a dead executor without runs stays registered.
const sweepAfter = time.Hour

// sweep removes executors that died long ago, when a new one registers. Those that
// still own runs stay, so that Pulse.Gone and Executors can list them.
func (t *tx) sweep(known []sqlstore.ExecutorRow) error {
	var dead []string
	for i := range known {
		if e := &known[i]; !e.Leased(t.now) && e.BeatAt+e.Lease < int64(t.now.Add(-sweepAfter)) {
			dead = append(dead, e.ID)
		}
	}
	if len(dead) == 0 {
		return nil
	}
	owners := make(map[string]bool)
	if err := t.query(t.s.q.ownedLanes, func(c *cells) error { owners[c.text()] = true; return nil }, int64(t.now)); err != nil {
		return err
	}
	for _, id := range dead {
		if owners[id] {
			continue
		}
		if _, _, err := t.exec(t.s.q.executorDelete, id); err != nil {
			return err
		}
	}
	return nil
}

// pulse fills in what follows from the runs.
func (t *tx) pulse(e *store.Executor, p *store.Pulse) error {
	live, err := t.liveSet()
	if err != nil {
		return err
	}
	gone := make(map[string]struct{})
	err = t.query(t.s.q.ownedLanes, func(c *cells) error {
		owner, workflow, version := c.text(), c.text(), c.text()
		c.next() // the queue
		own, free := store.Time(c.int()), store.Time(c.int())
		next := store.Time(0)
		switch {
		case owner == e.ID:
			next = own
		case !live[owner]:
			if owner != "" {
				gone[owner] = struct{}{}
			}
			if store.Serves(e.Serves, workflow, version) {
				next = free
			}
		}
		t.soon(own)
		if next != 0 && (p.Next == 0 || next < p.Next) {
			p.Next = next
		}
		return nil
	}, int64(t.now))
	if err != nil {
		return err
	}
	for id := range gone {
		p.Gone = append(p.Gone, id)
	}
	slices.Sort(p.Gone)
	if p.Due, err = t.due(e.Serves, live); err != nil {
		return err
	}
	return t.query(t.s.q.mailOfOwn, func(c *cells) error {
		p.Mail = append(p.Mail, store.Mail{RunID: c.text(), Inbox: c.int()})
		return nil
	}, e.ID)
}

// due reports whether an executor with these served workflows could claim a run now.
func (t *tx) due(serves []store.Served, live map[string]bool) (bool, error) {
	lanes, err := t.lanes(serves, live)
	if err != nil || len(lanes) > 0 {
		return len(lanes) > 0, err
	}
	due := false
	err = t.lines(serves, live, func(aisle) error {
		due = true
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return due, err
}

// readyInterrupted is the ready of a lane of interrupted runs.
const readyInterrupted = 3

// lane is a set of ready runs that are equal in everything a claim checks.
type lane struct {
	owner, queue, workflow, version string
	priority                        int64
	ready                           int64 // see the column of that name
}

// lanes returns the lanes with a run that is ready now and that an executor with
// these served workflows may take, highest priority first.
func (t *tx) lanes(serves []store.Served, live map[string]bool) ([]lane, error) {
	var lanes []lane
	err := t.query(t.s.q.lanes, func(c *cells) error {
		l := lane{owner: c.text(), queue: c.text(), workflow: c.text(), version: c.text(), priority: c.int(), ready: c.int()}
		timed := l.ready == 2 || l.ready == 5
		if at := store.Time(c.int()); timed && at > t.now {
			t.soon(at)
			return nil
		}
		if !live[l.owner] && store.Serves(serves, l.workflow, l.version) {
			lanes = append(lanes, l)
		}
		return nil
	})
	slices.SortStableFunc(lanes, func(a, b lane) int { return cmp.Compare(b.priority, a.priority) })
	return lanes, err
}

// markWait bounds how long Close waits for the database to mark executors.
const markWait = time.Second

// markGone marks the executors of this handle that did not leave, and returns
// their ids. Once they are marked, their files can be deleted. If marking fails,
// the files stay, other processes find their locks free and delete them.
func (s *Store) markGone() []string {
	ids := s.presence.held()
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), markWait)
	defer cancel()
	err := s.write(ctx, "mark executors as gone", func(t *tx) error {
		for _, id := range ids {
			if _, _, err := t.exec(t.s.q.executorGone, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return ids
}
