package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Requests = (*Store)(nil)

// asked is a request that is being answered.
type asked struct {
	store.Request
	member *member // nil: it is refused before it is tried
	err    error   // why
	left   bool    // for another time
}

// DrainRequests implements store.Requests. Engines that drain at the same time pass by
// what another one has taken, and leave what follows it for the same run.
func (s *Store) DrainRequests(ctx context.Context, d store.Drain) (out store.Drained, err error) {
	if err := s.enter(ctx); err != nil {
		return out, err
	}
	defer s.calls.Done()
	if d.Max <= 0 {
		return out, nil
	}
	if d.After == 0 {
		d.After = math.MinInt64 // whoever inserts may choose a number
	}
	waiting := false
	err = s.again(ctx, func(w *wire) error {
		w.ctx = ctx
		return w.query("requests_waiting", func(v []driverValue) error { waiting = v[0].(bool); return nil }, d.After)
	})
	if err != nil || !waiting {
		return out, described("look for requests", err)
	}
	out, err = s.drain(ctx, &d, 0)
	if err != nil && d.Max > 1 && ctx.Err() == nil && singled(err) {
		// One of them may be to blame.
		out, err = s.drainSingly(ctx, d)
	}
	return out, described("answer requests", err)
}

// singled reports whether one request of several may have caused an error that the
// others need not meet.
func singled(err error) bool {
	switch f := faultOf(err); f {
	case faultData, faultConflict:
		return true
	case faultOther:
		return sqlState(err) != ""
	default:
		return lockTimedOut(err)
	}
}

// drainSingly answers requests one by one. Those that cannot be answered now are
// left.
func (s *Store) drainSingly(ctx context.Context, d store.Drain) (out store.Drained, err error) {
	one := d
	one.Max = 1
	for range d.Max {
		got, e := s.drain(ctx, &one, shortWait)
		switch {
		case e == nil:
		case got.Last == 0 || !singled(e):
			return out, errors.Join(err, e) // none is to blame
		case faultOf(e) == faultData || errors.Is(e, store.ErrTooLarge):
			if e := s.answerBad(ctx, got.Last, described("the request", e)); e != nil {
				return out, e
			}
		default:
			got.Left = true
			if !lockTimedOut(e) && faultOf(e) != faultConflict {
				err = e
			}
		}
		out.Answers, out.Left = append(out.Answers, got.Answers...), out.Left || got.Left
		if one.After, out.Last = got.Last, got.Last; got.Last == 0 {
			break
		}
	}
	return out, err
}

// drain answers requests in one transaction. It waits for each lock as long as the
// session's settings say, or for wait if that is not 0. After an error, Last says how
// far it would have come; 0 if nothing was taken.
func (s *Store) drain(ctx context.Context, d *store.Drain, wait time.Duration) (out store.Drained, err error) {
	err = s.retry(ctx, func(w *wire) error {
		out = store.Drained{}
		w.lockWait = wait
		if err := w.begin(); err != nil {
			return err
		}
		w.ctx = ctx
		list, last, more, err := s.takeRequests(w, d)
		if err != nil || len(list) == 0 {
			return err
		}
		out.Last = last
		drafted, refused, err := s.tryRequests(w, d, list)
		w.ctx = context.Background()
		if err != nil {
			return err
		}
		if err := s.answerRequests(w, drafted, list, refused); err != nil {
			return err
		}
		if err := w.commit(); err != nil {
			return err
		}
		for _, r := range list {
			if r.left {
				out.Left = true
				continue
			}
			out.Answers = append(out.Answers, r.answer(refused))
		}
		if !more {
			out.Last = 0
		}
		s.remember(drafted)
		s.notices.tell(drafted.News())
		return nil
	}, func(err error) bool {
		return faultOf(err).lasts() || lockTimedOut(err)
	})
	return out, err
}

// takeRequests locks the requests to answer and reads them. last is the number of the
// last one, and more says that there may be others behind it.
func (s *Store) takeRequests(w *wire, d *store.Drain) (list []*asked, last int64, more bool, err error) {
	var nos []int64
	size, full := int64(0), false
	huge := map[int64]bool{}
	err = w.query("requests_take", func(v []driverValue) error {
		no, n := v[0].(int64), v[1].(int64)
		if huge[no] = n > int64(s.limits.Batch); huge[no] {
			n = 0 // it is not read
		}
		if full = full || (len(nos) > 0 && size+n > int64(s.limits.Batch)); !full {
			nos, size, last = append(nos, no), size+n, no
		}
		return nil
	}, d.After, names(d.Serves...), d.Leave.Microseconds(), int64(d.Max))
	if err != nil || len(nos) == 0 {
		return nil, 0, false, err
	}
	read := slices.DeleteFunc(slices.Clone(nos), func(no int64) bool { return huge[no] })
	rows := map[int64]*asked{}
	if err := w.query("requests_read", func(v []driverValue) error {
		sc := scanner{v: v}
		r := &asked{Request: store.Request{
			No: sc.int(), Kind: store.RequestKind(sc.text()), RunID: sc.text(), Workflow: sc.text(), Version: sc.text(), Queue: sc.text(), Partition: sc.text(),
			Dedup: sc.text(), Priority: int32(sc.int()), WakeAt: store.Time(sc.int()), Attributes: sc.text(), Headers: sc.text(), Input: sc.text(), Name: sc.text(),
			ID: sc.text(), Reason: sc.text(), CreatedAt: store.Time(sc.int()),
		}}
		rows[r.No] = r
		return sc.err
	}, ints(read...)); err != nil {
		return nil, 0, false, err
	}
	for _, no := range nos {
		r := rows[no]
		if huge[no] {
			r = &asked{Request: store.Request{No: no}, err: fmt.Errorf("the request is larger than %d bytes: %w", s.limits.Batch, store.ErrTooLarge)}
		}
		if r != nil {
			list = append(list, r)
		}
	}
	return list, last, full || len(nos) == d.Max, s.inLine(w, list)
}

