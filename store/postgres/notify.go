package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

const (
	// maxPayload is a little less than what NOTIFY takes (7,999 bytes).
	maxPayload = 7900
	// tellEvery is the minimum time between two messages to other processes, so
	// that what a batch of commits has to tell goes in one.
	tellEvery = 2 * time.Millisecond
	// atOnce messages are sent, and passed on where they are heard, without delay; what
	// follows faster than one per thenEvery is collected. It is the same measure on both
	// sides, because a busy store would spend a fifth of its time on messages that their
	// hearers collect anyway. The hearers need it too: any role of the database may send any number.
	atOnce    = 8
	thenEvery = 25 * time.Millisecond
)

// notices reports changes to the Notify calls of this handle at once, and to other
// processes by NOTIFY. NOTIFY is sent after the commit, on another connection:
// inside the transaction it would hold a server-wide lock while the commit waits
// for the disk. A crash in between loses the notice; the next beat makes up for it.
type notices struct {
	store  *Store
	handle string // distinguishes our own notices from others'
	stop   chan struct{}
	wake   chan struct{} // holds one token while there is something to send
	sender sync.WaitGroup

	mu      sync.Mutex
	hearers map[*hearer]struct{}
	out     notice.News // to be sent to other processes
	started bool
	in      notice.News // heard from others and not passed on yet
	full    time.Time   // when all messages heard are made up for; see delay
	passer  *time.Timer
	closed  bool
}

// hearer is one Notify call.
type hearer struct {
	notice.News
	wake chan struct{}
}

func newNotices(s *Store) *notices {
	return &notices{
		store: s, handle: rand.Text()[:10], stop: make(chan struct{}), wake: make(chan struct{}, 1), hearers: map[*hearer]struct{}{},
	}
}

// tell reports news; it need not be any.
func (n *notices) tell(news notice.News) {
	if !news.Empty() {
		n.spread(news)
	}
}

// tellAll sends the notice to look at everything.
func (n *notices) tellAll() { n.spread(notice.Everything()) }

func (n *notices) spread(news notice.News) {
	n.deliver(news)
	if !n.store.genuine {
		return // no NOTIFY there
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.out.Merge(news)
	if !n.started {
		n.started = true
		n.sender.Go(n.send)
	}
	nudge.Send(n.wake)
}

// deliver hands news to the Notify calls of this handle.
func (n *notices) deliver(news notice.News) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deliverLocked(news)
}

func (n *notices) deliverLocked(news notice.News) {
	for h := range n.hearers {
		h.Merge(news)
		nudge.Send(h.wake)
	}
}

// send is the goroutine that notifies other processes.
func (n *notices) send() {
	var full time.Time
	for {
		select {
		case <-n.wake:
			var wait time.Duration
			if wait, full = delay(time.Now(), full); wait > 0 {
				n.rest(wait)
			}
			n.flush(context.Background())
		case <-n.stop:
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			n.flush(ctx)
			cancel()
			return
		}
		n.rest(tellEvery)
	}
}

// rest waits, unless the store is closed.
func (n *notices) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-n.stop:
	}
}

func (n *notices) flush(ctx context.Context) {
	n.mu.Lock()
	out := n.out.Take()
	n.mu.Unlock()
	if out.Empty() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, payload := range out.Messages(n.handle, maxPayload) {
		// If sending fails, the others find the change at their next beat.
		if n.sendPrepared(ctx, payload) != nil && n.sendPlain(ctx, payload) != nil {
			return
		}
	}
}

// sendPrepared sends a message on a connection that has the statement prepared: one round trip, where
// it is two otherwise. It fails if all such connections are for writes, which do not wait for it.
func (n *notices) sendPrepared(ctx context.Context, payload string) error {
	s := n.store
	if s.readers == s.writers {
		return store.ErrUnsupported
	}
	return s.with(ctx, s.readers, func(w *wire) error {
		w.ctx = ctx
		return w.query("notify", func([]driverValue) error { return nil }, n.channel(), payload)
	})
}

// sendPlain does it on any connection. It does no harm if a message is sent twice, by database/sql or
// because sendPrepared had failed after all.
func (n *notices) sendPlain(ctx context.Context, payload string) error {
	n.store.count("notify")
	_, err := n.store.db.ExecContext(ctx, n.store.sql.Text("notify"), n.channel(), payload)
	return err
}

// The channel is named after the schema; the database is implied.
func (n *notices) channel() string {
	return fmt.Sprintf("durable_%08x", crc32.ChecksumIEEE([]byte(n.store.schema)))
}

// inTx replaces the handle in the messages of a user's transaction: they are news
// to the sending handle too, and only once the transaction commits.
const inTx = "tx"

// hear processes a message of another process.
func (n *notices) hear(payload string) {
	if from, news := notice.Parse(payload); from != n.handle { // its own are already reported
		n.pass(news)
	}
}

// requestsChannel is where the trigger of the requests table says in which schema a
// request was inserted.
const requestsChannel = "durable_requests"

// hearRequests processes a message of that trigger.
func (n *notices) hearRequests(schema string) {
	if schema == n.store.schema {
		n.pass(notice.Requests())
	}
}

// pass delivers what was heard, either at once or together with what arrives until
// it is due.
func (n *notices) pass(news notice.News) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	waiting := !n.in.Empty()
	n.in.Merge(news)
	if waiting {
		return // together with what is already waiting
	}
	var wait time.Duration
	if wait, n.full = delay(time.Now(), n.full); wait > 0 {
		n.passer = time.AfterFunc(wait, n.passOn)
		return
	}
	n.passLocked()
}

// delay returns how long to wait before a message is sent or passed on, and the new value
// of full: each message takes thenEvery to make up for, and at most atOnce may
// be outstanding.
func delay(now, full time.Time) (wait time.Duration, next time.Time) {
	if full.Before(now) {
		full = now
	}
	next = full.Add(thenEvery)
	return max(0, next.Sub(now)-atOnce*thenEvery), next
}

func (n *notices) passOn() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.passLocked()
}

func (n *notices) passLocked() {
	if news := n.in.Take(); !news.Empty() {
		n.deliverLocked(news)
	}
}

func (n *notices) close() {
	close(n.stop)
	n.sender.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.passer != nil {
		n.passer.Stop()
	}
}

// HearsRequests implements store.RequestHearer: it tells whether this handle listens.
func (s *Store) HearsRequests() bool { return s.listener != nil && s.sessionLocks }

// Notify implements store.Notifier. Its first notice comes once the listening
// connection is established, or has failed; in the second case another notice
// follows when it is established.
func (s *Store) Notify(ctx context.Context, fn func(store.Notice)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	n := s.notices
	h := &hearer{wake: make(chan struct{}, 1)}
	n.mu.Lock()
	n.hearers[h] = struct{}{}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.hearers, h)
	}()
	if s.HearsRequests() {
		s.listener.start()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return store.ErrClosed
		case <-s.listener.tried:
		}
	}
	n.mu.Lock()
	h.Merge(notice.Everything()) // earlier changes were missed
	nudge.Send(h.wake)
	n.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return store.ErrClosed
		case <-h.wake:
		}
		n.mu.Lock()
		news := h.Take()
		n.mu.Unlock()
		news.Tell(fn)
	}
}
