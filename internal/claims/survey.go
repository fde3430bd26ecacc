package claims

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// A turn is taken by one goroutine at a time. Unlike a mutex it may be held while a store answers,
// which takes as long as it takes: who waits for it gives up when its context ends.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }

// Announce is told of a run that waits for a person, and returns how many questions it asks.
type Announce func(ctx context.Context, row *store.Run) (approvals int, err error)

// surveyTime is how long Recover waits for its survey. A longer one goes on in the background.
const surveyTime = 5 * time.Second

// survey looks at the runs that wait or are pending; no claim waits for that. It repairs those that
// contradict their events, restores approvals, and reports what is stuck. If that takes longer than
// surveyTime, the report that it returns is partial, and the log has the rest. A ctx that ends before
// survey returns ends the look; one that ends afterwards does not.
func (rc *Recovery) survey(ctx context.Context, rep Report, announce Announce) (Report, error) {
	done := make(chan surveyed, 1) // nobody may wait for it any more
	look, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	whole := rep.clone()
	began := rc.o.Runs.Background(func(ends context.Context) {
		defer stop(nil)
		defer context.AfterFunc(ends, func() { stop(commit.ErrClosed) })()
		err := rc.lookAround(look, &whole, announce)
		rc.sifted(look, &whole)
		whole.Stuck = onceEach(whole.Stuck)
		switch {
		case err == nil:
			rc.say(look, &whole)
		case look.Err() != nil:
			err = context.Cause(look) // not the store's
		}
		done <- surveyed{whole, err}
	})
	if !began {
		stop(nil)
		return rep, commit.ErrClosed
	}
	late := time.NewTimer(surveyTime)
	defer late.Stop()
	select {
	case o := <-done:
		return o.rep, o.err
	case <-ctx.Done():
		stop(context.Cause(ctx))
		o := <-done
		return o.rep, o.err
	case <-late.C:
	}
	rc.o.Log.Info("durable: runs go on; those that wait are still being looked at, and the line \"Recovery complete\" follows", "resumed", len(rep.Resumed), "failed", len(rep.Failed))
	rc.await(done)
	rep.Partial, rep.Stuck = true, onceEach(rep.Stuck)
	return rep, nil
}

// surveyed is the outcome of a survey.
type surveyed struct {
	rep Report
	err error
}

// await logs the failure of a survey for which no Recover waits any more.
func (rc *Recovery) await(done <-chan surveyed) {
	rc.o.Runs.Background(func(ctx context.Context) {
		select {
		case o := <-done:
			if o.err != nil && ctx.Err() == nil {
				rc.o.Log.Warn("durable: recovery could not look at all runs that wait; call Recover again", slog.Any("error", o.err))
			}
		case <-ctx.Done():
		}
	})
}

func (rc *Recovery) lookAround(ctx context.Context, rep *Report, announce Announce) error {
	for _, pass := range []func(context.Context, *Report) error{
		rc.tryParked,
		rc.reconcileWaiting,
		func(ctx context.Context, rep *Report) error { return rc.orphanPass(rep).all(ctx, store.Pending) },
		func(ctx context.Context, rep *Report) error { return rc.announceApprovals(ctx, rep, announce) },
		rc.reportUnserved,
	} {
		if err := pass(ctx, rep); err != nil {
			return err
		}
	}
	return nil
}

// announceApprovals passes the runs that wait for a person, and that no live executor owns, to
// announce.
func (rc *Recovery) announceApprovals(ctx context.Context, rep *Report, announce Announce) error {
	live, err := rc.o.others(ctx)
	if err != nil {
		return err
	}
	for row, err := range rc.o.List(ctx, store.Filter{Statuses: []store.Status{store.Waiting}, Codes: []string{history.CodeApproval}, OldestFirst: true}) {
		if err != nil {
			return fmt.Errorf("durable: recovery could not list waiting runs: %w", commit.StoreError(err))
		}
		if live[row.Owner] {
			continue
		}
		n, err := announce(ctx, row)
		if err != nil {
			rep.stuck(stuck.Of(row, stuck.CodeDamaged, err.Error()))
			continue
		}
		rep.approvals += n
	}
	return nil
}

// reportUnserved lists pending and waiting runs whose code no live executor has, or takes from
// their queue: they would silently wait for ever. It counts, and reads only those.
func (rc *Recovery) reportUnserved(ctx context.Context, rep *Report) error {
	executors, err := rc.o.executors(ctx)
	if err != nil {
		return err
	}
	live := stuck.LiveOf(executors, "")
	filters, err := rc.unserved.unserved(ctx, live)
	if err != nil {
		return fmt.Errorf("durable: recovery could not count pending and waiting runs: %w", commit.StoreError(err))
	}
	for _, f := range append(filters, store.Filter{Paused: true}) {
		f.Statuses, f.OldestFirst = []store.Status{store.Pending, store.Waiting}, true
		for row, err := range rc.o.List(ctx, f) {
			switch {
			case err != nil:
				return fmt.Errorf("durable: recovery could not list pending and waiting runs: %w", commit.StoreError(err))
			case f.Paused:
				rep.paused(row)
			case row.Paused:
			case !live.Serves(row) && rc.servable(row, rep) && !rc.claims.Serves(row.Queue):
				rep.stuck(live.OfQueue(row))
			}
		}
	}
	return nil
}

