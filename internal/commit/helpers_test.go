package commit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/store"
)

// logs is a store of nothing but logs. It says for each commit what is to become of it.
type logs struct {
	store.Store // nothing else is called
	parallel    int
	// answer is called with each batch, before it is carried out; it may wait. The error
	// is for the whole batch; carried says that it was carried out nevertheless.
	answer func(batch []store.Change) (carried bool, err error)

	mu      sync.Mutex
	events  map[string][]store.Event
	flying  map[string]bool // runs with a change in flight
	at      int             // how many batches are in flight
	most    int             // at a time so far
	batches [][]string      // the runs of each
	broken  error           // the committer did what it must not
}

var errRefused = fmt.Errorf("of no use: %w", store.ErrStatus)

func newLogs(parallel int) *logs {
	return &logs{
		parallel: parallel, events: map[string][]store.Event{}, flying: map[string]bool{},
		answer: func([]store.Change) (bool, error) { return true, nil },
	}
}

func (s *logs) Limits() store.Limits { return store.DefaultLimits() }
func (s *logs) ParallelCommits() int { return s.parallel }

func (s *logs) Commit(_ context.Context, batch []store.Change) []error {
	s.mu.Lock()
	s.at++
	s.most = max(s.most, s.at)
	var ids []string
	for i := range batch {
		id := batch[i].RunID
		if s.flying[id] {
			s.broken = fmt.Errorf("run %s has two changes in flight", id)
		}
		s.flying[id] = true
		ids = append(ids, id)
	}
	s.batches = append(s.batches, ids)
	s.mu.Unlock()

	carried, err := s.answer(batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(batch))
	for i := range batch {
		if carried {
			errs[i] = s.apply(&batch[i])
		}
		if err != nil {
			errs[i] = err
		}
		delete(s.flying, batch[i].RunID)
	}
	s.at--
	return errs
}

// late is a store that other writers keep waiting.
type late struct {
	*logs
	wait func() // before a batch is formed
}

func (s *late) CommitLate(ctx context.Context, form func() []store.Change) []error {
	s.wait()
	batch := form()
	if len(batch) == 0 {
		return nil
	}
	return s.Commit(ctx, batch)
}

// apply carries out one change, or finds that it was carried out before.
func (s *logs) apply(c *store.Change) error {
	log := s.events[c.RunID]
	first := int(c.Events[0].Seq)
	if first <= len(log) {
		if last := c.Events[len(c.Events)-1]; int(last.Seq) <= len(log) && log[last.Seq-1].Sum == last.Sum {
			return nil
		}
		return store.ErrFenced
	}
	if first != len(log)+1 {
		s.broken = fmt.Errorf("run %s: event %d after %d", c.RunID, first, len(log))
		return store.ErrFenced
	}
	if slices.ContainsFunc(c.Events, func(e store.Event) bool { return e.Type == bad }) {
		return errRefused
	}
	for i, e := range c.Events {
		e.Epoch = c.EventEpoch(i)
		log = append(log, e)
	}
	s.events[c.RunID] = log
	return nil
}

// Load is asked what has become of a change whose outcome is not known.
func (s *logs) Load(_ context.Context, id string, c store.Cursor) (*store.History, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := slices.Clone(s.events[id])
	return &store.History{Events: func(yield func(store.Event, error) bool) {
		for _, e := range events {
			if e.Seq > c.After && !yield(e, nil) {
				return
			}
		}
	}}, nil
}

// keys returns those of a run's events.
func (s *logs) keys(id string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events[id] {
		list = append(list, e.Key)
	}
	return list
}

// bad is the type of an event that the store refuses.
const bad = store.Type("bad")

// owner has a run for as long as nothing goes wrong.
type owner struct{ lost, torn error }

func (o *owner) Admit(*commit.Write) error { return o.lost }
func (o *owner) Row(bool) *store.RowPatch  { return nil }
func (o *owner) RowRefused()               {}
func (o *owner) Tear(ev *store.Event, err error) {
	o.torn = fmt.Errorf("%s: %w", ev.Key, err)
}
func (o *owner) Lose(err error)       { o.lost = err }
func (o *owner) Lost() error          { return o.lost }
func (o *owner) Landed(*store.Change) {}

// office is a committer and its runs.
type office struct {
	*commit.Committer
	clock *storeclock.Clock
	stop  context.CancelCauseFunc
}

func newOffice(s store.Store) *office {
	ctx, stop := context.WithCancelCause(context.Background())
	clock := new(storeclock.Clock)
	clock.Start(time.Now())
	return &office{
		Committer: commit.New(commit.Options{Store: s, Log: slog.New(slog.DiscardHandler), Stop: ctx, Measure: func(time.Duration, []error) {}}),
		clock:     clock, stop: stop,
	}
}

// end gives up what is not committed.
func (o *office) end() {
	o.stop(errors.New("over"))
	o.Abandon()
	o.Wait()
}

func (o *office) run(id string) *commit.Log {
	lg := o.NewLog(id, &owner{}, o.clock)
	lg.Create(&store.Run{ID: id, Epoch: 1})
	return &lg
}

// tenEach has so many runs commit ten writes each, at once.
func (o *office) tenEach(t *testing.T, runs int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			run := o.run(fmt.Sprint("run-", i))
			for n := range 10 {
				require.NoError(t, o.Commit(context.Background(), run, write(fmt.Sprint(n), small)))
			}
		})
	}
	all.Wait()
}

// write returns a write of one event of so many bytes.
func write(key string, bytes int) *commit.Write {
	return &commit.Write{Events: []store.Event{{Type: store.StepCompleted, Key: key, Payload: make([]byte, bytes)}}}
}
