package durable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/mail"
	"github.com/holdfast-dev/holdfast/store"
)

// inbox is what a run has received and not consumed, and how it reads more.
type inbox struct {
	mail.Box
	run     *run
	reading chan struct{} // holds a value while the store is read: by one at a time
	// asked: a goroutine is about to read the store.
	asked atomic.Bool
	// sending is how many changes with messages for the run this engine has in flight. It
	// knows of them, and what it hears of the run until they have landed is only noted: told,
	// the number of the last message that it has heard of.
	sending atomic.Int32
	told    atomic.Int64
	// delivering is held while messages are sorted: what is noted as seen was acted on.
	delivering sync.Mutex
}

// sending notes that messages are about to be sent, until done is called, which lets their
// receivers read what they have heard of meanwhile.
func (mr *mailroom) sending(list []store.Message) (done func()) {
	var to []*inbox
	for i := range list {
		if r := mr.eng.roster.active(list[i].To); r != nil {
			r.inbox.sending.Add(1)
			to = append(to, &r.inbox)
		}
	}
	if to == nil {
		return func() {}
	}
	return func() {
		for _, b := range to {
			if b.sending.Add(-1) == 0 && b.told.Swap(0) > b.Seen() {
				b.fetchLater()
			}
		}
	}
}

// hears notes that the engine has heard of a message with this number; negative: of one whose
// number is unknown. It reports whether the store must be read now: the run does not know the
// message, and none of this engine is on its way.
func (b *inbox) hears(last int64) bool {
	if last < 0 {
		last = math.MaxInt64
	}
	if last <= b.Seen() {
		return false
	}
	if b.sending.Load() == 0 {
		return true
	}
	for was := b.told.Load(); was < last && !b.told.CompareAndSwap(was, last); {
		was = b.told.Load()
	}
	return b.sending.Load() == 0 && b.told.Swap(0) > b.Seen()
}

// fetchAll reads what these runs have not seen, in one call of the store.
func (mr *mailroom) fetchAll(list []*inbox) {
	var ready []*inbox
	for _, b := range list {
		if b.run.isLoaded() {
			ready = append(ready, b)
		} else {
			b.fetchLater()
		}
	}
	if len(ready) == 0 {
		return
	}
	mr.eng.roster.background(func() {
		loads := make([]store.RunCursor, len(ready))
		for i, b := range ready {
			loads[i] = store.RunCursor{RunID: b.run.id, Cursor: store.Cursor{NoEvents: true, OnlyInbox: true, AfterMessage: b.Seen()}}
		}
		for i, l := range store.LoadAll(mr.eng.life.loops, mr.eng.store, loads) {
			b := ready[i]
			if l.Err != nil || b.run.dead.Load() != nil || b.accept(l.History.Inbox) != nil || b.run.unloaded() {
				b.fetchLater() // which knows what to do about it
			}
		}
	})
}

// accept takes over messages that were read from the store. The error says that one is damaged;
// then it takes none.
func (b *inbox) accept(list []store.Message) error {
	r := b.run
	if err := checkMail(r.id, r.past, list); err != nil {
		return err
	}
	b.deliver(list)
	r.eng.archiver.Want(r.id, store.Waiting) // a message that no wait wants changes nothing else
	return nil
}

// hand gives the run a message that this engine has just sent to it, as the store has it.
// It returns false if the run must read the store: if it has not read all messages before
// this one, which others may have sent, or is not ready to. Nothing tells hand whether
// another executor has taken the run since; what the run does because of the message is
// recorded first, and that is fenced. hand may be called under the committer's mutex.
func (b *inbox) hand(m *store.Message, seq int64) bool {
	r := b.run
	if m.Kind == store.KindCancel || m.Kind == store.KindPause || !r.isLoaded() || r.dead.Load() != nil {
		return false
	}
	got := *m
	got.Seq, got.IfLive = seq, false
	if checkMail(r.id, r.past, []store.Message{got}) != nil || !b.delivering.TryLock() {
		return false
	}
	next := b.ReceiveNext(&got, r.past.Consumed)
	if next {
		b.Settle()
	}
	b.delivering.Unlock()
	if !next {
		return false
	}
	if r.unloaded() { // in the middle of this
		r.eng.dormitory.rouseFor(r.id, seq)
	}
	r.eng.archiver.Want(r.id, store.Waiting) // a message that no wait wants changes nothing else
	return true
}

