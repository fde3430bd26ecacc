package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// twins are this store and the reference, which get the same calls.
type twins struct {
	t      testing.TB
	r      *rand.Rand
	stores [2]store.Store
	logs   map[string]*runLog
	rows   map[string]store.Run // those that were claimed and have not ended
}

func (w *twins) commit(c store.Change) {
	w.t.Helper()
	for _, s := range w.stores {
		require.NoError(w.t, s.Commit(context.Background(), []store.Change{c})[0])
	}
}

func pick[T any](w *twins, list ...T) T { return list[w.r.IntN(len(list))] }

func (w *twins) create() {
	now := store.TimeOf(time.Now())
	r := &runLog{id: fmt.Sprintf("r%03d", len(w.logs))}
	c := r.create("")
	run := c.Create
	run.CreatedAt = now.Add(-time.Duration(w.r.IntN(7200)) * time.Second)
	run.Queue = pick(w, "", "p", "q", "q")
	run.Partition = pick(w, "", "a", "b", "c", "d")
	run.Priority = pick(w, int32(0), 0, 0, 1, -1, math.MaxInt32, math.MinInt32)
	run.WakeAt = pick(w, store.Time(0), 0, 0, now.Add(-time.Minute), now.Add(-time.Hour), now.Add(time.Hour))
	run.Status = pick(w, store.Pending, store.Pending, store.Pending, store.Interrupted, store.Waiting)
	run.Workflow = pick(w, "w", "w", "w2", "foreign")
	run.Paused = w.r.IntN(12) == 0
	run.CancelAsked = w.r.IntN(12) == 0
	w.logs[r.id] = r
	w.commit(c)
}

func (w *twins) put() {
	q := store.Queue{
		Name: pick(w, "p", "q"), Max: pick(w, 0, 0, 3, 6), MaxPerPartition: pick(w, 0, 0, 1, 2), Paused: w.r.IntN(6) == 0, Reason: "why",
	}
	if w.r.IntN(3) == 0 {
		q.Rate, q.Per = 2+w.r.IntN(8), time.Hour
	}
	for _, s := range w.stores {
		states, err := s.(store.Queues).Queues(context.Background(), q.Name)
		require.NoError(w.t, err)
		for _, st := range states {
			q.Revision = st.Revision
		}
		require.NoError(w.t, s.(store.Queues).PutQueue(context.Background(), q))
		require.ErrorIs(w.t, s.(store.Queues).PutQueue(context.Background(), q), store.ErrRevision)
	}
}

func (w *twins) claim() {
	c := store.Claim{
		Executor: "e", Max: 1 + w.r.IntN(9), AnyQueue: w.r.IntN(3) == 0, At: store.TimeOf(time.Now()),
		Serves: []store.Served{{Workflow: "w", Versions: []string{"1"}}, {Workflow: "w2", Versions: []string{"0", "1"}}},
	}
	for _, name := range []string{"p", "q"} {
		if w.r.IntN(3) > 0 {
			c.Queues = append(c.Queues, store.QueueRoom{Queue: name, Max: pick(w, -1, -1, 2, 0)})
		}
	}
	if w.r.IntN(6) == 0 {
		for range 5 {
			c.IDs = append(c.IDs, fmt.Sprintf("r%03d", w.r.IntN(len(w.logs)+1)))
		}
	}
	var got [2][]string
	var held [2]map[string]bool
	for i, s := range w.stores {
		held[i] = map[string]bool{}
		c.Held = func(queue string, until store.Time) { held[i][queue] = until != 0 }
		runs, err := s.Claim(context.Background(), c)
		require.NoError(w.t, err)
		for _, r := range runs {
			got[i] = append(got[i], r.ID)
			w.rows[r.ID] = r
		}
	}
	require.Equal(w.t, got[0], got[1], "%+v", c)
	require.Equal(w.t, held[0], held[1], "%+v", c)
}

// end lets a claimed run end, wait, or be given up.
func (w *twins) end() {
	if len(w.rows) == 0 {
		return
	}
	var ids []string
	for id := range w.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	row := w.rows[pick(w, ids...)]
	delete(w.rows, row.ID)
	r := w.logs[row.ID]
	r.epoch, r.seq, r.sum = row.Epoch, row.Last.Seq, row.Last.Sum
	c := r.complete()
	switch w.r.IntN(4) {
	case 0:
		status, wake := store.Waiting, store.TimeOf(time.Now().Add(time.Hour))
		c.Row, c.Events = &store.RowPatch{Status: &status, WakeAt: &wake}, []store.Event{}
		*r = runLog{id: r.id, epoch: row.Epoch, seq: row.Last.Seq, sum: row.Last.Sum}
		c.Events = []store.Event{r.event(store.StepCompleted, "k", nil)}
	case 1:
		if row.Status == store.Waiting {
			break
		}
		status := store.Interrupted
		*r = runLog{id: r.id, epoch: row.Epoch, seq: row.Last.Seq, sum: row.Last.Sum}
		c.Row, c.Events = &store.RowPatch{Status: &status}, []store.Event{r.event(store.StepCompleted, "k", nil)}
	}
	w.commit(c)
}

