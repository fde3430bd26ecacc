package read

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/store"
)

// used remembers whether something that not every store has is used, for the
// navigation. What has been used once counts as used from then on.
type used struct {
	mu   sync.Mutex
	yes  bool
	next time.Time // when to look again
}

// usedFor is how long an answer of no is taken for granted.
const usedFor = time.Second

// ask returns whether it is used, with look if that is not known.
func (u *used) ask(look func() (bool, error)) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.yes || time.Now().Before(u.next) {
		return u.yes, nil
	}
	yes, err := look()
	if err != nil {
		return false, web.Unavailable(err)
	}
	u.yes, u.next = yes, time.Now().Add(usedFor)
	return yes, nil
}

// UsesQueues reports whether there are queues.
func (rd *Reader) UsesQueues(ctx context.Context) (bool, error) {
	kept := store.CapabilitiesOf(rd.Engine.Store()).Queues
	if kept == nil {
		return false, nil
	}
	return rd.queues.ask(func() (bool, error) {
		list, err := kept.Queues(ctx)
		return len(list) > 0, err
	})
}
