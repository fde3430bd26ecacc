package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// One lock that somebody holds for long, such as a transaction of a user's that
// stays open with a change in it, must hold up no run but the one it is about,
// although many share a statement. So who meets a lock for longer than lockWait
// tries the halves apart, and those that are stuck by themselves are left behind:
// they get an error, and the caller sends them again.
//
// For example, of a batch of 100 whose member 7 is locked, 0 to 49 wait in vain,
// then 0 to 24, 0 to 11 and so on, six in all, each for shortWait; all others are
// carried out, in seven transactions.

const (
	// lockWait is what sessionSettings say: more than any transaction of ours
	// holds a lock on a server that keeps up.
	lockWait = 500 * time.Millisecond
	// shortWait is for those that are suspected to be stuck.
	shortWait = 50 * time.Millisecond
	// maxShortWaits bounds how often a batch waits in vain. Where everything is
	// locked, as by a migration, there is nobody to be found out.
	maxShortWaits = 12
	// suspectFor is how long a run that was held up is sent apart from others.
	suspectFor = 10 * time.Second
)

// passBy carries out those of members that are not held up. It returns those
// that are; what it could not find out about stays undecided.
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

// leaveBehind gives up the members that were found to be held up, if others went
// on: of these, or of the same batch. Where all are, nobody waits for anybody.
func (s *Store) leaveBehind(held, members []*member, others bool) {
	s.heldUp.note(held, members)
	if others || len(undecided(members)) < len(members) {
		giveUp(held, fmt.Errorf("another transaction has held what it changes for more than %v: nothing of it was written, and it can be sent again", lockWait))
	}
}

// heldUp are the runs whose changes were held up lately.
type heldUp struct {
	mu    sync.Mutex
	until map[string]time.Time // by run id
}

// apart divides members. One alone is nobody's neighbour.
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

// note takes down who of members was held up, and strikes off the others.
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
