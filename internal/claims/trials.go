package claims

import (
	"context"
	"log/slog"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/history"
)

// trials are the trials of suspects: runs that have ended their process before are
// continued one at a time.
type trials struct {
	claims *Claims
	turn   sync.Mutex // held while a suspect is being tried

	mu       sync.Mutex
	suspects map[string]bool // those that are tried, or wait for their trial; by run id
}

// hold continues suspects in the background, one at a time: the next one begins
// when the one before it has recorded something, or ended. So of several suspects,
// only the one that ends the process can get another strike.
func (t *trials) hold(ids []string) {
	fresh := t.admit(ids)
	if len(fresh) == 0 {
		return
	}
	t.claims.o.Runs.Background(func(ctx context.Context) {
		t.turn.Lock()
		defer t.turn.Unlock()
		for _, id := range fresh {
			t.try(ctx, id)
			t.release(id)
		}
	})
}

// admit returns those of the ids that do not wait for a trial yet. From then on
// they do.
func (t *trials) admit(ids []string) (fresh []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if !t.suspects[id] {
			t.suspects = put(t.suspects, id, true)
			fresh = append(fresh, id)
		}
	}
	return fresh
}

func (t *trials) release(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.suspects, id)
}

// try continues one suspect, and returns when it has recorded something.
func (t *trials) try(ctx context.Context, id string) {
	if ctx.Err() != nil {
		return
	}
	log := t.claims.o.Log
	runs, err := t.claims.claimNamed(ctx, id, &history.Claim{}, nil)
	if err != nil {
		log.AboutID(ctx, slog.LevelWarn, id, "durable: a suspect could not be claimed; the next beat finds it", slog.Any("error", err))
		return
	}
	for _, r := range runs {
		log.OfRun(r.Ctx, slog.LevelWarn, r.Row, "durable: trying a run that ended its process before", slog.Int("strikes", int(r.Row.Strikes)))
		select {
		case <-r.Recorded:
		case <-ctx.Done():
		}
	}
}
