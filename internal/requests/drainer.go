package requests

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/store"
)

const (
	// batch is how many requests one transaction answers: enough to share the cost of a
	// commit, and few enough not to hold the locks of their runs for long.
	batch = 100
	// leave is how long starts of workflows that are not served here are left to the
	// executors that have their code, and know the type of their input.
	leave = 10 * time.Second
	// rest is the least time between two looks, so that a store which is busy with other
	// things is not asked all the time.
	rest = 5 * time.Millisecond
	// soon is when a request is tried again that could not be answered; the pause doubles
	// as long as there is one.
	soon = 20 * time.Millisecond
	// notReady is how often a drainer looks whether it may begin.
	notReady = 50 * time.Millisecond
	// dropEvery is how often old answers are deleted, dropMost how many at a time.
	dropEvery = time.Hour
	dropMost  = 1000
)

// A Drainer answers the requests of a store.
type Drainer struct {
	Table store.Requests
	Log   *slog.Logger
	// Now returns the store's time.
	Now func() store.Time
	// Ready reports whether the engine takes work from the store.
	Ready func() bool
	// Blocked returns why no value may be recorded now: what is asked for is left until it may.
	Blocked func() error
	// Serves are the workflows whose code is here.
	Serves []string
	// Every is how often to look without being woken.
	Every time.Duration
	// Keep is how long an answered request is kept; negative: for ever.
	Keep time.Duration
	// Form returns the Change that carries a request out, or why there is none. It must
	// not call the store.
	Form func(context.Context, store.Request) (store.Change, error)
	// Done is called for each request that was carried out, with its Change.
	Done func(context.Context, store.Answer, store.Change)

	wake chan struct{}
}

// Start makes the drainer ready to be woken. It is called before Loop and Wake.
func (d *Drainer) Start() { d.wake = make(chan struct{}, 1) }

// Wake makes the drainer look. It may be called from any goroutine, also for nil.
func (d *Drainer) Wake() {
	if d != nil {
		nudge.Send(d.wake)
	}
}

// Loop answers requests until ctx ends.
func (d *Drainer) Loop(ctx context.Context) {
	var dropped time.Time
	retry := soon
	failing := false
	for ctx.Err() == nil {
		wait := d.Every
		switch left, err := d.look(ctx); {
		case err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed):
			if !failing {
				d.Log.Warn("durable: requests could not be answered; they are tried again", "error", err)
			}
			failing, wait, retry = true, retry, min(2*retry, d.Every)
		case left:
			failing, wait, retry = false, retry, min(2*retry, d.Every)
		default:
			failing, retry = false, soon
		}
		if d.Keep >= 0 && time.Since(dropped) >= dropEvery && d.Ready() {
			d.drop(ctx)
			dropped = time.Now()
		}
		if !d.Ready() {
			wait = notReady
		}
		if !d.sleep(ctx, min(wait, rest), nil) || !d.sleep(ctx, wait-rest, d.wake) {
			return
		}
	}
}

// sleep waits for a time, or until woken; it returns false when ctx has ended.
func (d *Drainer) sleep(ctx context.Context, wait time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-wake:
	}
	return true
}

// look answers all requests that there are. left says that some must be tried again.
func (d *Drainer) look(ctx context.Context) (left bool, err error) {
	if !d.Ready() {
		return false, nil
	}
	if d.Blocked() != nil {
		return true, nil // it is logged
	}
	formed := map[int64]store.Change{}
	drain := store.Drain{Max: batch, Serves: d.Serves, Leave: leave, Form: func(r store.Request) (store.Change, error) {
		c, err := d.Form(ctx, r)
		if err == nil {
			formed[r.No] = c
		}
		return c, err
	}}
	for {
		got, err := d.Table.DrainRequests(ctx, drain)
		left = left || got.Left
		for _, a := range got.Answers {
			if a.Err != nil {
				d.Log.Warn("durable: a request was refused; its row says why", "request", a.Request.No, "kind", string(a.Request.Kind), "code", store.RequestCode(a.Err))
				continue
			}
			d.Done(ctx, a, formed[a.Request.No])
		}
		clear(formed)
		if err != nil || got.Last == 0 || ctx.Err() != nil {
			return left, err
		}
		drain.After = got.Last
	}
}

// drop deletes answers that are old enough. What fails is tried again later: nothing
// depends on it.
func (d *Drainer) drop(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := d.Table.DropRequests(ctx, d.Now().Add(-d.Keep), dropMost)
		if err != nil || n < dropMost {
			return
		}
	}
}