func (w *twins) compare() {
	var states [2][]store.QueueState
	for i, s := range w.stores {
		list, err := s.(store.Queues).Queues(context.Background())
		require.NoError(w.t, err)
		for k := range list {
			st := &list[k]
			require.Equal(w.t, st.Revision != 0, st.UpdatedAt != 0)
			st.UpdatedAt, st.NextAt = 0, min(st.NextAt, 1)
			st.Partitions = slices.DeleteFunc(st.Partitions, func(p store.PartitionState) bool { return p.Placed == 0 && p.InLine == 0 })
			if len(st.Partitions) == 0 {
				st.Partitions = nil
			}
			slices.SortFunc(st.Partitions, func(a, b store.PartitionState) int {
				return cmp.Or(cmp.Compare(b.InLine, a.InLine), cmp.Compare(b.Placed, a.Placed), cmp.Compare(a.Name, b.Name))
			})
		}
		states[i] = list
	}
	require.Equal(w.t, states[0], states[1])
	for id := range w.logs {
		want, in, err := w.stores[0].(store.Queues).Ahead(context.Background(), id)
		require.NoError(w.t, err)
		n, inLine, err := w.stores[1].(store.Queues).Ahead(context.Background(), id)
		require.NoError(w.t, err)
		require.Equal(w.t, in, inLine, id)
		require.Equal(w.t, want, n, id)
	}
}

// Whatever the queues and the runs in line, the same runs are let in, in the same order,
// as by the reference.
func TestQueuesLetInWhatTheReferenceLetsIn(t *testing.T) {
	dsn := pgtest.With(pgtest.DSN(t), "synchronous_commit", "off")
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			ours := openOptions(t, dsn, postgres.Options{Schema: fmt.Sprintf("seed_%d", seed), NoPresence: true})
			reference := memory.Open()
			t.Cleanup(func() { reference.Close() })
			w := &twins{t: t, r: rand.New(rand.NewPCG(seed, 15)), stores: [2]store.Store{reference, ours}, logs: map[string]*runLog{}, rows: map[string]store.Run{}}
			for _, s := range w.stores {
				_, err := s.Beat(t.Context(), executor("e", time.Hour))
				require.NoError(t, err)
			}
			for range 30 {
				w.create()
			}
			for step := range 120 {
				switch n := w.r.IntN(20); {
				case n < 5:
					w.create()
				case n < 7:
					w.put()
				case n < 13:
					w.claim()
				default:
					w.end()
				}
				if step%20 == 0 {
					w.compare()
				}
			}
			w.compare()
		})
	}
}

// inQueue creates n runs in line for places in a queue.
func inQueue(t testing.TB, s store.Store, queue string, n int) (ids []string) {
	t.Helper()
	for i := range n {
		r := &runLog{id: fmt.Sprintf("%s%d", queue, i)}
		c := r.create("")
		c.Create.Queue = queue
		commit(t, s, c)
		ids = append(ids, r.id)
	}
	return ids
}

