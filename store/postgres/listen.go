package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

const (
	// pingEvery is the interval of the pings that detect a dead connection when nothing
	// else is sent on it.
	pingEvery = 90 * time.Second
	// answerIn bounds how long the server may take to answer on it.
	answerIn = 5 * time.Second
)

// listener is the one connection that listens and holds the session locks of the
// executors that beat on this handle. It reconnects whenever the connection breaks.
//
// It uses pq.ListenerConn and not pq.Listener, which cannot run a statement (for the
// locks) and whose Close does not interrupt its wait to reconnect.
type listener struct {
	store *Store
	dsn   string
	once  sync.Once
	tried chan struct{} // closed after the first attempt to connect
	done  chan struct{} // closed when the goroutine has ended

	mu    sync.Mutex
	conn  *pq.ListenerConn // nil while there is none
	up    store.Time       // start time of the server it is connected to
	locks map[string]*sessionLock
}

func newKey() int64 { return rand.Int64N(1<<31-1) + 1 }

// sessionLock is the lock of one executor.
type sessionLock struct {
	key  int64
	held bool // on the current connection
}

func newListener(s *Store, dsn string) *listener {
	return &listener{store: s, dsn: dsn, tried: make(chan struct{}), done: make(chan struct{}), locks: map[string]*sessionLock{}}
}

// start starts the goroutine. Only calls in progress call it, so never after close.
func (l *listener) start() {
	l.once.Do(func() { go l.run() })
}

// close waits for the goroutine to end.
func (l *listener) close() {
	started := true
	l.once.Do(func() { started = false })
	if started {
		<-l.done
	}
}

func (l *listener) run() {
	defer close(l.done)
	first := sync.OnceFunc(func() { close(l.tried) })
	for try := 0; ; try++ {
		heard := make(chan *pq.Notification, 64)
		conn, err := pq.NewListenerConn(l.dsn, heard)
		if err == nil {
			try = 0
			l.serve(conn, heard, first)
		}
		first()
		if pause(context.Background(), l.store.closing, 4*jitter(try)) != nil {
			return
		}
	}
}

// serve uses one connection until it breaks or the store is closed.
func (l *listener) serve(conn *pq.ListenerConn, heard <-chan *pq.Notification, ready func()) {
	lost := make(chan struct{})
	go func() { // ends when conn is closed, by either side
		defer close(lost)
		for n := range heard {
			switch {
			case n == nil:
			case n.Channel == requestsChannel:
				l.store.notices.hearRequests(n.Extra)
			default:
				l.store.notices.hear(n.Extra)
			}
		}
	}()
	defer func() {
		l.disconnected()
		_ = conn.Close() // it may be closed already
		<-lost
	}()
	for _, channel := range []string{l.store.notices.channel(), requestsChannel} {
		if err := ask(conn, "LISTEN "+pq.QuoteIdentifier(channel)); err != nil {
			return
		}
	}
	if err := l.connected(conn); err != nil {
		return
	}
	// Earlier notices were missed.
	l.store.notices.deliver(notice.Everything())
	ready()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-lost:
			return
		case <-l.store.closing:
			return
		case <-ping.C:
			// Not conn.Ping, which panics when the server answers with an error,
			// as it does when it is being shut down.
			if ask(conn, "SELECT 1") != nil {
				return
			}
		}
	}
}

// ask runs a statement whose result does not matter, for a limited time.
func ask(conn *pq.ListenerConn, sql string) error {
	t := time.AfterFunc(answerIn, func() { _ = conn.Close() })
	defer t.Stop()
	_, err := conn.ExecSimpleQuery(sql)
	return err
}

// connected takes the locks of all executors again, and records that.
func (l *listener) connected(conn *pq.ListenerConn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	if l.store.PresenceKind() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	var up int64
	err := l.store.db.GetContext(ctx, &up, "SELECT (extract(epoch FROM pg_catalog.pg_postmaster_start_time())::numeric * 1000000::numeric)::bigint")
	if err != nil {
		return fmt.Errorf("postgres: when the server was started: %w", err)
	}
	l.up = store.Time(up)
	for id, lock := range l.locks {
		lock.key = newKey() // so that its record changes, which proves that it lives
		if !l.lock(lock) {
			continue
		}
		// Not a beat: presence never extends a lease.
		if _, err := l.store.db.ExecContext(ctx, l.store.sql.Text("set_presence"), id, l.describe(lock)); err != nil {
			return fmt.Errorf("postgres: record presence: %w", err)
		}
	}
	return nil
}

// disconnected records that the executors have no lock, so that no other process takes
// the freed lock for a sign of death.
func (l *listener) disconnected() {
	l.mu.Lock()
	l.conn = nil
	var ids []string
	for id, lock := range l.locks {
		lock.held = false
		ids = append(ids, id)
	}
	l.mu.Unlock()
	select {
	case <-l.store.closing:
		return // executors that did not leave are gone, and others may know it
	default:
	}
	if l.store.PresenceKind() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), silence/2)
	defer cancel()
	for _, id := range ids {
		// If this fails, the database cannot be reached, and the next beat fails too.
		if _, err := l.store.db.ExecContext(ctx, l.store.sql.Text("set_presence"), id, ""); err != nil {
			return
		}
	}
}

// lock takes a session lock. If a dead session of ours still holds it, nothing is lost:
// others see it held, and a later beat tries again.
func (l *listener) lock(lock *sessionLock) bool {
	if !lock.held && l.conn != nil {
		// Results cannot be read on this connection, so the statement turns "no" into an
		// error.
		lock.held = ask(l.conn, fmt.Sprintf("SELECT 1 / pg_catalog.pg_try_advisory_lock(%d, %d)::int", lockClass, lock.key)) == nil
	}
	return lock.held
}

func (l *listener) describe(lock *sessionLock) string {
	return presence{lock: lock.key, up: l.up, process: thisProcess()}.String()
}

// present makes sure that an executor's lock is held, and returns what its
// record should say about it; empty while there is no connection.
func (l *listener) present(executor string) string {
	l.start()
	select {
	case <-l.tried:
	case <-time.After(answerIn):
	case <-l.store.closing:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lock := l.locks[executor]
	if lock == nil {
		lock = &sessionLock{key: newKey()}
		l.locks[executor] = lock
	}
	if !l.lock(lock) {
		return ""
	}
	return l.describe(lock)
}

// absent releases an executor's lock.
func (l *listener) absent(executor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock := l.locks[executor]
	delete(l.locks, executor)
	if lock != nil && lock.held && l.conn != nil {
		// If this fails the connection is gone, and the lock with it.
		_ = ask(l.conn, fmt.Sprintf("SELECT pg_catalog.pg_advisory_unlock(%d, %d)", lockClass, lock.key))
	}
}
