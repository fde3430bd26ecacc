package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// patience is how long Commit keeps resending a batch through lost connections
// and conflicts before it returns the error to the caller.
const patience = 8 * time.Second

// member is a Change being committed.
type member struct {
	c       *store.Change
	no      int64 // run number; 0: not known, or not assigned yet
	asOf    int64 // updated_at of the row, for a swift Change without events
	decided bool
	err     error // the verdict
	unknown bool  // it was sent and the answer was lost
	found   bool  // decided by what an earlier attempt has written: see assure
	renewed int   // how often its run number was out of date
}

func (m *member) decide(err error) { m.decided, m.err = true, err }

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, batch []store.Change) []error {
	if len(batch) == 0 {
		return []error{}
	}
	if err := s.enter(ctx); err != nil {
		return slices.Repeat([]error{err}, len(batch))
	}
	defer s.calls.Done()
	errs, _ := sqlstore.Screen(batch, s.limits)
	all := make([]member, len(batch))
	var todo []*member
	for i := range batch {
		if errs[i] = cmp.Or(errs[i], checkTexts(&batch[i])); errs[i] == nil {
			all[i].c = &batch[i]
			todo = append(todo, &all[i])
		}
	}
	for part := range s.portions(todo) {
		s.deliver(ctx, part)
	}
	for i := range all {
		if all[i].c != nil {
			errs[i] = all[i].err
		}
	}
	return errs
}

// portions splits a batch into the parts that are sent at a time. Beyond
// Limits.Batch bytes batching gains nothing, and the server closes the
// connection on a message of a gigabyte.
func (s *Store) portions(members []*member) iter.Seq[[]*member] {
	return func(yield func([]*member) bool) {
		from, size := 0, 0
		for i := 0; i < len(members) && len(members) > 1; i++ {
			n := members[i].c.Size()
			if size += n; size > s.limits.Batch && i > from {
				if !yield(members[from:i]) {
					return
				}
				from, size = i, n
			}
		}
		if from < len(members) {
			yield(members[from:])
		}
	}
}

// deliver carries members out. Members of runs that were recently held up come
// last and wait only briefly, so that the others do not meet the same lock again.
func (s *Store) deliver(ctx context.Context, members []*member) {
	free, suspects := s.heldUp.apart(members)
	s.carryOut(ctx, free)
	if len(suspects) > 0 {
		s.leaveBehind(s.passBy(ctx, suspects), suspects, len(free) > 0)
		s.carryOut(ctx, undecided(suspects))
	}
}

// carryOut sends members until each has its verdict. It resends a member
// unchanged. If an attempt whose answer was lost carried the Change out, its
// last event shows that (S6). If such an attempt is still in progress, it holds
// its place in the log, and the next attempt waits there for it.
func (s *Store) carryOut(ctx context.Context, members []*member) {
	start := time.Now()
	for try := 0; ; try++ {
		todo := undecided(members)
		if len(todo) == 0 {
			return
		}
		err := s.attempt(ctx, todo, 0)
		if err == nil {
			continue // the remaining members met a concurrent change
		}
		f := faultOf(err)
		locked := lockTimedOut(err)
		if locked && len(todo) > 1 {
			s.leaveBehind(s.passBy(ctx, todo), todo, false)
			if todo = undecided(todo); len(todo) == 0 {
				return
			}
		}
		// Sending each member alone finds the one that makes the rest fail (S2).
		alone := f.lasts() || (f != faultLost && f != faultBusy && !locked && try >= 3)
		if alone && len(todo) > 1 && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
			for _, m := range todo {
				s.carryOut(ctx, []*member{m})
			}
			return
		}
		final := f.lasts() || (f == faultConflict && try >= 6) || time.Since(start) > patience
		if !final {
			final = pause(ctx, s.closing, jitter(try)) != nil
		}
		if final {
			giveUp(todo, err)
			return
		}
	}
}

func undecided(members []*member) []*member {
	var todo []*member
	for _, m := range members {
		if !m.decided {
			todo = append(todo, m)
		}
	}
	return todo
}

// giveUp sets the verdict of members that could not be carried out.
func giveUp(members []*member, err error) {
	for _, m := range members {
		if m.unknown {
			m.decide(fmt.Errorf("postgres: commit for run %q: %w: %w", m.c.RunID, store.ErrUnknown, err))
			continue
		}
		m.decide(described(fmt.Sprintf("commit for run %q", m.c.RunID), err))
	}
}

// attempt sends members once. It decides those it can; an error concerns all
// the others. They wait for each lock as long as the session's settings say, or
// for wait if that is not 0.
func (s *Store) attempt(ctx context.Context, members []*member, wait time.Duration) error {
	err := s.write(ctx, func(w *wire) error {
		w.lockWait = wait
		return assure(w, members, s.send(ctx, w, members))
	})
	if unanswered(err) {
		for _, m := range undecided(members) {
			m.unknown = true
		}
	}
	return err
}

