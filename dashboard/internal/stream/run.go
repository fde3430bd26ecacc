package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A runHub follows one run for all clients that watch it: its log is read once, however
// many there are. It lives as long as it has subscribers.
type runHub struct {
	streams *Streams
	id      string
	stop    context.CancelFunc
	from    int64         // number of the last event before those that it passes on
	ended   chan struct{} // closed when nothing more will come
	err     error         // set before ended is closed; nil: the run has ended

	// Under streams.mu.
	subscribers map[*subscriber]bool
	at          int64 // number of the last event that was passed on
	resting     bool  // the run has failed, and may be resumed
}

// Events are gathered before they are sent: for gatherFor, or with many watchers long
// enough that no more than maxSends messages a second go to all of them. Sending shares
// the machine with the execution of the run.
const (
	gatherFor = 100 * time.Millisecond
	maxSends  = 500
)

// The stream of a failed run stays open for restBeats heartbeats, and the run is read
// every restEvery: it may be resumed.
const (
	restBeats = 20
	restEvery = 500 * time.Millisecond
)

// gather returns how long events are gathered for this many watchers.
func gather(watchers int) time.Duration {
	return max(gatherFor, time.Duration(watchers)*time.Second/maxSends)
}

// Run serves GET /api/runs/{id}/stream. It sends, in this order: the row; which process
// executes the run, or that none does; the current questions to people; the events after
// Last-Event-ID; and then what happens. The stream ends with the run, or after a heartbeat
// in which no process has executed it; a client that comes back then begins with the
// current state. When a run fails, the stream says so and stays open for a while, to show
// a resume. A client that leaves never touches the run.
func (st *Streams) Run(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	after, err := lastSeen(r)
	if err != nil {
		return err
	}
	if headOnly(w, r) {
		return nil
	}
	leave, err := st.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	sub := newSubscriber()
	hub, err := st.joinRun(r.Context(), id, sub)
	if err != nil {
		return err
	}
	defer func() { st.leaveRun(hub, sub) }()

	run, err := st.read.Run(r.Context(), id)
	if err != nil {
		return err
	}
	s := begin(w)
	if s.last = after; after > run.LastSeq {
		after, s.last = 0, 0 // it has seen an earlier run with this id
	}
	first := []frame{{body: []byte("retry: 2000\n\n")}, newFrame("run", 0, run), executorFrame(&run)}
	for i := range run.Approvals {
		first = append(first, newFrame("approval", 0, run.Approvals[i]))
	}
	if s.send(first...) != nil {
		return nil
	}
	if after < sub.from {
		if err := st.catchUp(r, s, id, sub.from); err != nil {
			s.fail(st, err)
			return nil
		}
	}
	if sub.resting && s.send(failedFrame(id)) != nil {
		return nil
	}
	st.relay(r, s, hub, sub, run.Nobody)
	return nil
}

// relay sends what comes until the client leaves or the run ends. It also ends the stream,
// and says so, after a whole heartbeat in which no process has executed the run: nothing
// might ever come.
func (st *Streams) relay(r *http.Request, s *sink, hub *runHub, sub *subscriber, nobody string) {
	beat := time.NewTicker(st.limits.Heartbeat)
	defer beat.Stop()
	idle := nobody != "" // at the last look
	rested := 0          // heartbeats since the run has failed
	for {
		select {
		case p := <-sub.packets:
			if s.pass(p) != nil {
				return
			}
			idle, rested = false, 0
		case <-sub.behind:
			// Too slow for the hub: the client comes back with Last-Event-ID and
			// is served from the store.
			return
		case <-hub.ended:
			st.finish(s, hub, sub)
			return
		case <-beat.C:
			if !hub.rests() {
				rested = 0
			} else if rested++; rested >= restBeats {
				_ = s.send(endFrame(hub.id, ""))
				return
			}
			now, err := st.nobodyNow(r.Context(), hub.id)
			switch {
			case err == nil && now != "" && idle && len(sub.packets) == 0:
				_ = s.send(executorNow(now), endFrame(hub.id, now))
				return
			case err == nil && now != nobody && !hub.rests():
				nobody = now
				err = s.send(executorNow(now))
			default:
				err = s.beat()
			}
			if err != nil {
				return
			}
			idle = nobody != ""
		case <-r.Context().Done():
			return
		}
	}
}

// finish sends what is left of a run that has ended, and then that it has ended.
func (st *Streams) finish(s *sink, hub *runHub, sub *subscriber) {
	for {
		select {
		case p := <-sub.packets:
			if s.pass(p) != nil {
				return
			}
			continue
		default:
		}
		break
	}
	if hub.err != nil {
		s.fail(st, hub.err)
		return
	}
	_ = s.send(endFrame(hub.id, ""))
}

