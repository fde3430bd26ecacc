package postgres_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// once breaks the connection at the first request that executes a statement with these texts.
func once(p *proxy.Proxy, how proxy.Action, texts ...string) {
	var first sync.Once
	p.SetPolicy(func(q proxy.Request) proxy.Action {
		action := proxy.Pass
		if q.Executes && slices.ContainsFunc(q.SQL, func(sql string) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(sql, text) })
		}) {
			first.Do(func() { action = how })
		}
		return action
	})
}

// The server may begin with a statement long after the client has given its connection up, sent
// the same again, and gone on: with what lay in a socket of a process that was stopped, say.
func TestWhatTheServerBeginsLateChangesNothing(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		carryOut := []string{"released AS (", "durable_runs"}
		wait := func(r *runLog, at store.Time) store.Change {
			return store.Change{RunID: r.id, Expect: store.Expect{Epoch: r.epoch}, Row: &store.RowPatch{WakeAt: &at}}
		}
		wake := func(t *testing.T, s store.Store, id string) store.Time {
			h, _ := load(t, s, id)
			return h.Run.WakeAt
		}
		for name, c := range map[string]struct {
			statement []string // by parts of its text
			writes    func(t *testing.T, s *postgres.Store)
			later     func(t *testing.T, s *postgres.Store)
			holds     func(t *testing.T, s *postgres.Store)
		}{
			"the time of a wait": {
				carryOut,
				func(t *testing.T, s *postgres.Store) { commit(t, s, wait(&runLog{id: "r", epoch: 1}, 10)) },
				func(t *testing.T, s *postgres.Store) { commit(t, s, wait(&runLog{id: "r", epoch: 1}, 20)) },
				func(t *testing.T, s *postgres.Store) { require.EqualValues(t, 20, wake(t, s, "r")) },
			},
			"the time of a wait among others": {
				carryOut,
				func(t *testing.T, s *postgres.Store) {
					commit(t, s, wait(&runLog{id: "r", epoch: 1}, 10), wait(&runLog{id: "q", epoch: 1}, 10))
				},
				func(t *testing.T, s *postgres.Store) { commit(t, s, wait(&runLog{id: "r", epoch: 1}, 20)) },
				func(t *testing.T, s *postgres.Store) {
					require.EqualValues(t, 20, wake(t, s, "r"))
					require.EqualValues(t, 10, wake(t, s, "q"))
				},
			},
			"the deletion of a schedule": {
				[]string{"DELETE FROM", "durable_schedules"},
				func(t *testing.T, s *postgres.Store) {
					existed, err := s.DeleteSchedule(t.Context(), "daily")
					require.NoError(t, err)
					require.True(t, existed)
				},
				func(t *testing.T, s *postgres.Store) {
					_, err := s.PutSchedule(t.Context(), store.Schedule{Name: "daily", Due: 7})
					require.NoError(t, err)
				},
				func(t *testing.T, s *postgres.Store) {
					list, err := s.Schedules(t.Context(), "daily")
					require.NoError(t, err)
					require.Len(t, list, 1)
				},
			},
			"a new schedule": {
				[]string{"INSERT INTO", "durable_schedules"},
				func(t *testing.T, s *postgres.Store) {
					_, err := s.PutSchedule(t.Context(), store.Schedule{Name: "new", Due: 7})
					require.NoError(t, err)
				},
				func(t *testing.T, s *postgres.Store) {
					existed, err := s.DeleteSchedule(t.Context(), "new")
					require.NoError(t, err)
					require.True(t, existed)
				},
				func(t *testing.T, s *postgres.Store) {
					list, err := s.Schedules(t.Context(), "new")
					require.NoError(t, err)
					require.Empty(t, list)
				},
			},
		} {
			t.Run(name, func(t *testing.T) {
				dsn := pgtest.DSN(t)
				p := proxy.New(t, proxy.Target(dsn))
				s := d.open(t, p.DSN(dsn))
				commit(t, s, (&runLog{id: "r", epoch: 1}).create("e"), (&runLog{id: "q", epoch: 1}).create("e"))
				_, err := s.PutSchedule(t.Context(), store.Schedule{Name: "daily", Due: 5})
				require.NoError(t, err)
				once(p, proxy.CutLate, c.statement...)
				c.writes(t, s)
				require.Equal(t, 1, p.Cuts())
				c.later(t, s)
				p.Deliver()
				c.holds(t, s)
			})
		}
	})
}

// A beat that was carried out, and whose answer is lost, has renewed the lease: the one that is
// sent again does not see that it had run out.
func TestABeatWhoseAnswerIsLostIsLateAllTheSame(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		p := proxy.New(t, proxy.Target(dsn))
		s := d.open(t, p.DSN(dsn))
		e := executor("e", time.Second)
		beat(t, s, e)
		execute(t, dsn, "UPDATE durable_executors SET beat_at = beat_at - 60000000")
		once(p, proxy.CutReply, "INSERT INTO", "durable_executors")
		require.True(t, beat(t, s, e).Late)
		require.Equal(t, 1, p.Cuts())
		p.SetPolicy(nil)
		require.False(t, beat(t, s, e).Late)
	})
}
