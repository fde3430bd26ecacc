//go:build cgo

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Requests = (*Store)(nil)

// DrainRequests implements store.Requests. There is one writer at a time, so what a
// drain finds open is for no other.
func (s *Store) DrainRequests(ctx context.Context, d store.Drain) (out store.Drained, err error) {
	if d.Max <= 0 {
		return out, ctx.Err()
	}
	if d.After == 0 {
		d.After = math.MinInt64 // whoever inserts may choose a number
	}
	waiting, err := s.requestsWait(ctx, d.After)
	if err != nil || !waiting {
		return out, err
	}
	out, err = s.drain(ctx, &d)
	if err == nil || d.Max == 1 || !memberFault(err) {
		return out, err
	}
	// One of them may be to blame.
	one, out := d, store.Drained{}
	one.Max = 1
	for range d.Max {
		got, err := s.drain(ctx, &one)
		if err != nil && (got.Last == 0 || !memberFault(err)) {
			return out, err
		}
		if err != nil {
			if err := s.answerBad(ctx, got.Last, err); err != nil {
				return out, err
			}
		}
		out.Answers, out.Left = append(out.Answers, got.Answers...), out.Left || got.Left
		if one.After, out.Last = got.Last, got.Last; got.Last == 0 {
			break
		}
	}
	return out, nil
}

// requestsWait reports whether there are open requests, without a write lock.
func (s *Store) requestsWait(ctx context.Context, after int64) (waiting bool, err error) {
	err = s.read(ctx, "look for requests", func(tx *sqlx.Tx) error {
		s.counts.statements.Add(1)
		s.counts.reads.Add(1)
		return tx.GetContext(ctx, &waiting, s.q.requestsWaiting.text, after)
	})
	return waiting, err
}

// drain answers requests in one transaction. After an error, Last says how far it would
// have come; 0 if nothing was taken.
func (s *Store) drain(ctx context.Context, d *store.Drain) (out store.Drained, err error) {
	behind := false
	err = s.write(ctx, "answer requests", func(t *tx) error {
		nos, huge, more, err := t.takeRequests(d)
		if err != nil || len(nos) == 0 {
			return err
		}
		out.Last = nos[len(nos)-1]
		for _, no := range nos {
			a, left, err := t.request(d, no, huge[no])
			if err != nil {
				return err
			}
			if left {
				out.Left = true
				continue
			}
			out.Answers = append(out.Answers, a)
		}
		behind = more
		return nil
	})
	if err == nil && !behind {
		out.Last = 0
	}
	if err != nil {
		return store.Drained{Last: out.Last}, err
	}
	return out, nil
}

// takeRequests returns the requests to answer, which of them are too large to be read,
// and whether there may be more behind them.
func (t *tx) takeRequests(d *store.Drain) (nos []int64, huge map[int64]bool, more bool, err error) {
	size, full := 0, false
	huge = map[int64]bool{}
	leave := t.now - store.Time(d.Leave.Microseconds())
	err = t.query(t.s.q.requestsTake, func(c *cells) error {
		no, n := c.int(), int(c.int())
		if n > t.s.limits.Batch {
			huge[no], n = true, 0
		}
		if full = full || (len(nos) > 0 && size+n > t.s.limits.Batch); !full {
			nos, size = append(nos, no), size+n
		}
		return nil
	}, d.After, jsonArray(d.Serves), int64(leave), int64(d.Max))
	return nos, huge, full || len(nos) == d.Max, err
}

// request answers one request, or leaves it for another time.
func (t *tx) request(d *store.Drain, no int64, huge bool) (a store.Answer, left bool, err error) {
	if huge {
		a = store.Answer{Request: store.Request{No: no}, Err: fmt.Errorf("the request is larger than %d bytes: %w", t.s.limits.Batch, store.ErrTooLarge)}
		return a, false, t.answer(&a)
	}
	r, err := t.readRequest(no)
	if err != nil {
		return a, false, err
	}
	if r.RunID != "" {
		err = t.query(t.s.q.requestsBefore, func(c *cells) error { left = c.bool(); return nil }, r.RunID, no)
		if err != nil || left {
			return a, left, err
		}
	}
	a = store.Answer{Request: r, RunID: r.RunID}
	c, refused := d.Form(r)
	if refused == nil {
		refused = c.Validate(t.s.limits)
	}
	if refused == nil {
		if refused, err = t.guarded(&c); err != nil {
			return a, false, err
		}
		if refused == nil {
			a.RunID = c.RequestedRun()
		} else if r.Again(&c, refused) {
			return a, true, nil
		}
	}
	a.Err = refused
	return a, false, t.answer(&a)
}

func (t *tx) readRequest(no int64) (r store.Request, err error) {
	err = t.query(t.s.q.requestsRead, func(c *cells) error {
		r = store.Request{
			No: c.int(), Kind: store.RequestKind(c.text()), RunID: c.text(), Workflow: c.text(), Version: c.text(), Queue: c.text(), Partition: c.text(),
			Dedup: c.text(), Priority: int32(c.int()), WakeAt: store.Time(c.int()), Attributes: c.text(), Headers: c.text(), Input: c.text(), Name: c.text(),
			ID: c.text(), Reason: c.text(), CreatedAt: store.Time(c.int()),
		}
		return nil
	}, no)
	return r, err
}

func (t *tx) answer(a *store.Answer) error {
	code, text, run := "", "", ""
	if a.Err != nil {
		code, text = store.RequestCode(a.Err), store.CleanText(a.Err.Error())
	} else if a.RunID != a.Request.RunID {
		run = a.RunID
	}
	_, _, err := t.exec(t.s.q.requestsAnswer, a.Request.No, int64(t.now), run, code, text)
	return err
}

// answerBad answers a request with what SQLite says about it.
func (s *Store) answerBad(ctx context.Context, no int64, why error) error {
	return s.write(ctx, "answer a request", func(t *tx) error {
		return t.answer(&store.Answer{Request: store.Request{No: no}, Err: errors.Join(store.ErrInvalid, why)})
	})
}

// DropRequests implements store.Requests.
func (s *Store) DropRequests(ctx context.Context, before store.Time, limit int) (dropped int, err error) {
	err = s.write(ctx, "delete requests", func(t *tx) error {
		n, _, err := t.exec(t.s.q.requestsDrop, int64(before), int64(max(limit, 0)))
		dropped = int(n)
		return err
	})
	return dropped, err
}

// requestWatch looks out for requests that others insert, who know nothing of the file
// of notices: it looks into the table when the WAL has changed, at most once in
// Options.Watch, because our own commits change it too. A change that the times
// of files are too coarse to show is found at the next one, or at the next beat.
type requestWatch struct {
	last  time.Time // when it looked at the WAL
	size  int64
	at    time.Time
	again bool // the WAL was changed just before the last look
}

// coarse is longer than the granularity of the times of files (a tick of the kernel, at
// most 10 ms on Linux).
const coarse = 30 * time.Millisecond

func (w *requestWatch) changed(s *Store) bool {
	now := time.Now()
	if now.Sub(w.last) < s.opts.Watch {
		return false
	}
	w.last = now
	info, err := os.Stat(s.file + "-wal")
	if err != nil {
		return false
	}
	changed := w.again || info.Size() != w.size || !info.ModTime().Equal(w.at)
	w.size, w.at, w.again = info.Size(), info.ModTime(), time.Since(info.ModTime()) < coarse
	return changed
}