// PutQueue does not wait for claims that found no limit; the first claim that finds one
// does, so that it counts what they take.
func TestALimitCountsWhatClaimsTookThatFoundNone(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	beat(t, s, executor("e", time.Hour))
	require.NoError(t, s.PutQueue(t.Context(), store.Queue{Name: "q"}))
	inQueue(t, s, "q", 5)
	db := raw(t, dsn)
	tx := db.MustBegin() // as a claim that is under way
	defer tx.Rollback()
	tx.MustExec("SELECT 1 FROM durable_queues WHERE name = 'q' FOR KEY SHARE")
	tx.MustExec("UPDATE durable_runs SET status = 'running' WHERE id IN ('q0', 'q1')")
	require.NoError(t, s.PutQueue(t.Context(), store.Queue{Name: "q", Revision: 1, Max: 3}))
	claimed := make(chan []store.Run, 1)
	go func() {
		runs, err := s.Claim(context.Background(), store.Claim{Executor: "e", Serves: serves, Max: 9, AnyQueue: true})
		if err != nil {
			t.Errorf("claim: %v", err)
		}
		claimed <- runs
	}()
	require.Eventually(t, func() bool {
		var n int
		require.NoError(t, db.Get(&n, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"))
		return n == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, tx.Commit())
	runs := <-claimed
	require.Len(t, runs, 1)
	require.Equal(t, "q2", runs[0].ID)
}

// A claim that a clock since set back remembers for later holds the rate up for one
// window at most.
func TestClaimsFromTheFutureCountAsOfNow(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	beat(t, s, executor("e", time.Hour))
	require.NoError(t, s.PutQueue(t.Context(), store.Queue{Name: "q", Rate: 2, Per: time.Second}))
	inQueue(t, s, "q", 4)
	var until store.Time
	claim := func() []store.Run {
		until = 0
		runs, err := s.Claim(t.Context(), store.Claim{
			Executor: "e", Serves: serves, Max: 9, AnyQueue: true, Held: func(_ string, at store.Time) { until = at },
		})
		require.NoError(t, err)
		return runs
	}
	require.Len(t, claim(), 2)
	raw(t, dsn).MustExec("UPDATE durable_queue_begun SET at = at + 86400000000")
	require.Empty(t, claim())
	next := until
	require.LessOrEqual(t, next, beat(t, s, executor("e", time.Hour)).Now.Add(time.Second))
	var runs []store.Run
	require.Eventually(t, func() bool { runs = claim(); return len(runs) > 0 }, 30*time.Second, 20*time.Millisecond)
	require.Len(t, runs, 2)
	require.GreaterOrEqual(t, runs[0].UpdatedAt, next)
}

// Claims from a queue without limits do not wait for each other, and neither do they
// for one that is stuck.
func TestAStuckClaimHoldsUpNoOtherOfAQueueWithoutLimits(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	beat(t, s, executor("e", time.Hour))
	require.NoError(t, s.PutQueue(t.Context(), store.Queue{Name: "q"}))
	ids := inQueue(t, s, "q", 9)
	claim := func() {
		runs, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: serves, Max: 4, AnyQueue: true})
		require.NoError(t, err)
		require.Len(t, runs, 4)
	}
	claim() // connects and prepares
	tx := raw(t, dsn).MustBegin()
	defer tx.Rollback()
	tx.MustExec("SELECT 1 FROM durable_queues WHERE name = 'q' FOR KEY SHARE")
	tx.MustExec("UPDATE durable_queues SET turn = 'elsewhere' WHERE name = 'q'")
	tx.MustExec("SELECT 1 FROM durable_runs WHERE id = $1 FOR UPDATE", ids[4])
	began := time.Now()
	claim()
	require.Less(t, time.Since(began), lockTimeout)
}

// lockTimeout is how long a statement waits for a lock.
const lockTimeout = 500 * time.Millisecond

// twoLines makes queue q of executor e, with three runs in line in each of the partitions a and b,
// named after their partition and their place in it.
func twoLines(t testing.TB, s *postgres.Store) {
	t.Helper()
	beat(t, s, executor("e", time.Hour))
	require.NoError(t, s.PutQueue(t.Context(), store.Queue{Name: "q", Max: 9}))
	for _, partition := range []string{"a", "b"} {
		for i := range 3 {
			c := (&runLog{id: fmt.Sprint(partition, i)}).create("")
			c.Create.Queue, c.Create.Partition = "q", partition
			commit(t, s, c)
		}
	}
}

// A claim that cannot take a batch takes its runs one by one, and those have had their turns.
func TestARunThatIsTakenAloneBecauseAnotherIsRefusedHasHadItsTurn(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	twoLines(t, s)
	claim := func(most int, want string) {
		runs, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: serves, Max: most, AnyQueue: true})
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, want, runs[0].ID)
	}
	db := raw(t, dsn)
	db.MustExec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`)
	db.MustExec(`CREATE TRIGGER refuse BEFORE UPDATE ON durable_runs FOR EACH ROW WHEN (old.id = 'b0') EXECUTE FUNCTION refuse()`)
	claim(2, "a0")
	db.MustExec("DROP TRIGGER refuse ON durable_runs")
	claim(1, "b0")
}

// While a claim waits for a queue, the turn may pass. What it saw in front before has no turn then.
func TestAClaimThatWaitedForAQueueTakesWhoseTurnItIsNow(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	twoLines(t, s)
	admin := raw(t, dsn)
	tx := raw(t, dsn).MustBegin()
	defer tx.Rollback()
	tx.MustExec("UPDATE durable_queues SET turn = 'a' WHERE name = 'q'")
	type answer struct {
		runs []store.Run
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		runs, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: serves, Max: 1, AnyQueue: true})
		done <- answer{runs, err}
	}()
	waits := map[string]bool{} // the transactions in which the claim has waited: for its batch, then for one run
	require.Eventually(t, func() bool {
		var began []string
		require.NoError(t, admin.Select(&began, `SELECT xact_start::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`))
		for _, x := range began {
			waits[x] = true
		}
		return len(waits) == 2
	}, time.Minute, time.Millisecond)
	require.NoError(t, tx.Commit())
	a := <-done
	require.NoError(t, a.err)
	require.Len(t, a.runs, 1)
	require.Equal(t, "b0", a.runs[0].ID)
}