// offer lets the run record a message that is about to be sent to it together with its receipt, if
// one of its waits is to get it: one commit instead of two. If recorded is false, nothing is in the
// store, or the message under its id. ctx ends the wait, not the record. The id of m must be new.
func (b *inbox) offer(ctx context.Context, m *store.Message) (recorded bool, err error) {
	r := b.run
	if ctx.Err() != nil || errInTransaction(ctx) != nil || !r.isLoaded() || r.dead.Load() != nil || !r.eng.committer.Idle() {
		return false, nil
	}
	o := b.Offer(m)
	if o == nil {
		return false, nil
	}
	select {
	case recorded = <-o.Recorded():
		return recorded, nil
	case <-ctx.Done():
	}
	select {
	case recorded = <-o.Recorded():
		return recorded, nil
	default:
		return false, fmt.Errorf("%w: %w", store.ErrUnknown, context.Cause(ctx))
	}
}

// fetchLater is fetch on a goroutine of its own, unless one is about to read anyway.
func (b *inbox) fetchLater() {
	if !b.asked.Swap(true) {
		b.run.eng.roster.background(b.fetch)
	}
}

// fetchNow is fetch for a goroutine of the run, which waits for it.
func (b *inbox) fetchNow() {
	defer b.run.bodies.asks()()
	b.fetch()
}

// fetch reads what has come since the store was last asked.
func (b *inbox) fetch() {
	r := b.run
	read := false
	defer func() {
		b.asked.Store(false)
		switch { // it may have been unloaded in the middle of this
		case !r.unloaded():
		case read:
			r.eng.dormitory.rouseFor(r.id, b.Seen())
		default:
			r.eng.mailroom.lookLater(r.id)
		}
	}()
	select {
	case <-r.loaded: // only then is it known which messages were consumed
	case <-r.gone:
		return
	}
	b.reading <- struct{}{}
	defer func() { <-b.reading }()
	for pause := 10 * time.Millisecond; r.dead.Load() == nil; pause = min(2*pause, time.Second) {
		ctx := r.ctx
		if ctx.Err() != nil {
			ctx = r.eng.life.runs // it was stopped, but there may be more to read than the stop
		}
		b.asked.Store(false)
		h, err := r.eng.store.Load(ctx, r.id, store.Cursor{NoEvents: true, OnlyInbox: true, AfterMessage: b.Seen()})
		if err == nil {
			if err := b.accept(h.Inbox); err != nil {
				_ = r.die(&death{kind: deathParked, code: CodeDamaged, err: err})
				return
			}
			read = true
			return
		}
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrClosed) || r.eng.life.runs.Err() != nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-r.gone:
		}
	}
}

// deliver sorts new messages: a cancel and a request to pause act at once, the rest
// stay in the inbox until a wait takes them.
func (b *inbox) deliver(list []store.Message) {
	r := b.run
	b.delivering.Lock()
	defer b.delivering.Unlock()
	defer b.Settle()
	b.Receive(list, r.past.Consumed)
	for i := range list {
		if m := &list[i]; m.Kind == store.KindCancel && !r.past.Consumed(m) {
			d, _ := history.DataOfMessage(m) // an unreadable reason is no reason
			// Whether the deadline or the cancel came first must not depend on when this
			// code looks: a replay finds both.
			r.stop.ifLate(m.At)
			r.stop.cancel(d.Reason)
		}
	}
	for i := range list {
		if m := &list[i]; m.Kind == store.KindPause && !r.past.Consumed(m) {
			d, _ := history.DataOfMessage(m)
			if r.stop.pause(d.Reason) {
				b.Stops(m)
			}
		}
	}
}

// readCancel reads why the run was cancelled, even when fetch reads nothing any more
// because the branches left behind were ended, or a pause has come.
func (b *inbox) readCancel() {
	r := b.run
	defer r.bodies.asks()()
	if h, err := r.eng.store.Load(r.eng.life.writes, r.id, store.Cursor{NoEvents: true}); err == nil {
		b.deliver(h.Inbox)
	}
}
