package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// One lock that is held for long, such as by a user's transaction that stays open
// with a Change in it, must hold up only the run it concerns, although many runs
// share a statement. So a batch that waits longer than lockWait for a lock is
// split in halves that are tried separately. Members that are stuck on their own
// are left behind: they get an error, and the caller sends them again.
//
// For example, of a batch of 100 whose member 7 is locked, 0 to 49 wait in vain,
// then 0 to 24, 0 to 11 and so on, six in all, each for shortWait; all others are
// carried out, in seven transactions.

const (
	// lockWait is the lock timeout in sessionSettings: longer than any of our
	// transactions holds a lock on a server that is not overloaded.
	lockWait = 500 * time.Millisecond
	// shortWait is for those that are suspected to be stuck.
	shortWait = 50 * time.Millisecond
	// maxShortWaits bounds how often a batch waits in vain. If everything is
	// locked, as by a migration, there is no single culprit to find.
	maxShortWaits = 12
	// suspectFor is how long a run that was held up is sent apart from others.
	suspectFor = 10 * time.Second
)

// passBy carries out the members that are not held up and returns those that are.
// Members it could not find out about stay undecided.
func (s *Store) passBy(ctx context.Context, members []*member) (held []*member) {
	waits := 0
	var try func(group []*member)
	try = func(group []*member) {
		if len(group) == 0 || waits == maxShortWaits || ctx.Err() != nil {
			return
		}
		if !lockTimedOut(s.attempt(ctx, group, shortWait)) {
			return // carried out, or the caller meets the same error
		}
		waits++
		if len(group) == 1 {
			held = append(held, group[0])
			return
		}
		try(group[:len(group)/2])
		try(group[len(group)/2:])
	}
	try(members[:len(members)/2])
	try(members[len(members)/2:])
	return held
}

// leaveBehind gives up the members found to be held up, if other members of these
// or of the same batch went on. If all are held up, none of them delays another.
func (s *Store) leaveBehind(held, members []*member, others bool) {
	s.heldUp.note(held, members)
	if others || len(undecided(members)) < len(members) {
		giveUp(held, fmt.Errorf("another transaction has held what it changes for more than %v: nothing of it was written, and it can be sent again", lockWait))
	}
}

// heldUp holds the runs whose Changes were recently held up.
type heldUp struct {
	mu    sync.Mutex
	until map[string]time.Time // by run id
}

// apart divides members into free ones and suspects. A single member needs no
// separation.
func (h *heldUp) apart(members []*member) (free, suspects []*member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.until) == 0 || len(members) < 2 {
		return members, nil
	}
	now := time.Now()
	for _, m := range members {
		if until, ok := h.until[m.c.RunID]; ok && now.Before(until) {
			suspects = append(suspects, m)
		} else {
			free = append(free, m)
		}
	}
	return free, suspects
}

// note records which of members were held up, and clears the others.
func (h *heldUp) note(held, members []*member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for id, until := range h.until {
		if !now.Before(until) {
			delete(h.until, id)
		}
	}
	for _, m := range members {
		delete(h.until, m.c.RunID)
	}
	if h.until == nil {
		h.until = map[string]time.Time{}
	}
	for _, m := range held {
		h.until[m.c.RunID] = now.Add(suspectFor)
	}
}