// shut makes the loop pass over waiting runs that may contradict their events.
func (rc *Recovery) shut() {
	if rc.o.NoReconcileOnBoot {
		return
	}
	if until, first := rc.claims.sieve.shut(); first {
		rc.o.Runs.Background(func(ctx context.Context) { rc.keepUp(ctx, until) })
	}
}

// keepUp compares what claims pass over, until all are compared.
func (rc *Recovery) keepUp(ctx context.Context, until <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-until:
			return
		case <-rc.claims.sieve.bell:
		}
		if err := rc.sift(ctx); err != nil && ctx.Err() == nil {
			// The next claim comes upon them again.
			rc.o.Log.Warn("durable: recovery could not look at runs that are due; the next beat tries again", slog.Any("error", err))
		}
	}
}

// sift compares what claims have passed over with its events.
func (rc *Recovery) sift(ctx context.Context) error {
	s := &rc.claims.sieve
	if err := rc.sifting.take(ctx); err != nil {
		return err
	}
	defer rc.sifting.give()
	ids := s.take()
	if len(ids) == 0 {
		return nil
	}
	live, err := rc.o.others(ctx)
	if err != nil {
		return err
	}
	var rep Report
	err = rc.o.eachSlice(ctx, store.Filter{IDs: ids, Statuses: []store.Status{store.Waiting}}, "waiting", func(rows []*store.Run, ends *tails) error {
		err := rc.compare(ctx, rows, ends, live, &rep)
		if err == nil {
			s.pass(rows)
		}
		return err
	})
	rc.claims.Wake()
	rc.judgeRead(ctx, &rep)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.add(&rep)
	return err
}

// sifted adds to a report what sifts have found so far, unless ctx ends before.
func (rc *Recovery) sifted(ctx context.Context, rep *Report) {
	if rc.sifting.take(ctx) != nil {
		return
	}
	defer rc.sifting.give()
	s := &rc.claims.sieve
	s.mu.Lock()
	defer s.mu.Unlock()
	rep.add(&s.found)
	s.found = Report{}
}

// reconcileWaiting checks the waiting runs that no live executor owns. A consistent one
// costs only its place in a listing, unless its log ends with anything but the beginning
// of a wait.
func (rc *Recovery) reconcileWaiting(ctx context.Context, rep *Report) error {
	if rc.o.NoReconcileOnBoot {
		return nil
	}
	live, err := rc.o.others(ctx)
	if err != nil {
		return err
	}
	err = rc.o.eachSlice(ctx, store.Filter{Statuses: []store.Status{store.Waiting}}, "waiting", func(rows []*store.Run, ends *tails) error {
		return rc.compare(ctx, rows, ends, live, rep)
	})
	if err != nil {
		return err
	}
	if err := rc.comparing.take(ctx); err != nil { // a sift may be about to continue what it has repaired
		return err
	}
	late := rc.claims.sieve.open()
	rc.comparing.give()
	if late {
		nudge.Send(rc.claims.orphans)
	}
	rc.claims.Wake()
	rc.judgeRead(ctx, rep)
	return nil
}

// compare compares waiting runs with their events. live has the other live executors.
func (rc *Recovery) compare(ctx context.Context, rows []*store.Run, ends *tails, live map[string]bool, rep *Report) error {
	if err := rc.comparing.take(ctx); err != nil {
		return err
	}
	defer rc.comparing.give()
	repaired := len(rep.Repaired)
	release := rc.claims.sieve.keep(rows)
	defer func() {
		if release(); len(rep.Repaired) > repaired {
			rc.claims.Wake()
		}
	}()
	var resume toContinue
	var failed error
	looked := func(yield func(*store.Run, error) bool) {
		for _, row := range rows {
			if live[row.Owner] {
				continue
			}
			var now *store.Run
			before := len(rep.Repaired)
			now, failed = rc.onBoot(ctx, row, ends, rep)
			switch {
			case now == nil || len(rep.Repaired) == before:
			case now.Status == store.Interrupted:
				rc.sort(ctx, now, &resume, rep)
			case rc.o.Runs.Here(now.ID): // the loop was faster
				rep.Resumed = append(rep.Resumed, now.ID)
			}
			if !yield(row, failed) || failed != nil {
				return
			}
		}
	}
	err := rc.o.EachUnheard(ctx, looked, rep.stuck)
	rc.goOn(ctx, &resume, rep)
	if err != nil && failed == nil {
		return fmt.Errorf("durable: recovery could not look for the children of waiting runs: %w", commit.StoreError(err))
	}
	return failed
}

// goOn continues runs that were repaired. The loop may have been faster.
func (rc *Recovery) goOn(ctx context.Context, t *toContinue, rep *Report) {
	if len(t.roots)+len(t.children) == 0 {
		return
	}
	said := map[string]bool{}
	rc.claims.continueAll(ctx, t, rep)
	for _, id := range append(rep.Resumed[:len(rep.Resumed):len(rep.Resumed)], rep.Deferred...) {
		said[id] = true
	}
	for _, id := range append(t.children[:len(t.children):len(t.children)], t.roots...) {
		if !said[id] && rc.o.Runs.Here(id) {
			rep.Resumed = append(rep.Resumed, id)
		}
	}
}
