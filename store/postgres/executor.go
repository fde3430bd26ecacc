package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// census is the state of all executors at one moment of the server's clock.
type census struct {
	now  store.Time
	rows []sqlstore.ExecutorRow // oldest first
	live map[string]bool
	gone []string // own runs and are not live
	// wait is the time until it is known whether executors that own runs are
	// gone; 0: nothing is in doubt.
	wait time.Duration

	look   look
	owners string // of runs, as JSON
}

func (c *census) isLive(id string) bool { return c.live[id] }

// free returns the owners whose runs may be claimed, including the empty owner.
func (c *census) free() driverValue { return texts(append([]string{""}, c.gone...)...) }

// census reads all executors. There are few.
func (s *Store) census(q querier) (*census, error) {
	c := newCensus()
	if err := q.query(executorsBy(s.PresenceKind()), c.add); err != nil {
		return nil, err
	}
	return c, s.decideLive(c)
}

// executorsBy returns the name of the statement that reads all executors.
func executorsBy(presence string) string {
	if presence != "" {
		return "executors"
	}
	return "executors_portable"
}

func newCensus() *census {
	return &census{live: map[string]bool{}, look: look{began: time.Now()}}
}

// add reads a row of the statement.
func (c *census) add(v []driverValue) error {
	sc := scanner{v: v}
	c.now, c.look.up = store.Time(sc.int()), store.Time(sc.int())
	locks := sc.text()
	if c.look.held == nil {
		c.look.held = lockKeys(locks)
	}
	c.owners = sc.text()
	if v[4] == nil {
		return sc.err
	}
	c.rows = append(c.rows, sqlstore.ExecutorRow{
		ID: sc.text(), Name: sc.text(), Host: sc.text(), Boot: sc.text(), PID: sc.int(), Lease: sc.int(), Serves: sc.text(),
		StartedAt: sc.int(), BeatAt: sc.int(), Presence: sc.text(),
	})
	return sc.err
}

// decideLive decides which of the executors that were read are live.
func (s *Store) decideLive(c *census) error {
	if err := json.Unmarshal([]byte(c.owners), &c.gone); err != nil {
		return fmt.Errorf("postgres: list of owners: %w", err)
	}
	l := c.look
	l.answers = time.Now()
	for i := range c.rows {
		r := &c.rows[i]
		c.live[r.ID] = s.sightings.Live(r, c.now, l.answers, nil)
		if !c.live[r.ID] || s.PresenceKind() == "" {
			continue
		}
		gone, wait := s.suspects.gone(r, l, c.now)
		c.live[r.ID] = !gone
		if wait > 0 && slices.Contains(c.gone, r.ID) && (c.wait == 0 || wait < c.wait) {
			c.wait = wait
		}
	}
	s.suspects.keep(c.rows)
	s.sightings.Keep(c.rows)
	c.gone = slices.DeleteFunc(c.gone, c.isLive)
	return nil
}

func lockKeys(list string) map[int64]bool {
	keys := map[int64]bool{}
	for _, f := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		if n, err := strconv.ParseInt(f, 10, 64); err == nil {
			keys[n] = true
		}
	}
	return keys
}

// Beat implements store.Store.
func (s *Store) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	if e.ID == "" || (e.Lease <= 0 && !e.Leaving) {
		return store.Pulse{}, fmt.Errorf("postgres: executor %q needs an id and a lease: %w", e.ID, store.ErrInvalid)
	}
	serves, err := sqlstore.FormatServed(e.Serves)
	if err != nil {
		return store.Pulse{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Pulse{}, err
	}
	defer s.calls.Done()
	var p store.Pulse
	late := false // also if an attempt that has renewed the lease failed, or got no answer
	// A beat may be repeated as often as needed: it says only that the executor
	// is alive.
	err = s.again(ctx, func(w *wire) (err error) {
		w.ctx = ctx
		p = store.Pulse{}
		defer func() {
			late = late || p.Late || unanswered(err)
			p.Late = late
		}()
		var until int64
		switch {
		case e.Leaving:
			until, err = s.leave(w, &p, e.ID)
		case s.genuine:
			b := beating{store: s, executor: e, said: s.said(e, serves)}
			return b.beatAndLook(w, &p)
		default:
			until, err = s.beat(w, &p, s.said(e, serves))
		}
		if err != nil {
			return err
		}
		s.counts.commits.Add(1)
		p.Late = p.Late || (until != 0 && int64(p.Now) >= until)
		if e.Leaving {
			return nil // whoever leaves asks for nothing
		}
		all, err := s.census(w)
		if err == nil {
			err = expire(w, all)
		}
		if err != nil {
			return err
		}
		return s.look(w, &p, e, all)
	})
	if err == nil && e.Leaving {
		s.notices.tellAll() // its runs are free
	}
	return p, described(fmt.Sprintf("beat of executor %s", e.ID), err)
}

