package durable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// inbox is what a run has received and not consumed. The messages stay in the
// store as long as the run; this is their place while it is executed.
type inbox struct {
	fetch sync.Mutex // one reader of the store at a time

	mu       sync.Mutex
	last     int64 // number of the last message read
	messages []store.Message
	waiters  map[*mailWait]struct{}
	handed   int // messages that were given to a wait which has not left yet
}

// mailWait is a wait for a message.
type mailWait struct {
	wants func(*store.Message) bool
	ready chan struct{} // closed when got is set
	got   *store.Message
}

// receive takes over messages that were read from the store, skipping those
// that are known or were consumed.
func (b *inbox) receive(list []store.Message, consumed func(*store.Message) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range list {
		m := list[i]
		if m.Seq <= b.last {
			continue
		}
		b.last = m.Seq
		if consumed(&m) {
			continue
		}
		b.messages = append(b.messages, m)
	}
	for w := range b.waiters {
		b.offer(w)
	}
}

// offer gives w the oldest message it wants. The mutex is held.
func (b *inbox) offer(w *mailWait) {
	for i := range b.messages {
		if w.wants(&b.messages[i]) {
			m := b.messages[i]
			b.messages = append(b.messages[:i:i], b.messages[i+1:]...)
			w.got = &m
			b.handed++
			delete(b.waiters, w)
			close(w.ready)
			return
		}
	}
}

// ask registers a wait; what is in the inbox already is given at once.
func (b *inbox) ask(wants func(*store.Message) bool) *mailWait {
	w := &mailWait{wants: wants, ready: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiters == nil {
		b.waiters = map[*mailWait]struct{}{}
	}
	b.waiters[w] = struct{}{}
	b.offer(w)
	return w
}

// leave ends a wait. A message it was given and did not consume goes back to its
// place.
func (b *inbox) leave(w *mailWait, consumed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiters, w)
	if w.got == nil {
		return
	}
	b.handed--
	if consumed {
		return
	}
	at := 0
	for at < len(b.messages) && b.messages[at].Seq < w.got.Seq {
		at++
	}
	b.messages = append(b.messages[:at:at], append([]store.Message{*w.got}, b.messages[at:]...)...)
	for other := range b.waiters {
		b.offer(other)
	}
}

// fetchMail reads what has come into r's inbox since it was last read.
func (r *run) fetchMail() {
	b := &r.inbox
	select {
	case <-r.loaded: // only then is it known which messages were consumed
	case <-r.gone:
		return
	}
	b.fetch.Lock()
	defer b.fetch.Unlock()
	for pause := 10 * time.Millisecond; r.dead.Load() == nil; pause = min(2*pause, time.Second) {
		b.mu.Lock()
		after := b.last
		b.mu.Unlock()
		h, err := r.eng.store.Load(r.ctx, r.id, store.Cursor{NoEvents: true, AfterMessage: after})
		if err == nil {
			r.deliver(h.Inbox)
			return
		}
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled) {
			return
		}
		select {
		case <-time.After(pause):
		case <-r.gone:
		}
	}
}

// deliver sorts new messages: a cancel and a request to pause act at once, the
// rest waits for whoever asks.
func (r *run) deliver(list []store.Message) {
	r.inbox.receive(list, r.past.consumed)
	for i := range list {
		if m := &list[i]; m.Kind == store.KindCancel && !r.past.consumed(m) {
			d, _ := dataOfMessage(m) // an unreadable reason is no reason
			r.cancelBy(d.Reason)
		}
	}
	for i := range list {
		if m := &list[i]; m.Kind == store.KindPause && !r.past.consumed(m) {
			d, _ := dataOfMessage(m)
			r.pauseBy(d.Reason)
		}
	}
}

// withdraw ends a wait that has run out; it reports whether a message came in
// the same moment, which then counts.
func (b *inbox) withdraw(w *mailWait) (came bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiters, w)
	return w.got != nil
}

// noticed returns the number of the last message that was read, and how many are
// on their way to a wait.
func (b *inbox) noticed() (last int64, handed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last, b.handed
}

// seen returns the number of the last message that was noticed.
func (b *inbox) seen() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}
