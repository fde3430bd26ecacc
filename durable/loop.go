package durable

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// The engine sleeps until something happens: a notice of the store, a due time,
// or the beat, which stands behind the other two. It never polls.

// beatLoop keeps the executor alive and looks after what a beat brings back.
func (e *Engine) beatLoop(ctx context.Context) {
	every := e.options.Lease / 3
	t := time.NewTimer(every)
	defer t.Stop()
	warned := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.look:
		case <-t.C:
		}
		wait := every
		p, err := e.beat(ctx, false)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.log.Warn("durable: beat failed; other executors may take over when the lease has run out", "executor", e.id, "error", err)
			wait = min(every, time.Second)
		default:
			wait = min(every, e.afterBeat(ctx, p))
		}
		if !warned && !e.recovered.Load() && time.Since(e.openedAt) > recoverReminder {
			warned = true
			e.log.Warn("durable: Recover was not called since Open: interrupted and pending runs of earlier processes are left alone", "executor", e.id)
		}
		if !t.Stop() {
			select {
			case <-t.C:
			default:
			}
		}
		t.Reset(wait)
	}
}

// recoverReminder is how long after Open a missing Recover is worth a warning.
const recoverReminder = 10 * time.Second

// afterBeat acts on a pulse and returns when to beat next at the latest.
func (e *Engine) afterBeat(ctx context.Context, p store.Pulse) time.Duration {
	if p.Late {
		e.log.Warn("durable: the lease had run out before this beat; runs that were taken meanwhile stop at their next write", "executor", e.id)
		e.loseTaken(ctx)
	}
	for _, m := range p.Mail {
		if r := e.active(m.RunID); r != nil && r.inbox.seen() < m.Inbox {
			e.background(r.fetchMail)
		}
	}
	if e.recovered.Load() && !e.isClosing() {
		if len(p.Gone) > 0 {
			e.takeOver(e.loop)
		}
		if p.Due {
			e.nudge(e.wake)
		}
	}
	if p.Next > p.Now && p.Now != 0 {
		return max(p.Next.Sub(p.Now), time.Millisecond)
	}
	return e.options.Lease
}

// loseTaken stops the executions of runs that somebody else owns by now, so
// that their bodies learn of it at once and not at their next write.
func (e *Engine) loseTaken(ctx context.Context) {
	e.mu.Lock()
	ids := make([]string, 0, len(e.runs))
	for id := range e.runs {
		ids = append(ids, id)
	}
	e.mu.Unlock()
	for len(ids) > 0 {
		n := min(len(ids), 200)
		page, err := e.store.List(ctx, store.Filter{IDs: ids[:n], Limit: n})
		if err != nil {
			return // the next write tells
		}
		for i := range page.Runs {
			row := &page.Runs[i]
			if r := e.active(row.ID); r != nil && row.Epoch > r.row.Epoch && row.Owner != e.id {
				_ = r.die(&death{kind: deathLost, err: ErrLost})
			}
		}
		ids = ids[n:]
	}
}

// noticeLoop passes on what the store tells.
func (e *Engine) noticeLoop(ctx context.Context, n store.Notifier) {
	for ctx.Err() == nil {
		err := n.Notify(ctx, func(notice store.Notice) {
			e.notify(notice.RunIDs)
			e.readMail(notice.RunIDs)
			if !e.recovered.Load() {
				return
			}
			for _, id := range notice.RunIDs {
				if e.active(id) == nil {
					e.nudge(e.wake)
					return
				}
			}
			if len(notice.RunIDs) == 0 {
				e.nudge(e.wake)
			}
		})
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return
		}
		e.log.Warn("durable: notices of the store ended; they are taken up again", "error", err)
		sleep(ctx, time.Second)
	}
}

// readMail looks into the inboxes of runs that are executed here; with no ids,
// the mail loop finds out which of them have mail.
func (e *Engine) readMail(ids []string) {
	if len(ids) == 0 {
		e.nudge(e.mail)
	}
	for _, id := range ids {
		// A run that is ending is told of by its own end.
		if r := e.active(id); r != nil && !r.ending.Load() {
			e.background(r.fetchMail)
		}
	}
}

// mailPause is the least time between two looks for mail, so that a store which
// is busy with other processes' runs does not spend its time answering.
const mailPause = 5 * time.Millisecond

