package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// ear collects notices.
type ear struct {
	mu    sync.Mutex
	heard []string
	all   int
}

func listen(t *testing.T, s *postgres.Store) *ear {
	e := &ear{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- s.Notify(ctx, func(n store.Notice) {
			e.mu.Lock()
			defer e.mu.Unlock()
			if len(n.RunIDs) == 0 {
				e.all++
			}
			e.heard = append(e.heard, n.RunIDs...)
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	e.eventually(t, "it listens", func() bool { return e.all > 0 })
	return e
}

func (e *ear) eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return f()
	}, time.Minute, time.Millisecond, what)
}

func (e *ear) hears(t *testing.T, id string) {
	t.Helper()
	e.eventually(t, "a notice about "+id, func() bool { return slices.Contains(e.heard, id) })
}

func TestOtherProcessesHearOfChanges(t *testing.T) {
	dsn := pgtest.DSN(t)
	a, b := open(t, dsn), open(t, dsn)
	own, other := listen(t, a), listen(t, b)
	odd := `odd, 'id' "with" \ % + and é🙂`
	r := &runLog{id: odd}
	commit(t, a, r.create(""))
	other.hears(t, odd)
	own.hears(t, odd)
	long := &runLog{id: strings.Repeat("é", 512)}
	commit(t, a, long.create(""))
	other.hears(t, long.id)

	// A run that ends, and a message.
	mine := &runLog{id: "mine"}
	commit(t, a, mine.create("me"))
	commit(t, b, store.Change{Send: []store.Message{{To: "mine", Kind: store.KindSignal, ID: "1", Name: "go"}}})
	own.hears(t, "mine")
	commit(t, a, mine.complete())
	other.hears(t, "mine")
}

func TestMoreThanANoticeHoldsIsToldAsEverything(t *testing.T) {
	dsn := pgtest.DSN(t)
	a, b := open(t, dsn), open(t, dsn)
	other := listen(t, b)
	before := other.all
	var batch []store.Change
	for i := range 200 {
		r := &runLog{id: fmt.Sprintf("%d-%s", i, strings.Repeat("x", 900))}
		batch = append(batch, r.create(""))
	}
	commit(t, a, batch...)
	other.eventually(t, "look at everything", func() bool { return other.all > before })
}

func TestABrokenListenerConnectsAgainAndSaysToLookAtEverything(t *testing.T) {
	dsn := pgtest.DSN(t)
	a, b := open(t, dsn), open(t, dsn)
	other := listen(t, b)
	for i := range 3 {
		before := other.all
		raw(t, dsn).MustExec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
		other.eventually(t, "look at everything", func() bool { return other.all > before })
		r := &runLog{id: fmt.Sprint("r", i)}
		commit(t, a, r.create(""))
		other.hears(t, r.id)
	}
}

func TestNotifyEndsWithItsContextAndWithTheStore(t *testing.T) {
	s := fresh(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Notify(ctx, func(store.Notice) {}), context.DeadlineExceeded)
	done := make(chan error)
	go func() { done <- s.Notify(context.Background(), func(store.Notice) {}) }()
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-done, store.ErrClosed)
}

func TestAnIdleStoreSendsNothingButItsBeats(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	listen(t, s)
	beat(t, s, executor("e", time.Minute))
	before := s.Counts().Statements
	time.Sleep(500 * time.Millisecond) // the time in which nothing is to happen
	require.Equal(t, before, s.Counts().Statements)
	beat(t, s, executor("e", time.Minute))
	require.LessOrEqual(t, s.Counts().Statements-before, int64(4))
}

// What other processes hear is collected where it is heard, so it is collected where it is sent: a
// message for each commit, or one every other millisecond, cost a fifth of all work.
func TestABusyStoreSendsFewNotices(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, other := open(t, dsn), open(t, dsn)
	heard := listen(t, other)
	r := &runLog{id: "first"}
	commit(t, s, r.create(""))
	heard.hears(t, "first")
	before, began := s.Counts(), time.Now()
	for i := range 300 {
		r := &runLog{id: fmt.Sprint("r", i)}
		commit(t, s, r.create(""))
	}
	after := s.Counts()
	sent := after.Statements - before.Statements - (after.Commits - before.Commits)
	require.Positive(t, sent)
	require.LessOrEqual(t, sent, int64(8+1+time.Since(began)/(25*time.Millisecond)))
	heard.hears(t, "r299")
}
