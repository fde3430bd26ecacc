package memory

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Store is a handle on data in memory. All methods may be called concurrently.
type Store struct {
	data *data
	done chan struct{} // closed by Close

	// Under data.mu.
	closed bool
	counts store.Counts
	// answers is memory for those of Commit: each is used once.
	answers []error
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Notifier  = (*Store)(nil)
	_ store.Meter     = (*Store)(nil)
	_ store.Clocked   = (*Store)(nil)
	_ store.Schedules = (*Store)(nil)
	_ store.Loader    = (*Store)(nil)
)

// data is what all handles share.
type data struct {
	clock  func() time.Time
	limits store.Limits

	mu         sync.Mutex
	lastNo     int64
	runs       map[string]*run
	unfinished map[*run]struct{} // what Claim and Beat scan
	dedup      map[dedupKey]string
	queues     map[string]*queue
	holds      map[string]string // exclusive key to the id of the run that holds it
	executors  map[string]*executor
	joined     int64 // executors registered so far
	schedules  map[string]*store.Schedule
	dueInOrder []*store.Schedule // those with a Due, in the order of Due and name
	listeners  map[*listener]struct{}
	batch      map[string]struct{} // run ids of the current batch, kept to save allocations
}

type dedupKey struct{ queue, value string }

// Open returns a handle on new, empty data, with the clock of package time.
func Open() *Store { return OpenAt(time.Now) }

// OpenAt is Open with another clock, which judges leases and due times. It is
// called under the store's lock, so it must not call the store.
func OpenAt(clock func() time.Time) *Store {
	return (&data{
		clock:      clock,
		limits:     store.DefaultLimits(),
		runs:       make(map[string]*run),
		unfinished: make(map[*run]struct{}),
		dedup:      make(map[dedupKey]string),
		queues:     make(map[string]*queue),
		holds:      make(map[string]string),
		executors:  make(map[string]*executor),
		schedules:  make(map[string]*store.Schedule),
		listeners:  make(map[*listener]struct{}),
		batch:      make(map[string]struct{}),
	}).handle()
}

func (d *data) handle() *Store { return &Store{data: d, done: make(chan struct{})} }

// Handle opens another handle on the same data, as another process would. It
// also works on a closed handle, which is how data is reopened. Each handle is
// closed on its own and has its own Counts.
func (s *Store) Handle() *Store { return s.data.handle() }

// Close closes this handle; others on the same data stay usable.
func (s *Store) Close() error {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	return nil
}

// Limits returns store.DefaultLimits.
func (s *Store) Limits() store.Limits { return s.data.limits }

// Counts counts each Change, and each other call, as one statement, and each
// Commit call, claim or beat that wrote something as one commit.
func (s *Store) Counts() store.Counts {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	return s.counts
}

// ClockKind says that the clock of the process judges leases.
func (s *Store) ClockKind() string { return "process" }

// enter locks the data if the call may go on, and otherwise returns why not.
// After a nil error the caller must unlock.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.data.mu.Lock()
	if s.closed {
		s.data.mu.Unlock()
		return store.ErrClosed
	}
	return nil
}

// read is enter for a call that only reads.
func (s *Store) read(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.counts.Statements++
	s.counts.Reads++
	return nil
}

func (d *data) now() store.Time { return store.TimeOf(d.clock()) }
