package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// The store of a world has transactions that a step can share (S40). What a body writes in one
// is in the book once its Change is in the store: both happen under one mutex. In some worlds
// nobody else writes meanwhile, as in SQLite; in the others a transaction locks the run that it
// sends a signal to, as in PostgreSQL.

// The places of the life of a transaction that faults can meet.
const (
	aBegin    = "begin"
	aTransact = "transact" // its commit
)

// idle is after how long the database rolls back a transaction that nobody ends.
const idle = time.Minute

// errConflict is what a store answers that has rolled a transaction back because of another one.
var errConflict = errors.New("sim: could not serialize access")

// transactions are those of a world.
type transactions struct {
	sim    *sim
	writer chan struct{} // whoever writes, in a world with one writer, has put something in

	mu      sync.Mutex
	open    map[*sql.Tx]*transaction
	locked  map[string]*transaction  // by the run whose row one has written
	wanted  map[string]int           // by the run: commits that have its row, and wait for others
	late    map[string]chan struct{} // by the run whose next place in the log a commit holds that is in progress
	effects []effect                 // that are in the book
	started map[string]bool          // runs that were started in one: whether it was committed
}

func newTransactions(s *sim) *transactions {
	return &transactions{sim: s, writer: make(chan struct{}, 1), open: map[*sql.Tx]*transaction{}, locked: map[string]*transaction{}, wanted: map[string]int{}, late: map[string]chan struct{}{}, started: map[string]bool{}}
}

// An effect is what the body of a transactional step has written.
type effect struct {
	run, key string
	attempt  int
	good     bool  // its body has succeeded
	seq      int64 // of the outcome that it was committed with
}

// A transaction is a store.Tx.
type transaction struct {
	link   *link
	all    *transactions
	handle *sql.Tx // says which one it is, and no more
	limit  *time.Timer
	ended  chan struct{} // closed at its end
	over   bool          // its Commit was called

	// Under all.mu.
	effects []effect
	start   []store.Change
	send    []store.Message
}

var _ store.Transactor = (*link)(nil)

// OneWriter implements store.Transactor.
func (l *link) OneWriter() bool { return l.process.sim.world.OneWriter }

