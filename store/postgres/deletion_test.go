package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// long makes a run with n events beside its first.
func long(t testing.TB, s store.Store, id string, n int) *runLog {
	t.Helper()
	r := &runLog{id: id}
	commit(t, s, r.create("me"))
	for n > 0 {
		c := r.step([]byte("{}"))
		for n--; n > 0 && len(c.Events) < 5000; n-- {
			c.Events = append(c.Events, r.event(store.StepCompleted, fmt.Sprint("step#", r.seq), []byte("{}")))
		}
		commit(t, s, c)
	}
	return r
}

func TestEventsOfARunThatIsDeletedMeanwhileDoNotJustEnd(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		s := d.open(t, pgtest.DSN(t))
		for name, c := range map[string]store.Cursor{
			"all": {All: true}, "of a lineage": {}, "from the middle": {All: true, After: 100}, "the tail": {All: true, Tail: 400}, "the tail of a lineage": {Tail: 400},
		} {
			for _, again := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, created again %v", name, again), func(t *testing.T) {
					id := strings.ReplaceAll(t.Name(), "/", " ")
					long(t, s, id, 600)
					h, err := s.Load(t.Context(), id, c)
					require.NoError(t, err)
					var seqs []int64
					var last error
					gone := false
					for e, err := range h.Events {
						if err != nil {
							last = err
							break
						}
						if seqs = append(seqs, e.Seq); !gone {
							gone = true
							n, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{id}, Force: true})
							require.NoError(t, err)
							require.Equal(t, 1, n)
							if again {
								long(t, s, id, 3)
							}
						}
					}
					if last == nil {
						require.EqualValues(t, 601, seqs[len(seqs)-1], "all that was there")
					} else {
						require.ErrorIs(t, last, store.ErrNotFound)
					}
					refused := 0
					for e, err := range h.Events { // and from the beginning
						require.ErrorIs(t, err, store.ErrNotFound, "event %d", e.Seq)
						refused++
					}
					require.Equal(t, 1, refused)
				})
			}
		}
	})
}

// S3, S22: an append that was under way while its run was deleted may leave an
// event behind, which must not carry those that follow it.
func TestNothingIsAcknowledgedToTheOwnerOfADeletedRun(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	db := raw(t, dsn)
	r := long(t, s, "r", 1)
	// As it would be if the append had landed behind the deletion.
	tx := db.MustBegin()
	tx.MustExec("CREATE TABLE left_behind AS SELECT * FROM durable_events")
	require.NoError(t, tx.Commit())
	_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"r"}, Force: true})
	require.NoError(t, err)
	db.MustExec("INSERT INTO durable_events SELECT * FROM left_behind WHERE seq = 2")
	stale := open(t, dsn)
	for _, s := range []store.Store{s, stale} {
		at := *r
		for range 2 {
			require.ErrorIs(t, s.Commit(t.Context(), []store.Change{at.step(nil)})[0], store.ErrNotFound)
		}
	}
	// The handle of the owner remembers the number of the run.
	q := open(t, dsn)
	r = long(t, q, "again", 1)
	_, err = s.Delete(t.Context(), store.Deletion{RunIDs: []string{"again"}, Force: true})
	require.NoError(t, err)
	db.MustExec("INSERT INTO durable_events SELECT run_no + 1, seq, $1, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum FROM left_behind WHERE seq = 2", r.epoch)
	other := long(t, q, "other", 1)
	at := *r
	one, many := at.step(nil), at.step(nil)
	require.ErrorIs(t, q.Commit(t.Context(), []store.Change{one})[0], store.ErrNotFound)
	errs := q.Commit(t.Context(), []store.Change{many, other.step(nil)})
	require.ErrorIs(t, errs[0], store.ErrNotFound)
	require.NoError(t, errs[1])
	at = *r
	errs = q.Commit(t.Context(), []store.Change{at.step(nil), other.step(nil)})
	require.ErrorIs(t, errs[0], store.ErrNotFound)
	require.NoError(t, errs[1])
}

func TestRowsAreListedWholeBesideDeletions(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	p := proxy.New(t, proxy.Target(dsn))
	reads := open(t, p.DSN(dsn))
	r := &runLog{id: "r"}
	c := r.create("")
	c.Create.Attributes = map[string]string{"a": "b"}
	commit(t, s, c)
	// If the rest is not read together with its row, the run is deleted in between.
	var read bool
	var once sync.Once
	p.SetPolicy(func(q proxy.Request) proxy.Action {
		switch {
		case !q.Executes:
		case !read:
			read = slices.ContainsFunc(q.SQL, func(sql string) bool {
				return strings.Contains(sql, "durable_runs WHERE") || strings.Contains(sql, "durable_runs ORDER BY")
			})
		default:
			once.Do(func() {
				_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"r"}, Force: true})
				if err != nil {
					t.Errorf("delete: %v", err)
				}
			})
		}
		return proxy.Pass
	})
	page, err := reads.List(t.Context(), store.Filter{WithLast: true})
	require.NoError(t, err)
	require.Len(t, page.Runs, 1)
	require.Equal(t, map[string]string{"a": "b"}, page.Runs[0].Attributes)
	require.NotNil(t, page.Runs[0].Last)
}

