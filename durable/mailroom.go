package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/requests"
	"github.com/holdfast-dev/holdfast/store"
)

// A mailroom brings messages to the runs of this engine, and so wakes them. A signal takes
// this way:
//
//	Signal       (signal.go) checks and encodes it
//	send         offers it to the run, if that is executed here and waits for it: then the run
//	             records the message with its receipt (inbox.offer, awaiting.accept), and that is
//	             all. Else it records it in the store, whose answer says which number it got
//	sent         knows whether its run is executed here
//	inbox.hand   gives it to that run, if the run has read all messages before it, and
//	             wakes the wait that wants it: await.go goes on. The store is not read
//
// Where that is not so, or the message was sent by another process:
//
//	arrived      after a notice of the store, or counted, after a heartbeat: the run that it
//	             is for may have mail; one that is unloaded is loaded (reload.go)
//	fetchAll     reads what the runs that a notice tells of have not seen, in one statement
//	inbox.fetch  reads it for one run, until that succeeds
//	deliver      cancels and pauses act at once, the rest goes into the run's mail.Box,
//	             whose offer wakes the wait
type mailroom struct {
	eng      *Engine
	ring     chan struct{}     // some run may have mail
	requests *requests.Drainer // nil: none by SQL are answered here
}

// send delivers a message and wakes its receiver if it is here.
func (mr *mailroom) send(ctx context.Context, m store.Message) (err error) {
	if err := store.CheckRunID(m.To); err != nil {
		return err
	}
	unique := m.ID == ""
	if unique {
		// Known before it is sent, so that it can be sent again safely.
		m.ID = newExecutorID()
	}
	end := mr.eng.tracing.StartSend(ctx, &m)
	defer func() { end(err) }()
	mr.seal(&m)
	change := store.Change{Send: []store.Message{m}, Sent: make([]int64, 1)}
	defer mr.sending(change.Send)()
	recorded := false
	if r := mr.eng.roster.active(m.To); r != nil && unique && m.Kind == store.KindSignal {
		recorded, err = r.inbox.offer(ctx, &m)
	}
	if recorded {
		return nil
	}
	if err == nil {
		err = mr.eng.commitOne(ctx, change)
	}
	var status *store.StatusError
	switch {
	case err == nil:
		mr.sent(&m, change.Sent[0])
		return nil
	case errors.As(err, &status):
		return &NotRunningError{RunID: m.To, Status: status.Status}
	}
	err = storeError(err)
	if errors.Is(err, store.ErrUnknown) && (m.Kind == store.KindSignal || m.Kind == store.KindRequest) {
		return &UndecidedError{RunID: m.To, Name: m.Name, ID: m.ID, Request: m.Kind == store.KindRequest, Err: err}
	}
	return fmt.Errorf("durable: sending %s %q to run %s: %w", m.Kind, m.Name, m.To, err)
}

// seal seals the payload of a message that is about to be sent, and then the
// message.
func (mr *mailroom) seal(m *store.Message) { commit.SealMessage(mr.eng.sealer, m) }

// arrived lets those runs fetch their mail of which a notice says that they may have some;
// if it names none, the loop finds out which.
func (mr *mailroom) arrived(n store.Notice) {
	if len(n.RunIDs) == 0 {
		nudge.Send(mr.ring)
	}
	var asleep []string
	var awake []*inbox
	for i, id := range n.RunIDs {
		r, dormant := mr.eng.roster.find(id)
		last := int64(-1)
		switch {
		case n.News != 0 && n.News&store.NewsMail == 0:
			last = 0
		case i < len(n.Mail):
			last = n.Mail[i]
		}
		// A notice about a run that is ending tells of its own end, except for a run
		// that makes way, which is loaded again.
		switch {
		case last == 0 || r == nil && !dormant:
		case dormant || r.unloaded():
			if last > 0 {
				mr.counted(id, last)
			} else {
				asleep = append(asleep, id)
			}
		case !r.ending.Load() && r.inbox.hears(last):
			awake = append(awake, &r.inbox)
		}
	}
	if len(asleep) > 0 {
		// The notice may be about something else. Looking first saves loading a run for
		// nothing.
		mr.lookLater(asleep...)
	}
	if len(awake) > 0 {
		mr.fetchAll(awake)
	}
}