// BeginTx implements store.Transactor.
func (l *link) BeginTx(ctx context.Context) (store.Tx, error) {
	all := l.process.sim.txs
	t := &transaction{link: l, all: all, handle: new(sql.Tx), ended: make(chan struct{})}
	err := l.call(ctx, func() error {
		if l.OneWriter() {
			if err := all.takeWriter(ctx); err != nil {
				return err
			}
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		all.open[t.handle] = t
		t.limit = time.AfterFunc(idle, t.times)
		return nil
	}, aBegin)
	if err == nil {
		if err = l.down(); err != nil { // what ended meanwhile was not told of it
			err = errors.Join(err, errNoConnection)
		}
	}
	if err != nil {
		t.drop()
		return nil, err
	}
	return t, nil
}

func (all *transactions) takeWriter(ctx context.Context) error {
	select {
	case all.writer <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn waits until a Change of these runs can be written: no transaction has written to their
// rows, and no commit in progress has their next place. In a world with one writer it becomes
// that one. No runs: the caller chooses them. Meanwhile it has the rows that were free, as a statement
// has that waits for one more: no other transaction gets them.
func (all *transactions) turn(ctx context.Context, runs ...string) (done func(), err error) {
	got := map[string]bool{}
	release := func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		for run := range got {
			all.wanted[run]--
		}
	}
	for {
		all.mu.Lock()
		var before <-chan struct{}
		for run, landing := range all.late {
			if len(runs) == 0 || slices.Contains(runs, run) {
				before = landing
			}
		}
		for _, run := range runs {
			switch t := all.locked[run]; {
			case t != nil:
				before = t.ended
			case !got[run]:
				got[run] = true
				all.wanted[run]++
			}
		}
		all.mu.Unlock()
		if before == nil {
			break
		}
		select {
		case <-before:
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	if !all.sim.world.OneWriter {
		return release, nil
	}
	if err := all.takeWriter(ctx); err != nil {
		release()
		return nil, err
	}
	return func() { release(); <-all.writer }, nil
}

// drop rolls t back, as the database does with one whose connection is lost.
func (t *transaction) drop() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.end()
}

// end ends t, and reports whether it was open. The mutex is held.
func (t *transaction) end() bool {
	if t.all.open[t.handle] != t {
		return false
	}
	delete(t.all.open, t.handle)
	for run, by := range t.all.locked {
		if by == t {
			delete(t.all.locked, run)
		}
	}
	t.limit.Stop()
	close(t.ended)
	if t.link.OneWriter() {
		<-t.all.writer
	}
	return true
}

// times rolls back a transaction that nobody ends.
func (t *transaction) times() {
	if s := t.all.sim; !s.world.slow() && !t.link.isDead() {
		s.fail("p%d has a transaction open for %s", t.link.process.n, idle)
	}
	t.drop()
}

// dropAll rolls back what a process has open.
func (all *transactions) dropAll(l *link) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, t := range all.open {
		if t.link == l {
			t.end()
		}
	}
}

// of returns the open transaction of a handle; nil: it has ended.
func (all *transactions) of(handle *sql.Tx) *transaction {
	return all.open[handle]
}

// Handle implements store.Tx.
func (t *transaction) Handle() any { return t.handle }

// Rollback implements store.Tx.
func (t *transaction) Rollback() error {
	t.drop()
	return nil
}

// Again implements store.Tx.
func (t *transaction) Again(err error) bool {
	return !errors.Is(err, store.ErrUnknown) && (errors.Is(err, errNoConnection) || errors.Is(err, errConflict))
}

// Commit implements store.Tx.
func (t *transaction) Commit(c store.Change) error {
	if t.over {
		t.link.process.sim.fail("%s: a transaction is ended twice", c.RunID)
		return store.ErrInvalid
	}
	t.over = true
	t.limit.Stop()
	landing := false
	err := t.link.callOr(context.Background(), func() error { return t.land(&c) }, func(f *Fault) (bool, error) {
		switch f.Do {
		case Late:
			landing = true
			t.lands(f, &c)
			return true, store.ErrUnknown
		case Conflict:
			return true, errConflict
		}
		return false, nil
	}, append(typesOf([]store.Change{c}), aTransact)...)
	if !landing {
		t.drop()
	}
	return err
}

// lands has a commit be in progress for a while. Of those that do not hold their place in the log
// a rival may come first; some are rolled back in the end.
func (t *transaction) lands(f *Fault, c *store.Change) {
	all, s := t.all, t.all.sim
	after := f.For
	if s.world.OneWriter {
		after = min(after, 5*time.Second)
	}
	var landed chan struct{}
	all.mu.Lock()
	if f.Nth%2 == 1 && all.late[c.RunID] == nil {
		landed = make(chan struct{})
		all.late[c.RunID] = landed
	}
	t.link = &link{Store: t.link.Store, process: t.link.process} // that of the server, which no outage cuts
	all.mu.Unlock()
	s.background(func() {
		time.Sleep(after)
		err := errConflict
		if f.Nth%4 != 0 {
			err = t.land(c)
		}
		s.note("a commit of %s in progress has landed: %v", c.RunID, err)
		t.drop()
		if landed != nil {
			all.mu.Lock()
			delete(all.late, c.RunID)
			all.mu.Unlock()
			close(landed)
		}
	})
}

// land commits t together with c.
func (t *transaction) land(c *store.Change) error {
	s, all := t.all.sim, t.all
	if t.link.denies() {
		return errDenied
	}
	s.order.Lock()
	defer s.order.Unlock()
	all.mu.Lock()
	open, by := all.of(t.handle) == t, all.locked[c.RunID]
	effects, merged := t.effects, *c
	merged.Start = slices.Concat(c.Start, t.start)
	merged.Send = slices.Concat(c.Send, t.send)
	all.mu.Unlock()
	if !open {
		return errNoConnection
	}
	if by != nil && by != t {
		return errConflict // two that wait for each other
	}
	if err := s.didAlready(c); err != nil {
		return err
	}
	wrong := s.askEffects(c, effects)
	err := s.data.Commit(context.Background(), []store.Change{merged})[0]
	if err != nil {
		return err
	}
	if wrong != "" {
		s.fail("%s: %s", c.RunID, wrong)
	}
	all.mu.Lock()
	for _, e := range effects {
		e.seq = c.Mark()
		all.effects = append(all.effects, e)
	}
	for i := range t.start {
		all.started[t.start[i].RunID] = true
	}
	t.end()
	all.mu.Unlock()
	s.committed(&merged)
	s.parks(t.link.process, &merged)
	s.askLine()
	s.askKey()
	return nil
}

// didAlready refuses a Change that was carried out before: the rest of its transaction would
// happen twice.
func (s *sim) didAlready(c *store.Change) error {
	h, err := s.data.Load(context.Background(), c.RunID, store.Cursor{After: c.Mark() - 1, All: true})
	if err != nil {
		return err
	}
	for e, err := range h.Events {
		if err == nil && c.Did(&e) {
			return fmt.Errorf("sim: %s has event %d: %w", c.RunID, e.Seq, store.ErrFenced)
		}
		break
	}
	return nil
}

// CommitIn implements store.TxCommitter.
func (l *link) CommitIn(ctx context.Context, tx any, c store.Change) error {
	if err := l.down(); err != nil {
		return errors.Join(errNoConnection, err)
	}
	all := l.process.sim.txs
	s := all.sim
	s.order.Lock()
	defer s.order.Unlock()
	all.mu.Lock()
	defer all.mu.Unlock()
	handle, _ := tx.(*sql.Tx)
	t := all.of(handle)
	if t == nil {
		return errNoConnection
	}
	for i := range c.Send {
		to := c.Send[i].To
		if by := all.locked[to]; by != nil && by != t || by == nil && all.wanted[to] > 0 {
			return errConflict // or a deadlock, which the database sees
		}
		h, err := s.data.Load(ctx, to, store.Cursor{NoEvents: true})
		switch {
		case err != nil:
			return err
		case h.Run.Status.Terminal():
			return &store.StatusError{RunID: to, Status: h.Run.Status}
		}
		all.locked[to] = t
	}
	for i := range c.Start {
		all.started[c.Start[i].RunID] = false
	}
	t.start, t.send = append(t.start, c.Start...), append(t.send, c.Send...)
	return nil
}