// inLine leaves the requests whose run is named by an earlier one that is still open
// and not among these.
func (s *Store) inLine(w *wire, list []*asked) error {
	mine := map[string][]*asked{}
	var ids []string
	for _, r := range list {
		if r.err == nil && len(r.RunID) <= store.MaxRunID && r.RunID != "" {
			if mine[r.RunID] == nil {
				ids = append(ids, r.RunID)
			}
			mine[r.RunID] = append(mine[r.RunID], r)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	at := map[string]int{}
	return w.query("requests_first", func(v []driverValue) error {
		id, no := v[0].(string), v[1].(int64)
		i := at[id]
		at[id]++
		if of := mine[id]; i < len(of) && of[i].No != no {
			for _, r := range of[i:] {
				r.left = true
			}
			at[id] = len(of)
		}
		return nil
	}, texts(ids...), int64(len(list)))
}

// tryRequests forms the Changes of requests and drafts them, in their order.
func (s *Store) tryRequests(w *wire, d *store.Drain, list []*asked) (*drafted, map[*member]error, error) {
	var members []*member
	for _, r := range list {
		if r.left || r.err != nil {
			continue
		}
		c, err := d.Form(r.Request)
		if err == nil {
			err = c.Validate(s.limits)
		}
		if err == nil {
			err = checkTexts(&c)
		}
		if r.err = err; err == nil {
			r.member = &member{c: &c}
			members = append(members, r.member)
		}
	}
	drafted, refused, err := s.plan(w, members)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range list {
		if r.member != nil && refused[r.member] != nil && r.Again(r.member.c, refused[r.member]) {
			r.left = true
		}
	}
	return drafted, refused, nil
}

// answerRequests writes what was drafted, and the answers.
func (s *Store) answerRequests(w *wire, d *drafted, list []*asked, refused map[*member]error) error {
	var accepted []*member
	var nos, runs, codes, errs array
	for _, r := range list {
		if r.left {
			continue
		}
		a := r.answer(refused)
		if r.member != nil && a.Err == nil {
			accepted = append(accepted, r.member)
		}
		nos.int(r.No)
		if a.RunID == r.RunID || !holdable(a.RunID) {
			a.RunID = ""
		}
		runs.text(a.RunID)
		if a.Err != nil {
			codes.text(store.RequestCode(a.Err))
			errs.text(store.CleanText(a.Err.Error()))
		} else {
			codes.text("")
			errs.text("")
		}
	}
	left, err := s.writeDraft(w, d, accepted)
	switch {
	case err != nil:
		return err
	case len(left) > 0:
		return errAgain // another transaction got in the way
	case len(nos.b) == 0:
		return nil
	}
	_, err = w.exec("requests_answer", int64(d.world.now), nos.value(), runs.value(), codes.value(), errs.value())
	return err
}

func (r *asked) answer(refused map[*member]error) store.Answer {
	a := store.Answer{Request: r.Request, RunID: r.RunID, Err: r.err}
	if r.member == nil {
		return a
	}
	if a.Err = refused[r.member]; a.Err == nil {
		a.RunID = r.member.c.RequestedRun()
	}
	return a
}

// answerBad answers a request with what the server says about it.
func (s *Store) answerBad(ctx context.Context, no int64, why error) error {
	return s.again(ctx, func(w *wire) error {
		var now int64
		if err := w.query("lock_runs", func(v []driverValue) error { now = v[0].(int64); return nil }, texts[string]()); err != nil {
			return err
		}
		_, err := w.exec("requests_answer", now, ints(no), texts(""), texts(store.RequestCode(why)), texts(store.CleanText(why.Error())))
		return err
	})
}

// DropRequests implements store.Requests.
func (s *Store) DropRequests(ctx context.Context, before store.Time, limit int) (dropped int, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.calls.Done()
	err = s.again(ctx, func(w *wire) error {
		n, err := w.exec("requests_drop", int64(before), int64(max(limit, 0)))
		dropped = int(n)
		return err
	})
	return dropped, described("delete requests", err)
}