// counted lets a run of ours fetch its mail unless it has seen this many messages.
func (mr *mailroom) counted(id string, inbox int64) {
	if r := mr.eng.dormitory.rouseFor(id, inbox); r != nil {
		r.inbox.fetchLater()
	}
}

// mailPause is the least time between two looks for mail, so that a store which
// is busy with other processes' runs does not spend its time answering.
const mailPause = 5 * time.Millisecond

// loop asks the store, when a notice does not say for whom it is, which runs
// of this executor have mail.
func (mr *mailroom) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-mr.ring:
		}
		mr.look(ctx, store.Filter{Owners: []string{mr.eng.id}, Mail: true, Limit: 500})
		sleep(ctx, mailPause)
	}
}

// look lets the runs that match fetch what they have not seen. After a failure it
// asks for a heartbeat, which is tried until the store answers and then finds the rest.
func (mr *mailroom) look(ctx context.Context, f store.Filter) {
	for row, err := range mr.eng.runsOf(ctx, f) {
		if err != nil {
			if ctx.Err() == nil {
				mr.eng.heart.BeatSoon()
			}
			return
		}
		mr.counted(row.ID, row.Inbox)
	}
}

// lookLater is look, on a goroutine of its own, for runs to which something unknown has
// happened.
func (mr *mailroom) lookLater(ids ...string) {
	mr.eng.roster.background(func() { mr.look(mr.eng.life.loops, store.Filter{IDs: ids, Mail: true, Limit: 500}) })
}

// sent makes the receiver of a message that was just sent go on, without waiting for a
// notice of the store, which may be lost or come before this engine listens. seq is the
// number of the message; 0: it is not known, or the message was dropped. sent may be called
// under the committer's mutex.
func (mr *mailroom) sent(m *store.Message, seq int64) {
	r, dormant := mr.eng.roster.listening(m.To)
	switch {
	case r != nil && seq > 0 && r.inbox.hand(m, seq):
	case r == nil && dormant && seq > 0:
		mr.counted(m.To, seq)
	default:
		mr.sentTo(m.To, r, dormant)
	}
}

// toldOf is sent for a message of which only the receiver is known.
func (mr *mailroom) toldOf(id string) {
	r, dormant := mr.eng.roster.listening(id)
	mr.sentTo(id, r, dormant)
}

// sentTo lets the receiver of a message read it. One that is not executed here may have
// lost its owner, and is then due.
func (mr *mailroom) sentTo(id string, r *run, dormant bool) {
	switch {
	case r != nil:
		r.inbox.fetchLater()
	case dormant:
		mr.lookLater(id)
	case mr.eng.claims.Recovered():
		mr.eng.claims.Wake()
	}
}

// listen passes on the notices of the store.
func (mr *mailroom) listen(ctx context.Context, n store.Notifier) {
	for ctx.Err() == nil {
		err := n.Notify(ctx, func(notice store.Notice) {
			if notice.Requests || len(notice.RunIDs) == 0 {
				mr.requests.Wake()
			}
			if notice.Requests && len(notice.RunIDs) == 0 {
				return
			}
			mr.eng.watchers.notify(notice.RunIDs)
			mr.arrived(notice)
			const created = store.NewsClaimable | store.NewsStatus | store.NewsTime // what a creation may be told as
			if others := slices.DeleteFunc(slices.Clone(notice.RunIDs), mr.eng.roster.isOwn); notice.News != 0 && notice.News&^created == 0 {
				if notice.RunIDs = others; len(others) == 0 {
					return
				}
			}
			mr.eng.claims.Heard(notice, func(id string) bool {
				r, dormant := mr.eng.roster.listening(id)
				return r != nil || dormant
			})
		})
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return
		}
		mr.eng.log.Warn("durable: notices of the store ended; they are taken up again", "error", err)
		sleep(ctx, time.Second)
	}
}
