package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

// unsettled holds claims whose commit got no answer.
type unsettled struct {
	mu   sync.Mutex
	list []unsettledClaim
}

type unsettledClaim struct {
	no       int64
	executor string
	epoch    int64
	seq      int64
	unbegun  bool   // the server may not have begun with it yet, and have nothing locked
	queue    string // in which it gets a place; empty: in none
}

func (u *unsettled) add(c unsettledClaim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, c)
}

// of removes the claims of an executor from the list and returns them.
func (u *unsettled) of(executor string) (mine []unsettledClaim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = slices.DeleteFunc(u.list, func(c unsettledClaim) bool {
		if c.executor == executor {
			mine = append(mine, c)
		}
		return c.executor == executor
	})
	return mine
}

// settle finds out about unanswered claims of this executor, including those of
// earlier calls; this call returns those that took effect.
//
// A claim that is not visible may still take effect as long as the server works
// on it. It then holds the row's lock, so locking the row first gives a definite
// answer. If another transaction holds that lock, a later call finds out. A claim that is a
// single statement may not hold a lock yet; one that is not visible is kept from taking effect
// later by a new version of the row.
func (c *claiming) settle(ctx context.Context) error {
	mine := c.store.claims.of(c.claim.Executor)
	for i, u := range mine {
		err := c.store.again(ctx, func(w *wire) error {
			w.lockWait = shortWait
			err := c.look(w, u)
			if lockTimedOut(err) {
				c.doubt(u)
				return nil
			}
			return err
		})
		if err != nil {
			for _, rest := range mine[i:] {
				c.store.claims.add(rest)
			}
			return err
		}
	}
	return nil
}

// doubt notes a claim that got no answer. Until it is known what became of it, it counts as one of those that this
// call may make.
func (c *claiming) doubt(u unsettledClaim) {
	c.store.claims.add(u)
	c.doubts[u.no] = u.queue
}

// free is how many runs the claim may still take.
func (c *claiming) free() int { return max(c.claim.Max, 0) - len(c.taken) - len(c.doubts) }

func (c *claiming) look(w *wire, u unsettledClaim) error {
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.query("lock_run", func([]driverValue) error { return nil }, u.no); err != nil {
		return err
	}
	var run *store.Run
	var attributes int64
	err := w.query("run_after_claim", func(v []driverValue) (err error) {
		run, attributes, err = scanClaimed(v)
		return err
	}, u.no, u.executor, u.epoch, u.seq)
	if err == nil && run != nil && attributes > 0 {
		err = readAttributes(w, map[int64]*store.Run{u.no: run})
	}
	if err != nil {
		return err
	}
	if run == nil && u.unbegun {
		if _, err := w.exec("renew_run", u.no); err != nil {
			return err
		}
		if err := w.commit(); err != nil {
			return err
		}
		delete(c.doubts, u.no)
		return nil
	}
	w.rollback()
	delete(c.doubts, u.no)
	if run != nil && !slices.Contains(c.numbers, u.no) {
		c.add(u.no, run)
		c.tried[u.no] = true
		if u.queue != "" {
			c.placed[u.queue]++
		}
	}
	return nil
}