func TestAClaimOfAnyNumberIsNoError(t *testing.T) {
	s := fresh(t)
	beat(t, s, executor("me", time.Minute))
	commit(t, s, (&runLog{id: "a"}).create(""), (&runLog{id: "b"}).create(""))
	for _, c := range []struct{ most, want int }{{0, 0}, {-1, 0}, {-1 << 63, 0}, {1 << 62, 2}, {int(^uint(0) >> 1), 0}} {
		runs, err := s.Claim(t.Context(), store.Claim{Executor: "me", Serves: serves, Max: c.most})
		require.NoError(t, err)
		require.Len(t, runs, c.want, "at most %d", c.most)
	}
}

// The end of a long log is read without the rest.
func TestTheEndOfALongLogCostsNoMoreThanItsLength(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	long(t, s, "r", 0)
	const events = 50_000
	execute(t, dsn, `INSERT INTO durable_events SELECT run_no, n, epoch, branch, 'step_completed', 'step#' || n, 1, 1, at, 0, 0, 0, NULL, payload, 1
		FROM durable_events, generate_series(2, $1) n WHERE seq = 1`, events)
	require.NoError(t, s.Close())
	const rows = `SELECT (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE relname = 'durable_events')
		+ (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables WHERE relname = 'durable_events')`
	for name, c := range map[string]store.Cursor{"all": {All: true, Tail: 1}, "lineage": {Tail: 1}, "more": {Tail: 100}} {
		read := tally(t, dsn, rows, func(s *storeOf) {
			h, err := s.Load(t.Context(), "r", c)
			require.NoError(t, err)
			var seqs []int64
			for e, err := range h.Events {
				require.NoError(t, err)
				seqs = append(seqs, e.Seq)
			}
			require.Len(t, seqs, c.Tail)
			require.EqualValues(t, events, seqs[len(seqs)-1])
		})
		t.Logf("%s: %d rows were read for the last %d of %d events", name, read, c.Tail, events)
		require.Less(t, read, 1000, name)
	}
	s = open(t, dsn)
	for name, c := range map[string]store.Cursor{"all": {All: true}, "lineage": {}, "the second half": {After: events / 2}} {
		h, err := s.Load(t.Context(), "r", c)
		require.NoError(t, err)
		next := c.After + 1
		for e, err := range h.Events {
			require.NoError(t, err, name)
			require.Equal(t, next, e.Seq, name)
			next++
		}
		require.EqualValues(t, events+1, next, name)
	}
}

// A COMMIT whose answer is lost may still be carried out. What it deletes is counted all the same: a retention
// that is told of fewer runs says so in its report.
func TestADeletionWhoseAnswerIsLostCountsWhatItDeletes(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		db := raw(t, dsn)
		for name, how := range map[string]proxy.Action{"at once": proxy.CutReply, "later": proxy.CutBlind, "never": proxy.CutBefore} {
			t.Run(name, func(t *testing.T) {
				p := proxy.New(t, proxy.Target(dsn))
				s := d.open(t, p.DSN(dsn))
				var ids []string
				for i := range 3 {
					r := &runLog{id: fmt.Sprint(name, i)}
					commit(t, s, r.create("me"))
					ids = append(ids, r.id)
				}
				// The server takes a while for the COMMIT.
				db.MustExec(`CREATE OR REPLACE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.05); RETURN NULL; END $$`)
				db.MustExec(`CREATE CONSTRAINT TRIGGER slowly AFTER DELETE ON durable_runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slowly()`)
				var cut sync.Once
				p.SetPolicy(func(q proxy.Request) proxy.Action {
					action := proxy.Pass
					if slices.ContainsFunc(q.SQL, func(sql string) bool { return strings.EqualFold(sql, "COMMIT") }) {
						cut.Do(func() { action = how })
					}
					return action
				})
				n, err := s.Delete(t.Context(), store.Deletion{RunIDs: ids, Force: true})
				p.SetPolicy(nil)
				db.MustExec("DROP TRIGGER slowly ON durable_runs")
				require.NoError(t, err)
				require.Equal(t, 3, n)
				require.Equal(t, 1, p.Cuts())
			})
		}
	})
}
