package stream

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/store"
)

// A listHub polls the store for all clients that watch the list of runs. It lives as long
// as it has subscribers.
type listHub struct {
	streams *Streams
	stop    context.CancelFunc
	done    chan struct{}

	// Under streams.mu.
	subscribers map[*subscriber]bool

	// Used by its goroutine alone.
	rows   map[string]client.Run
	counts client.Counts
	asked  map[string]bool // ids of approvals that were announced

	queues    queuesSeen
	schedules schedulesSeen

	gathered []frame
	// first is what a new client must get before anything that is gathered from now on;
	// nil: nothing was read yet.
	first []frame

	// looked is closed after the first poll of the store.
	looked chan struct{}

	// shown is first as of the last publication; failed is why there was none yet. Under
	// streams.mu.
	shown  []frame
	failed error
}

const (
	// listEvery is the interval between two polls of the store while a client watches.
	listEvery = time.Second
	// listNewest is how many rows of each kind are watched: the newest, and those that
	// move. Older rows that do not move are not watched; a page asks for them.
	listNewest = 100
)

// List serves GET /api/stream: what changes in the list of runs. It sends the counts and
// the pending approvals at once, then rows as they change, counts, and approvals as they
// come and go.
func (st *Streams) List(w http.ResponseWriter, r *http.Request) error {
	if headOnly(w, r) {
		return nil
	}
	leave, err := st.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	since, err := lastSeen(r)
	if err != nil {
		return err
	}
	sub := newSubscriber()
	hub, shown := st.joinList(sub)
	defer st.leaveList(hub, sub)
	if shown == nil {
		// This client is one of the first and waits for what the hub is about to publish.
		// If it read the store itself, it might get something that the hub never sees and
		// so never takes back.
		if err := hub.firstLook(r.Context()); err != nil {
			return err
		}
	}
	first := append([]frame{{body: []byte("retry: 2000\n\n")}}, shown...)
	if since > 0 {
		missed, err := st.changedSince(r.Context(), store.Time(since))
		if err != nil {
			return err
		}
		first = append(first, missed...)
	}
	s := begin(w)
	if s.send(first...) != nil {
		return nil
	}
	beat := time.NewTicker(st.limits.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case p := <-sub.packets:
			err = s.send(frame{id: p.last, body: p.body})
		case <-beat.C:
			err = s.beat()
		case <-sub.behind:
			return nil // the client comes back and reads the list again
		case <-r.Context().Done():
			return nil
		}
		if err != nil {
			return nil
		}
	}
}

// firstLook waits until the hub has read the store, and returns the error if it could not.
func (hub *listHub) firstLook(ctx context.Context) error {
	select {
	case <-hub.looked:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	hub.streams.mu.Lock()
	defer hub.streams.mu.Unlock()
	return hub.failed
}

// listFrames are the messages that a client begins with: the counts, and what is asked of
// people.
func listFrames(counts client.Counts, open []client.Approval) []frame {
	frames := []frame{newFrame("counts", 0, counts)}
	for i := range open {
		frames = append(frames, newFrame("approval", 0, open[i]))
	}
	return frames
}

// changedSince returns the watched rows that have changed since a returning client was
// last connected.
func (st *Streams) changedSince(ctx context.Context, since store.Time) ([]frame, error) {
	rows, err := st.watchedRows(ctx)
	if err != nil {
		return nil, err
	}
	from := since.Time().Add(-listEvery) // the clocks of others may be slow
	var frames []frame
	for _, run := range rows {
		if run.UpdatedAt.After(from) || run.LastAt.After(from) {
			frames = append(frames, newFrame("run", 0, run))
		}
	}
	return frames, nil
}

// watchedRows reads the rows that are watched.
func (st *Streams) watchedRows(ctx context.Context) (map[string]client.Run, error) {
	rows := map[string]client.Run{}
	for _, f := range []store.Filter{
		{},
		{Statuses: []store.Status{store.Running, store.Resuming}},
		{Statuses: []store.Status{store.Waiting}},
	} {
		f.Limit, f.WithLast = listNewest, true
		page, err := st.Engine.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page.Runs {
			rows[page.Runs[i].ID] = st.Wire.Run(&page.Runs[i])
		}
	}
	return rows, nil
}

// joinList adds a client to the watchers, and returns what the others already know, so
// that many clients cost the store no more than one. The client gets everything that is
// published after that. nil: nothing was published yet.
func (s *Streams) joinList(sub *subscriber) (*listHub, []frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		ctx, stop := context.WithCancel(context.Background())
		s.all = &listHub{streams: s, stop: stop, done: make(chan struct{}), looked: make(chan struct{}), subscribers: map[*subscriber]bool{}, asked: map[string]bool{}}
		go s.all.follow(ctx)
	}
	s.all.subscribers[sub] = true
	return s.all, s.all.shown
}