// said is what an executor says of itself, as executor_beat takes it.
func (s *Store) said(e store.Executor, serves string) []driverValue {
	presence := ""
	if s.PresenceKind() != "" {
		presence = s.listener.present(e.ID)
	}
	return []driverValue{
		e.ID, store.CleanText(e.Name), store.CleanText(e.Host), store.CleanText(e.Boot), int64(e.PID), int64(e.Lease / time.Microsecond), serves, presence,
	}
}

func (s *Store) beat(w *wire, p *store.Pulse, said []driverValue) (until int64, err error) {
	registers := true
	err = w.query("executor_beat", func(v []driverValue) error {
		p.Now = store.Time(v[0].(int64))
		until, registers = 0, true
		if v[1] != nil {
			until, registers = v[1].(int64), false
		}
		return nil
	}, said...)
	if err == nil && registers {
		_, err = w.exec("forget_executors")
	}
	return until, err
}

func (s *Store) leave(w *wire, p *store.Pulse, id string) (until int64, err error) {
	if s.listener != nil {
		s.listener.absent(id)
	}
	err = w.query("executor_delete", func(v []driverValue) error {
		p.Now = store.Time(v[0].(int64))
		if v[1] != nil {
			until = v[1].(int64)
		}
		return nil
	}, id)
	return until, err
}

// look fills in what follows from the runs.
func (s *Store) look(w *wire, p *store.Pulse, e store.Executor, all *census) error {
	workflows, versions := pairs(e.Serves)
	err := w.query("look", func(v []driverValue) error {
		find(p, v[0].(string), v[1].(string), v[2].(int64))
		return nil
	}, int64(all.now), all.free(), workflows, versions, e.ID)
	all.tell(p)
	return err
}

// find adds to a pulse what look has found.
func find(p *store.Pulse, kind, name string, n int64) {
	switch kind {
	case "mail":
		p.Mail = append(p.Mail, store.Mail{RunID: name, Inbox: n})
	case "next":
		if p.Next == 0 || store.Time(n) < p.Next {
			p.Next = store.Time(n)
		}
	case "due":
		p.Due = true
	}
}

// tell adds to a pulse what follows from the executors.
func (c *census) tell(p *store.Pulse) {
	p.Gone = c.gone // sorted by the index
	if again := p.Now.Add(c.wait); c.wait > 0 && (p.Next == 0 || again < p.Next) {
		p.Next = again
	}
}

// expire records the death of executors whose last beat lies in the future: a
// process that starts later has not seen that the beat was never renewed, and
// would believe it.
func expire(w *wire, all *census) error {
	for i := range all.rows {
		r := &all.rows[i]
		if all.isLive(r.ID) || !r.Ahead(all.now) {
			continue
		}
		if _, err := w.exec("executor_expire", r.ID, r.BeatAt, int64(all.now)-r.Lease); err != nil {
			return err
		}
	}
	return nil
}

// pairs returns served workflows and versions as two arrays.
func pairs(served []store.Served) (workflows, versions driverValue) {
	var ws, vs array
	seen := map[[2]string]bool{}
	for _, s := range served {
		for _, v := range s.Versions {
			pair := [2]string{s.Workflow, v}
			if !holdable(s.Workflow) || !holdable(v) || seen[pair] {
				continue
			}
			seen[pair] = true
			ws.text(s.Workflow)
			vs.text(v)
		}
	}
	return ws.value(), vs.value()
}

// Executors implements store.Store.
func (s *Store) Executors(ctx context.Context) ([]store.Executor, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	var list []store.Executor
	err := s.again(ctx, func(w *wire) error {
		w.ctx = ctx
		all, err := s.census(w)
		if err != nil {
			return err
		}
		list = make([]store.Executor, 0, len(all.rows))
		for i := range all.rows {
			e, err := all.rows[i].Executor()
			if err != nil {
				return err
			}
			e.Live = all.live[e.ID]
			list = append(list, e)
		}
		return nil
	})
	return list, described("list executors", err)
}

// again runs f, which must be safe to repeat, until it succeeds or fails with an
// error that repeating does not cure.
func (s *Store) again(ctx context.Context, f func(*wire) error) error {
	return s.retry(ctx, f, func(err error) bool { return faultOf(err).lasts() })
}

// retry is again, with what is final said by the caller.
func (s *Store) retry(ctx context.Context, f func(*wire) error, final func(error) bool) error {
	start, cause := time.Now(), error(nil)
	for try := 0; ; try++ {
		err := s.write(ctx, f)
		switch {
		case err == nil || final(err) || time.Since(start) > patience:
			return after(cause, err)
		case ctx.Err() == nil:
			cause = err
		}
		if e := pause(ctx, s.closing, jitter(try)); e != nil {
			return after(cause, e)
		}
	}
}