func (s *Store) send(ctx context.Context, w *wire, members []*member) error {
	once := w.lockWait == 0 // it is set within a transaction
	if err := s.findNumbers(w, members, once); err != nil {
		return err
	}
	members = undecided(members)
	plain := true
	for _, m := range members {
		plain = plain && m.c.Plain()
	}
	switch {
	case len(members) == 0:
		return nil
	case !once:
	case plain && len(members) == 1 && len(members[0].c.Events) == 1:
		return s.appendOne(w, members[0])
	case plain:
		return s.appendPlain(w, members)
	default:
		left, err := s.carryOnce(w, members)
		if err != nil || len(left) == 0 {
			return err
		}
		members = left
	}
	return s.transact(ctx, w, members)
}

// assure acknowledges what was found only when the synchronous replicas have it: what an earlier attempt
// has written, and the run of another that stands for one that was to be created. Without an assurance
// the Changes are open again. err is that of the attempt.
func assure(w *wire, members []*member, err error) error {
	var found []*member
	for _, m := range members {
		if m.decided && (m.err == nil && (m.found || m.unknown && len(m.c.Events) == 0) || errors.Is(m.err, store.ErrExists)) {
			found = append(found, m)
		}
	}
	if err == nil && len(found) > 0 {
		err = w.replicated()
	}
	if err != nil {
		for _, m := range found {
			m.unknown = m.unknown || m.err == nil
			m.found, m.decided, m.err = false, false, nil
		}
	}
	return err
}

// replicated waits until the synchronous replicas have what this connection can read. A session that is
// ended while its commit waits for them leaves a commit that the server shows and they lack. A later
// commit waits for all before it, so one is made.
func (w *wire) replicated() error {
	if w.tx != nil {
		w.rollback()
	}
	// Where the context ends first, the server gives the wait up and answers that it has committed.
	return cmp.Or(w.query("replicated", func([]driverValue) error { return nil }), w.ctx.Err())
}

// findNumbers looks up the run numbers that are not cached: of the plain members, and of those
// that carry writes by number. A Change that creates its run has none yet, and in a transaction
// the number comes with the row. For a Change without events it reads the row's updated_at as well.
func (s *Store) findNumbers(q querier, members []*member, once bool) error {
	var ids array
	missing := map[string]*member{}
	for _, m := range members {
		carried := once && (swift(m.c) || received(m.c))
		if !m.c.Plain() && !carried {
			continue
		}
		if row := carried && alone(m.c); !row {
			if m.no != 0 {
				continue
			}
			if no, ok := s.numbers.get(m.c.RunID); ok {
				m.no = no
				continue
			}
		}
		ids.text(m.c.RunID)
		missing[m.c.RunID] = m
	}
	if len(missing) == 0 {
		return nil
	}
	err := q.query("run_numbers", func(r []driverValue) error {
		id, no := r[0].(string), r[1].(int64)
		missing[id].no, missing[id].asOf = no, r[2].(int64)
		s.numbers.put(id, no)
		delete(missing, id)
		return nil
	}, ids.value())
	if err != nil {
		return err
	}
	for id, m := range missing {
		m.decide(sqlstore.NotFound(id))
	}
	return nil
}

// appendOne is the plain checkpoint: one statement, one round trip.
func (s *Store) appendOne(w *wire, m *member) error {
	e := &m.c.Events[0]
	var memory [15]driverValue
	args := appendEventValues(append(memory[:0], m.no, e.Seq, m.c.Expect.Epoch), e)
	n, err := w.exec("append", args...)
	if err != nil && faultOf(err) != faultConflict {
		return err
	}
	if err == nil && n == 1 {
		s.counts.commits.Add(1)
		m.decide(nil)
		return nil
	}
	return s.readBack(w, []*member{m})
}

// appendPlain is a batch of plain checkpoints: one statement.
func (s *Store) appendPlain(w *wire, members []*member) error {
	written, err := appendEvents(w, members)
	if err != nil {
		return err
	}
	if len(written) > 0 {
		s.counts.commits.Add(1)
	}
	var left []*member
	for _, m := range members {
		if written[m.no] {
			m.decide(nil)
		} else {
			left = append(left, m)
		}
	}
	return s.readBack(w, left)
}

// appendEvents writes the events of members and returns the numbers of the runs
// that got theirs.
func appendEvents(q querier, members []*member) (map[int64]bool, error) {
	var a [17]array
	for _, m := range members {
		addEvents(&a, m)
	}
	written := make(map[int64]bool, len(members))
	err := q.query("append_many", func(r []driverValue) error {
		written[r[0].(int64)] = true
		return nil
	}, values(a[:])...)
	return written, err
}

// addEvents adds the events of a member, and what must come before them.
func addEvents(a *[17]array, m *member) {
	c := m.c
	if len(c.Events) == 0 {
		return
	}
	pred, fence := c.Events[0].Seq-1, c.Expect.Epoch
	if c.Expect.TakeEpoch {
		fence = 0 // the row was checked, under its lock
	}
	for i := range c.Events {
		addEvent(a, m.no, c.EventEpoch(i), &c.Events[i])
		a[15].int(pred)
		a[16].int(fence)
	}
}

