package dashboard

import (
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/store"
)

// A listHub looks at the store for all clients that watch the list of runs. It
// lives as long as it has subscribers.
type listHub struct {
	h    *handler
	stop context.CancelFunc
	done chan struct{}

	// Under streams.mu.
	subscribers map[*subscriber]bool

	// Of its goroutine alone.
	rows   map[string]client.Run
	counts client.Counts
	asked  map[string]bool // ids of approvals that were announced
}

const (
	// listEvery is how often the store is looked at while somebody watches.
	listEvery = time.Second
	// listNewest is how many rows of each kind are watched: those that are begun
	// and those that move. Older ones that rest are not; a page asks for them.
	listNewest = 100
)

// getStream serves GET /api/stream: what changes in the list of runs. What it
// sends: counts and the pending approvals at once; then rows that changed, counts,
// and approvals as they come and go.
func (h *handler) getStream(w http.ResponseWriter, r *http.Request) error {
	leave, err := h.streams.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	counts, err := h.counts(r.Context())
	if err != nil {
		return err
	}
	open, err := h.approvals(r.Context())
	if err != nil {
		return err
	}
	since, err := lastSeen(r)
	if err != nil {
		return err
	}
	sub := newSubscriber()
	hub := h.streams.joinList(sub)
	defer h.streams.leaveList(hub, sub)
	first := []frame{{body: []byte("retry: 2000\n\n")}, newFrame("counts", 0, counts)}
	for i := range open {
		first = append(first, newFrame("approval", 0, open[i]))
	}
	if since > 0 {
		missed, err := h.changedSince(r.Context(), store.Time(since))
		if err != nil {
			return err
		}
		first = append(first, missed...)
	}
	s := begin(w)
	if s.send(first...) != nil {
		return nil
	}
	beat := time.NewTicker(h.options.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case f := <-sub.frames:
			err = s.send(f)
		case <-beat.C:
			err = s.beat()
		case <-sub.behind:
			return nil // it comes back, and reads the list again
		case <-r.Context().Done():
			return nil
		}
		if err != nil {
			return nil
		}
	}
}

// changedSince are the watched rows that changed since a client that comes back
// was there last.
func (h *handler) changedSince(ctx context.Context, since store.Time) ([]frame, error) {
	rows, err := h.watchedRows(ctx)
	if err != nil {
		return nil, err
	}
	from := since.Time().Add(-listEvery) // clocks of others may be behind
	var frames []frame
	for _, run := range rows {
		if run.UpdatedAt.After(from) || run.LastAt.After(from) {
			frames = append(frames, newFrame("run", 0, run))
		}
	}
	return frames, nil
}

// watchedRows reads the rows that are watched.
func (h *handler) watchedRows(ctx context.Context) (map[string]client.Run, error) {
	rows := map[string]client.Run{}
	for _, f := range []store.Filter{
		{},
		{Statuses: []store.Status{store.Running, store.Resuming}},
		{Statuses: []store.Status{store.Waiting}},
	} {
		f.Limit, f.WithLast = listNewest, true
		page, err := h.eng.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page.Runs {
			rows[page.Runs[i].ID] = h.wireRun(&page.Runs[i])
		}
	}
	return rows, nil
}

func (s *streams) joinList(sub *subscriber) *listHub {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		ctx, stop := context.WithCancel(context.Background())
		s.all = &listHub{h: s.h, stop: stop, done: make(chan struct{}), subscribers: map[*subscriber]bool{}, asked: map[string]bool{}}
		go s.all.follow(ctx)
	}
	s.all.subscribers[sub] = true
	return s.all
}

func (s *streams) leaveList(hub *listHub, sub *subscriber) {
	s.mu.Lock()
	delete(hub.subscribers, sub)
	last := len(hub.subscribers) == 0
	if last && s.all == hub {
		s.all = nil
	}
	s.mu.Unlock()
	if last {
		hub.stop()
		<-hub.done
	}
}

// follow looks at the store until nobody listens.
func (hub *listHub) follow(ctx context.Context) {
	defer close(hub.done)
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for failed := false; ; {
		err := hub.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failed {
			hub.h.options.Logger.Warn("dashboard: the list of runs cannot be read; it is tried again", "error", err)
			_, p := hub.h.problemOf(err)
			hub.publish(newFrame("problem", 0, p))
		}
		failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look compares the store with what was seen before, and tells what is new.
func (hub *listHub) look(ctx context.Context) error {
	h, at := hub.h, time.Now().UnixMicro()
	now, err := h.watchedRows(ctx)
	if err != nil {
		return err
	}
	if err := hub.whereTheyWent(ctx, now); err != nil {
		return err
	}
	for id, run := range now {
		was, known := hub.rows[id]
		if hub.rows != nil && (!known || was.LastSeq != run.LastSeq || was.Status != run.Status || was.Paused != run.Paused || was.Owner != run.Owner || was.CancelAsked != run.CancelAsked) {
			hub.publish(newFrame("run", at, run))
		}
	}
	hub.rows = now
	counts, err := h.counts(ctx)
	if err != nil {
		return err
	}
	if !maps.Equal(counts.Status, hub.counts.Status) || counts.Approvals != hub.counts.Approvals {
		hub.publish(newFrame("counts", 0, counts))
		hub.counts = counts
		return hub.lookAtApprovals(ctx)
	}
	return nil
}

// whereTheyWent reads the rows that were seen before and are in no list now: they
// ended, most of them.
func (hub *listHub) whereTheyWent(ctx context.Context, now map[string]client.Run) error {
	var ids []string
	for id, was := range hub.rows {
		if _, here := now[id]; !here && !was.Terminal() {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	page, err := hub.h.eng.List(ctx, store.Filter{IDs: ids, Limit: len(ids), WithLast: true})
	if err != nil {
		return err
	}
	for i := range page.Runs {
		now[page.Runs[i].ID] = hub.h.wireRun(&page.Runs[i])
	}
	return nil
}

// lookAtApprovals tells which approvals have come and which are gone.
func (hub *listHub) lookAtApprovals(ctx context.Context) error {
	open, err := hub.h.approvals(ctx)
	if err != nil {
		return err
	}
	now := map[string]bool{}
	for i := range open {
		if now[open[i].ID] = true; !hub.asked[open[i].ID] {
			hub.publish(newFrame("approval", 0, open[i]))
		}
	}
	for id := range hub.asked {
		if !now[id] {
			hub.publish(newFrame("answered", 0, map[string]string{"id": id}))
		}
	}
	hub.asked = now
	return nil
}

func (hub *listHub) publish(f frame) {
	hub.h.streams.mu.Lock()
	defer hub.h.streams.mu.Unlock()
	for sub := range hub.subscribers {
		sub.offer(f)
	}
}