// mailLoop asks the store, when a notice does not say for whom it is, which runs
// of this executor have mail.
func (e *Engine) mailLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.mail:
		}
		f := store.Filter{Owners: []string{e.id}, Mail: true, Limit: 500}
		for ctx.Err() == nil {
			page, err := e.store.List(ctx, f)
			if err != nil {
				break // the beat finds it
			}
			for i := range page.Runs {
				row := &page.Runs[i]
				if r := e.active(row.ID); r != nil && r.inbox.seen() < row.Inbox {
					e.background(r.fetchMail)
				}
			}
			if f.After = page.Next; f.After == "" {
				break
			}
		}
		sleep(ctx, mailPause)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// claimLoop takes due runs whenever there may be some.
func (e *Engine) claimLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		if !e.recovered.Load() {
			continue
		}
		for ctx.Err() == nil {
			free := e.options.MaxRuns - int(e.claimed.Load())
			if free <= 0 {
				break // a claimed run that ends wakes us
			}
			runs, err := e.claim(ctx, store.Claim{Max: min(free, claimBatch)}, &eventData{Executor: e.id})
			if err != nil {
				if ctx.Err() == nil {
					e.log.Warn("durable: claiming runs failed; the next beat tries again", "executor", e.id, "error", err)
				}
				break
			}
			if len(runs) < min(free, claimBatch) {
				break
			}
		}
	}
}

// claimBatch is how many runs are claimed in one call.
const claimBatch = 64

// claim takes runs and begins to execute them; d is kept with the claim of each.
func (e *Engine) claim(ctx context.Context, c store.Claim, d *eventData) ([]*run, error) {
	if len(e.defs.served) == 0 {
		return nil, nil
	}
	c.Executor, c.Serves, c.At, c.Data = e.id, e.defs.served, e.now(), d.encode()
	rows, err := e.store.Claim(ctx, c)
	runs := make([]*run, len(rows))
	for i := range rows {
		runs[i] = e.take(rows[i])
	}
	return runs, err
}

// take executes a run that was claimed.
func (e *Engine) take(row store.Run) *run {
	r := e.newRun(row, e.defs.find(row.Workflow, row.Version))
	r.fromClaim = true
	e.log.Debug("durable: run claimed", "run", row.ID, "workflow", row.Workflow, "status", row.Status, "strikes", row.Strikes)
	if old := e.active(row.ID); old != nil {
		// A run of ours that we claimed again: the execution that lost it ends
		// before the new one begins.
		_ = old.die(&death{kind: deathLost, err: ErrLost})
		waits := e.background(func() {
			// It may have continued with a new input in the same moment.
			for ; old != nil && e.loop.Err() == nil; old = e.active(row.ID) {
				_ = old.die(&death{kind: deathLost, err: ErrLost})
				select {
				case <-old.ended:
				case <-e.loop.Done(): // then begin gives it back
				}
			}
			e.begin(r)
		})
		if waits {
			return r
		}
	}
	e.begin(r)
	return r
}

func (e *Engine) begin(r *run) {
	err := e.add(r)
	if err == nil {
		e.claimed.Add(1)
		r.launch()
		return
	}
	// The engine closes. What was claimed in the same moment is given back, so
	// that it does not look like a run whose process died.
	r.cancel(nil)
	r.headFromClaim()
	interrupted := store.Interrupted
	r.lastAt = max(r.lastAt, e.now())
	ev := store.Event{Type: store.WorkflowInterrupted, Seq: r.head.seq + 1, Branch: r.head.branch, At: r.lastAt, Steps: r.steps, Active: r.activeThen}
	ev.Sum = store.Seal(r.id, r.head.sum, &ev)
	change := store.Change{RunID: r.id, Expect: store.Expect{Epoch: r.head.epoch}, Events: []store.Event{ev}, Row: &store.RowPatch{Status: &interrupted}, Yield: true}
	if err := e.store.Commit(context.Background(), []store.Change{change})[0]; err != nil {
		e.log.Warn("durable: a run claimed during Close could not be given back; it is recovered like one that was interrupted", "run", r.id, "error", err)
	}
	close(r.recorded)
	close(r.ended)
}
