package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// racers runs f at once on many connections of two handles.
func racers(t *testing.T, dsn string, n int, f func(s *postgres.Store, i int)) {
	t.Helper()
	two := []*postgres.Store{openOptions(t, dsn, postgres.Options{Writers: 4}), openOptions(t, dsn, postgres.Options{Writers: 4})}
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-begin
			f(two[i%2], i)
		})
	}
	close(begin)
	all.Wait()
}

func one(s *postgres.Store, c store.Change) error {
	return s.Commit(context.Background(), []store.Change{c})[0]
}

// Of creations with one id or one Dedup that race, one creates its run, and the others say which
// that is.
func TestOfCreationsThatRaceOneCreates(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	const rounds, each = 25, 8
	for name, prepare := range map[string]func(c *store.Change, r *runLog, round, i int){
		"id":    func(c *store.Change, r *runLog, round, i int) {},
		"dedup": func(c *store.Change, r *runLog, round, i int) { c.Create.Dedup = fmt.Sprint("d", round) },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			won, lost := map[int][]string{}, map[int][]string{}
			racers(t, dsn, each, func(s *postgres.Store, i int) {
				for round := range rounds {
					r := &runLog{id: fmt.Sprint(name, round), epoch: int64(1000 + i)}
					if name == "dedup" {
						r.id = fmt.Sprint(name, round, "-", i)
					}
					c := r.create("e")
					prepare(&c, r, round, i)
					err := one(s, c)
					mu.Lock()
					if err == nil {
						won[round] = append(won[round], r.id)
					} else if exists := (*store.ExistsError)(nil); errors.As(err, &exists) {
						lost[round] = append(lost[round], exists.RunID)
					} else {
						t.Errorf("round %d: %v", round, err)
					}
					mu.Unlock()
				}
			})
			s := open(t, dsn)
			for round := range rounds {
				require.Len(t, won[round], 1)
				require.Len(t, lost[round], each-1)
				for _, id := range lost[round] {
					require.Equal(t, won[round][0], id)
				}
				_, events := load(t, s, won[round][0])
				require.Len(t, events, 1)
			}
		})
	}
}

// Messages from many connections, some of them sent by several, while their receivers end: what was
// acknowledged is in the inbox once, what was refused is not, and the numbers have no gap.
func TestMessagesThatRaceWithTheEndOfTheirReceiver(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	const n, each = 12, 8
	runs := running(t, s, n)
	ends := make([]store.Change, n)
	for i, r := range runs {
		ends[i] = r.complete()
	}
	var mu sync.Mutex
	accepted := make([]map[string]bool, n) // by id; true: some sender got nil
	for i := range accepted {
		accepted[i] = map[string]bool{}
	}
	racers(t, dsn, each, func(s *postgres.Store, i int) {
		for k, r := range runs {
			for m := range 6 {
				if i == 0 && m == 3 {
					if err := one(s, ends[k]); err != nil {
						t.Errorf("end of %s: %v", r.id, err)
					}
				}
				id := fmt.Sprint(m, "-", i/2) // two send each
				c := store.Change{Send: []store.Message{{To: r.id, Kind: store.KindSignal, Name: "n", ID: id, At: 1}}, Sent: make([]int64, 1)}
				err := one(s, c)
				if err != nil && !errors.Is(err, store.ErrStatus) {
					t.Errorf("message %s: %v", id, err)
				}
				mu.Lock()
				accepted[k][id] = accepted[k][id] || err == nil
				mu.Unlock()
			}
		}
	})
	for k, r := range runs {
		h, _ := load(t, s, r.id)
		got := map[string]bool{}
		for i, m := range h.Inbox {
			require.EqualValues(t, i+1, m.Seq)
			require.False(t, got[m.ID], "twice")
			got[m.ID] = true
		}
		require.EqualValues(t, len(h.Inbox), h.Run.Inbox)
		require.Equal(t, store.Completed, h.Run.Status)
		for id, yes := range accepted[k] {
			require.Equal(t, yes, got[id], "message %s to %s", id, r.id)
		}
	}
}

// Batches that deliver messages to the same runs, in any order, wait for each other and not in a
// circle.
func TestMessagesToManyRunsFromManyConnections(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	const n, each, rounds = 6, 6, 15
	runs := running(t, s, n)
	racers(t, dsn, each, func(s *postgres.Store, i int) {
		for round := range rounds {
			var batch []store.Change
			for k := range n {
				to := runs[(k*(i+1)+i)%n].id
				batch = append(batch, store.Change{Send: []store.Message{
					{To: to, Kind: store.KindSignal, Name: "n", ID: fmt.Sprint(i, round, k), At: 1},
					{To: runs[(n-k)%n].id, Kind: store.KindSignal, Name: "n", ID: fmt.Sprint(i, round, k, "b"), At: 1},
				}})
			}
			for _, err := range s.Commit(context.Background(), batch) {
				if err != nil {
					t.Errorf("%v", err)
				}
			}
		}
	})
	total := 0
	for _, r := range runs {
		h, _ := load(t, s, r.id)
		for i, m := range h.Inbox {
			require.EqualValues(t, i+1, m.Seq)
		}
		require.EqualValues(t, len(h.Inbox), h.Run.Inbox)
		total += len(h.Inbox)
	}
	require.Equal(t, 2*n*each*rounds, total)
}