func (s *Streams) leaveList(hub *listHub, sub *subscriber) {
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

// follow polls the store until the last client has left.
func (hub *listHub) follow(ctx context.Context) {
	defer close(hub.done)
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for failed, first := false, true; ; first = false {
		err := hub.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failed {
			hub.streams.Log.Warn("dashboard: the list of runs cannot be read; it is tried again", "error", err)
			_, p := hub.streams.Problem(err)
			hub.add(newFrame("problem", 0, p))
		}
		failed = err != nil
		hub.publish(err)
		if first {
			close(hub.looked)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look compares the store with what was seen before, and gathers what is new.
func (hub *listHub) look(ctx context.Context) error {
	h, at := hub.streams, time.Now().UnixMicro()
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
			hub.add(newFrame("run", at, run))
		}
	}
	hub.rows = now
	counts, err := h.read.Counts(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(hub.lookAtQueues(ctx), hub.lookAtSchedules(ctx)); err != nil {
		return err
	}
	changed := hub.first == nil || !maps.Equal(counts.Status, hub.counts.Status) || counts.Approvals != hub.counts.Approvals
	if changed {
		hub.add(newFrame("counts", 0, counts))
		hub.counts = counts
	}
	// One question may have replaced another, which no count shows.
	open, asked, err := hub.lookAtApprovals(ctx)
	if err != nil {
		hub.counts = client.Counts{} // so that they are sent again, with the questions
		return err
	}
	if changed || asked {
		hub.first = listFrames(hub.counts, open)
	}
	return nil
}

// whereTheyWent reads the rows that were seen before and are in no list now: most of them
// have ended.
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
	page, err := hub.streams.Engine.List(ctx, store.Filter{IDs: ids, Limit: len(ids), WithLast: true})
	if err != nil {
		return err
	}
	for i := range page.Runs {
		now[page.Runs[i].ID] = hub.streams.Wire.Run(&page.Runs[i])
	}
	return nil
}

// lookAtApprovals gathers which approvals were opened and closed. It returns those that
// are open, and whether they differ from before.
func (hub *listHub) lookAtApprovals(ctx context.Context) (open []client.Approval, changed bool, err error) {
	if open, err = hub.streams.read.Approvals(ctx); err != nil {
		return nil, false, err
	}
	now := map[string]bool{}
	for i := range open {
		if now[open[i].ID] = true; !hub.asked[open[i].ID] {
			hub.add(newFrame("approval", 0, open[i]))
			changed = true
		}
	}
	for id := range hub.asked {
		if !now[id] {
			hub.add(newFrame("answered", 0, map[string]string{"id": id}))
			changed = true
		}
	}
	hub.asked = now
	return open, changed, nil
}

// add gathers a message, to be sent with everything else that one look has seen.
func (hub *listHub) add(f frame) { hub.gathered = append(hub.gathered, f) }

// publish sends what was gathered in a look that ended with err.
func (hub *listHub) publish(err error) {
	p := newPacket(hub.gathered)
	hub.gathered = nil
	hub.streams.mu.Lock()
	defer hub.streams.mu.Unlock()
	hub.shown, hub.failed = hub.first, err
	if len(p.frames) == 0 {
		return
	}
	for sub := range hub.subscribers {
		sub.offer(p)
	}
}