// endFrame returns the last message of a stream: the run has ended, or no process executes
// it, and why.
func endFrame(id, nobody string) frame {
	if nobody == "" {
		return newFrame("end", 0, map[string]any{"run_id": id})
	}
	return newFrame("end", 0, map[string]any{"run_id": id, "executed": false, "nobody": nobody})
}

// failedFrame says that the run has ended and that the stream goes on: a failed run may be
// resumed. A client that waits for nothing but the end has seen it.
func failedFrame(id string) frame {
	return newFrame("end", 0, map[string]any{"run_id": id, "resumable": true})
}

// executorFrame says whether the run is being executed; one that has ended is not.
func executorFrame(run *client.Run) frame {
	return newFrame("executor", 0, map[string]any{"executed": run.Nobody == "" && !run.Terminal(), "nobody": run.Nobody})
}

// executorNow is executorFrame for a run that has not ended.
func executorNow(nobody string) frame { return executorFrame(&client.Run{Nobody: nobody}) }

func (st *Streams) nobodyNow(ctx context.Context, id string) (string, error) {
	log, err := st.Engine.Store().Load(ctx, id, read.RowOnly)
	if err != nil {
		return "", err
	}
	executors, err := st.read.Executors(ctx)
	if err != nil {
		return "", err
	}
	return view.Nobody(&log.Run, executors), nil
}

// catchUp sends the events, up to one, that were recorded before the client came. A stream
// never has payloads: it is the same for all clients, and not all may see them.
func (st *Streams) catchUp(r *http.Request, s *sink, id string, to int64) error {
	after := s.last
	for ev, err := range st.Engine.Watch(r.Context(), id, after) {
		switch {
		case err != nil:
			return err
		case ev.Seq <= after:
			continue // announced before
		}
		if err := s.send(st.eventFrame(r.Context(), id, &ev)); err != nil {
			return err
		}
		if ev.Seq >= to {
			break
		}
	}
	return nil
}

// eventFrame is the message of an event.
func (st *Streams) eventFrame(ctx context.Context, id string, ev *store.Event) frame {
	wire := st.Wire.Event(id, ev, false)
	wire.Expands = st.read.Skipped(ctx, id, ev)
	return newFrame("event", ev.Seq, wire)
}

// joinRun adds a subscriber to the hub of a run. The first one makes the hub.
func (s *Streams) joinRun(ctx context.Context, id string, sub *subscriber) (*runHub, error) {
	if hub := s.tryJoin(id, sub, nil); hub != nil {
		return hub, nil
	}
	log, err := s.Engine.Store().Load(ctx, id, read.RowOnly)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	hub := &runHub{streams: s, id: id, ended: make(chan struct{}), subscribers: map[*subscriber]bool{}}
	if log.Run.Last != nil {
		hub.from, hub.at = log.Run.Last.Seq, log.Run.Last.Seq
	}
	return s.tryJoin(id, sub, hub), nil
}

// tryJoin joins the hub there is, or hub if there is none.
func (s *Streams) tryJoin(id string, sub *subscriber, hub *runHub) *runHub {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.runs[id]; there != nil {
		hub = there
	} else if hub != nil {
		ctx, stop := context.WithCancel(context.Background())
		hub.stop = stop
		s.runs[id] = hub
		go hub.follow(ctx)
	}
	if hub != nil {
		hub.subscribers[sub], sub.from, sub.resting = true, hub.at, hub.resting
	}
	return hub
}

// leaveRun ends a subscription, and the hub with the last one.
func (s *Streams) leaveRun(hub *runHub, sub *subscriber) {
	s.mu.Lock()
	delete(hub.subscribers, sub)
	last := len(hub.subscribers) == 0
	if last && s.runs[hub.id] == hub {
		delete(s.runs, hub.id)
	}
	s.mu.Unlock()
	if last {
		hub.stop()
		<-hub.ended
	}
}

// follow passes on what happens to the run until the last client has left or the run has
// ended. The first event after a quiet time is sent at once; later events are gathered for
// a moment, so that a busy run costs a few reads a second, and each client as many writes.
func (hub *runHub) follow(ctx context.Context) {
	defer hub.streams.retire(hub)
	for from := hub.from; ; {
		if from, hub.err = hub.life(ctx, from); hub.err != nil {
			return
		}
		if failed, err := hub.rest(ctx, from); err != nil || !failed {
			hub.err = err
			return
		}
	}
}

// closedEvery: one in this many polls of a failed run also checks whether the engine was
// closed.
const closedEvery = 8