func addEvent(a *[17]array, no, epoch int64, e *store.Event) {
	a[0].int(no)
	addEventValues(a[1:], epoch, e)
}

// addEventValues adds the columns of an event that follow its run.
func addEventValues(a []array, epoch int64, e *store.Event) {
	a[0].int(e.Seq)
	a[1].int(epoch)
	a[2].int(int64(e.Branch))
	a[3].text(string(e.Type))
	a[4].text(e.Key)
	a[5].int(int64(e.Attempt))
	a[6].int(int64(e.Ordinal))
	a[7].int(int64(e.At))
	a[8].int(int64(e.Took / time.Microsecond))
	a[9].int(int64(e.Active / time.Microsecond))
	a[10].int(int64(e.Steps))
	a[11].textOrNull(e.Data)
	a[12].bytes(e.Payload)
	a[13].int(int64(e.Sum))
}

// readBack decides members whose events were not written: they were carried out
// earlier (S6) or fenced, or the run does not exist. A member whose run number
// was out of date stays undecided.
func (s *Store) readBack(q querier, members []*member) error {
	if len(members) == 0 {
		return nil
	}
	var ords, ids, seqs array
	for i, m := range members {
		ords.int(int64(i))
		ids.text(m.c.RunID)
		seqs.int(m.c.Mark()) // every member here has events
	}
	return q.query("read_back", func(r []driverValue) error {
		m := members[r[0].(int64)]
		no, exists := r[1].(int64)
		epoch, there := r[2].(int64)
		switch {
		case !exists:
			s.numbers.forget(m.c.RunID)
			m.decide(sqlstore.NotFound(m.c.RunID))
		case there && m.c.Did(&store.Event{Seq: m.c.Mark(), Epoch: epoch, Sum: uint32(r[3].(int64))}):
			clear(m.c.Sent)
			m.found = true
			m.decide(nil)
		case m.no != no && m.renewed < 2:
			m.no = no
			m.renewed++
			s.numbers.put(m.c.RunID, no)
		case m.c.Create != nil:
			m.decide(&store.ExistsError{RunID: m.c.RunID})
		default:
			m.decide(sqlstore.FencedAt(m.c))
		}
		return nil
	}, ords.value(), ids.value(), seqs.value())
}

// holdable reports whether a text column can hold s. A text that it cannot hold
// names nothing in the store.
func holdable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// names returns the holdable elements of a list as an array.
func names[T ~string](list ...T) driverValue {
	var a array
	for _, s := range list {
		if holdable(string(s)) {
			a.text(string(s))
		}
	}
	return a.value()
}

// checkTexts refuses what a text column cannot hold: bytes that are not UTF-8,
// and NUL. Payloads are bytes and may hold anything; reasons are for people,
// and are cleaned where they are written.
func checkTexts(c *store.Change) error {
	bad := func(what, s string) error {
		if holdable(s) {
			return nil
		}
		return fmt.Errorf("postgres: run %q: %s %.80q is not UTF-8 without NUL: %w", c.RunID, what, s, store.ErrInvalid)
	}
	for i := range c.Events {
		e := &c.Events[i]
		if !utf8.Valid(e.Data) || !holdable(e.Key) || !holdable(string(e.Type)) || bytes.IndexByte(e.Data, 0) >= 0 {
			return errors.Join(bad("data", string(e.Data)), bad("key", e.Key), bad("type", string(e.Type)))
		}
	}
	var errs []error
	for i := range c.Send {
		m := &c.Send[i]
		errs = append(errs, bad("message data", string(m.Data)), bad("message kind", string(m.Kind)), bad("message name", m.Name), bad("message id", m.ID))
	}
	if r := c.Create; r != nil {
		for _, s := range []string{r.Workflow, r.InitialVersion, r.Parent, r.ParentKey, r.ForkedFrom, r.Queue, r.Partition, r.Dedup, r.Trace, r.Version, r.Code, r.Owner} {
			errs = append(errs, bad("field", s))
		}
		errs = append(errs, badAttributes(r.Attributes, bad))
	}
	if p := c.Row; p != nil {
		for _, s := range []*string{p.Version, p.Code} {
			if s != nil {
				errs = append(errs, bad("field", *s))
			}
		}
		errs = append(errs, badAttributes(p.Attributes, bad))
	}
	if b := c.Branch; b != nil {
		errs = append(errs, bad("cut scope", b.CutScope))
	}
	for _, key := range c.Hold {
		errs = append(errs, bad("exclusive key", key))
	}
	for i := range c.Start {
		errs = append(errs, checkTexts(&c.Start[i]))
	}
	return errors.Join(errs...)
}

func badAttributes(attributes map[string]string, bad func(what, s string) error) error {
	for name, value := range attributes {
		if err := errors.Join(bad("attribute name", name), bad("attribute", value)); err != nil {
			return err
		}
	}
	return nil
}
