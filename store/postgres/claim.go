package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/line"
)

// claiming is one Claim call.
type claiming struct {
	store   *Store
	claim   store.Claim
	tried   map[int64]bool
	taken   []store.Run
	numbers []int64               // of the runs taken
	spared  int                   // how many it has passed over (store.Claim.Spare)
	further int                   // how many more runs to look at, because those seen were not to be had
	placed  map[string]int        // of those, how many got a place, by queue
	doubts  map[int64]string      // runs claimed without an answer, and the queues in which they may have got places
	locked  []line.Run            // tried while another transaction had them locked
	stuck   error                 // the error of one that stays locked for long
	shut    map[string]bool       // queues with limits that stay locked for long
	left    map[string]store.Time // of the last plan, see line.Plan
}

// maxBatch bounds how many runs are claimed in one transaction, so that it is short.
const maxBatch = 512

// Claim implements store.Store. It claims many runs in one transaction, without those
// that another one has locked; what gets in the way of such a batch is looked for by
// claiming its runs one by one.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	cl := &claiming{store: s, claim: c, tried: map[int64]bool{}, shut: map[string]bool{}, placed: map[string]int{}, doubts: map[int64]string{}}
	err := cl.run(ctx)
	if err == nil && len(cl.taken) < c.Max && c.Held != nil {
		for _, queue := range slices.Sorted(maps.Keys(cl.left)) {
			c.Held(queue, cl.left[queue])
		}
	}
	if len(cl.taken) > 0 {
		// Return the runs claimed so far; the next call will meet a later error
		// again.
		return cl.taken, nil
	}
	return nil, described(fmt.Sprintf("claim for executor %s", c.Executor), err)
}

func (c *claiming) run(ctx context.Context) error {
	if err := c.settle(ctx); err != nil {
		return err
	}
	more := true
	// A claim that may take fewer than it names takes the first of them, whether or not they need a place.
	if n := len(c.claim.IDs); n > 0 && n <= c.free() && c.store.genuine {
		defer c.sort()
		var err error
		if more, err = c.takeNamed(ctx); err != nil {
			return err
		}
	}
	for idle := 0; more && c.free() > 0 && idle < maxIdle; {
		before := len(c.taken) + c.spared
		var err error
		if more, err = c.round(ctx); err != nil {
			return err
		}
		if idle++; len(c.taken)+c.spared > before {
			idle = 0
		}
	}
	return c.takeLocked(ctx)
}

// maxFurther bounds how many runs a claim looks at that it cannot take.
const maxFurther = 1 << 14

// maxIdle bounds how many rounds in a row get nothing, because others are always
// faster: they have taken what there was.
const maxIdle = 16

// round looks for candidates and claims a batch of them. more says that another round
// may find some: this one did not see all, or did not get all that it saw.
func (c *claiming) round(ctx context.Context) (more bool, err error) {
	want := min(c.free(), maxBatch)
	var s *survey
	var p line.Plan
	err = c.store.again(ctx, func(w *wire) (err error) {
		w.ctx = ctx
		if s, err = c.survey(w, want); err == nil {
			p = s.plan(spare(want) + min(c.spared, maxBatch))
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if c.left = p.Left; len(p.List) == 0 {
		// What was read cannot be taken, such as runs with owners: look further.
		c.further = 4*c.further + 64
		return p.Partial && c.further < maxFurther, nil
	}
	taken := len(c.taken)
	err = c.takeAll(ctx, s, p.List, want)
	if errors.Is(err, errAgain) {
		return true, nil
	}
	return p.Partial || len(c.taken)-taken < len(p.List), err
}

// room returns how many more runs of a queue the claim may give a place; negative: any
// number.
func (c *claiming) room(queue string) int {
	room, _ := c.claim.Room(queue)
	if room > 0 {
		room -= c.placed[queue]
		for _, doubtful := range c.doubts {
			if doubtful == queue {
				room--
			}
		}
		room = max(room, 0)
	}
	return room
}

// spare is how many candidates there are to be for want runs: other executors may take
// some of them first, and have some of them locked.
func spare(want int) int { return 2*want + 16 }

// takeAll claims want of the planned runs as one batch. Where that meets a lock, a
// conflict, or a run that the database refuses, it claims them one by one.
func (c *claiming) takeAll(ctx context.Context, s *survey, list []line.Run, want int) error {
	look := want
	if c.spared > 0 {
		look = len(list)
	}
	err := c.take(ctx, &batch{survey: s, list: list, want: want, look: look})
	if err == nil || errors.Is(err, errAgain) || ctx.Err() != nil {
		return err
	}
	switch faultOf(err) {
	case faultLost, faultSession, faultBusy:
		return err
	}
	for _, k := range list[:min(len(list), want)] {
		if c.free() <= 0 {
			return nil
		}
		if err := c.takeOne(ctx, s, k, 0); err != nil {
			return err
		}
	}
	return nil
}

// takeOne claims one run alone, and waits for its lock for so long.
func (c *claiming) takeOne(ctx context.Context, s *survey, k line.Run, wait time.Duration) error {
	if k.Place && (c.shut[k.Queue] || c.room(k.Queue) == 0) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.tried[k.No] = true
	b := &batch{survey: s.just(k), list: []line.Run{k}, want: 1, look: 1, alone: true, wait: wait}
	err := c.take(ctx, b)
	switch {
	case lockTimedOut(err):
		// The runs that are available should not wait for this one.
		c.stuck = err
		if b.limits {
			c.shut[k.Queue] = true
		}
		return nil
	case errors.Is(err, errAgain) && b.survey.inTurn:
		delete(c.tried, k.No)
		return err // others may come first by now
	case errors.Is(err, errAgain):
		return nil // its queue has just been changed; a later claim takes it
	}
	return err
}

// takeLocked retries the candidates that were locked. The lock need not have
// been a claim; it may have been the delivery of a message. If there is still
// room, wait for the lock, but not for long, because the runs already taken are
// not executed meanwhile.
func (c *claiming) takeLocked(ctx context.Context) error {
	if len(c.locked) == 0 || c.free() <= 0 {
		return nil
	}
	began := time.Now()
	list := c.locked
	c.locked = nil
	s := &survey{only: true, queues: map[string]*queue{}} // their turn has passed
	err := c.store.again(ctx, func(w *wire) error {
		w.ctx = ctx
		return c.readQueues(w, s, queuesOf(list))
	})
	if err != nil {
		return err
	}
	// Most of those that another executor was claiming are gone by now.
	if err := c.takeAll(ctx, s.just(list...), list, c.free()); err != nil && !errors.Is(err, errAgain) {
		return err
	}
	list, c.locked = c.locked, nil
	for _, k := range list {
		if c.free() <= 0 {
			return nil
		}
		limit := lockWait
		if len(c.taken) > 0 {
			limit = shortWait
		}
		if err := c.takeOne(ctx, s, k, max(limit-time.Since(began), time.Millisecond)); err != nil {
			return err
		}
	}
	if len(c.claim.IDs) > 0 && len(c.taken) == 0 {
		return c.stuck // the caller asked for these
	}
	return nil
}