// rest waits, after the end of a failed run, until the run is resumed. It returns false
// for a run that has ended for good, and if another run has its id by now.
func (hub *runHub) rest(ctx context.Context, at int64) (failed bool, err error) {
	var born store.Time
	for looks := 0; ; looks++ {
		if looks > 0 {
			nap(ctx, restEvery)
		}
		if looks%closedEvery == closedEvery-1 {
			if health, _ := hub.streams.Engine.Health(ctx); health.Closing {
				return false, durable.ErrClosed
			}
		}
		if ctx.Err() != nil {
			return false, nil // no client is left
		}
		log, err := hub.streams.Engine.Store().Load(ctx, hub.id, read.RowOnly)
		switch {
		case ctx.Err() != nil:
			return false, nil
		case err != nil:
			return false, fmt.Errorf("run %s: %w", hub.id, web.Unavailable(err))
		}
		row := &log.Run
		if looks == 0 {
			born = row.CreatedAt
		}
		silent := row.Last == nil || row.Last.Seq <= at
		switch {
		case row.Last == nil, row.CreatedAt != born:
			return false, nil
		case silent && row.Status == store.Failed:
			if looks == 0 {
				hub.publish([]frame{failedFrame(hub.id)}, true)
			}
			continue
		case silent && row.Status.Terminal():
			return false, nil
		}
		run := hub.streams.Wire.Run(row)
		if executors, err := hub.streams.read.Executors(ctx); err == nil {
			run.Nobody = view.Nobody(row, executors)
		}
		hub.publish([]frame{newFrame("run", 0, run), executorFrame(&run)}, false)
		return true, nil
	}
}

// life passes on what happens after an event, until the run ends, and returns the number
// of the last event.
func (hub *runHub) life(ctx context.Context, from int64) (last int64, err error) {
	var gathered, row []frame
	there := from // events up to this one are in the store already
	at := from
	for ev, err := range hub.streams.Engine.Watch(ctx, hub.id, from) {
		if err != nil {
			hub.publish(append(gathered, row...), false)
			return at, err
		}
		if ev.Seq <= from {
			continue // announced: each client gets it when it connects
		}
		at = ev.Seq
		gathered = append(gathered, hub.streams.eventFrame(ctx, hub.id, &ev))
		if ev.Seq < there {
			continue
		}
		hub.publish(append(gathered, row...), false)
		gathered = nil
		if !ends(ev.Type) {
			nap(ctx, gather(hub.watchers()))
		}
		var last int64
		if row, last = hub.row(ctx); last <= ev.Seq {
			hub.publish(row, false) // with no event to go with
			row = nil
		}
		there = max(there, last)
	}
	hub.publish(append(gathered, row...), false)
	return at, nil
}

// ends reports whether a run ends with such an event, after which there is nothing to
// gather.
func ends(t store.Type) bool {
	return t == store.WorkflowCompleted || t == store.WorkflowFailed || t == store.WorkflowCancelled
}

func nap(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// row returns a message with the row as it is now, and the number of its last event.
func (hub *runHub) row(ctx context.Context) (row []frame, last int64) {
	log, err := hub.streams.Engine.Store().Load(ctx, hub.id, read.RowOnly)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, durable.ErrNotFound) {
			hub.streams.Log.Warn("dashboard: a run that is watched cannot be read", "run", hub.id, "error", err)
		}
		return nil, 0
	}
	if log.Run.Last != nil {
		last = log.Run.Last.Seq
	}
	return []frame{newFrame("run", 0, hub.streams.Wire.Run(&log.Run))}, last
}

// watchers returns how many clients watch the run.
func (hub *runHub) watchers() int {
	hub.streams.mu.Lock()
	defer hub.streams.mu.Unlock()
	return len(hub.subscribers)
}

func (hub *runHub) rests() bool {
	hub.streams.mu.Lock()
	defer hub.streams.mu.Unlock()
	return hub.resting
}

// publish sends messages to all clients; resting says whether the run then rests.
func (hub *runHub) publish(frames []frame, resting bool) {
	if len(frames) == 0 {
		return
	}
	p := newPacket(frames)
	hub.streams.mu.Lock()
	defer hub.streams.mu.Unlock()
	hub.at, hub.resting = max(hub.at, p.last), resting
	for sub := range hub.subscribers {
		sub.offer(p)
	}
}

// retire takes a hub that has ended out of the list, so that a later client gets a new
// one: a failed run may be resumed.
func (s *Streams) retire(hub *runHub) {
	s.mu.Lock()
	if s.runs[hub.id] == hub {
		delete(s.runs, hub.id)
	}
	s.mu.Unlock()
	close(hub.ended)
}
