package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// floor is what a program without us would do: one prepared, fenced insert per
// step on a connection of its own.
func floor(t testing.TB, dsn string) func() {
	db := raw(t, dsn)
	_, err := db.Exec(`CREATE TABLE floor_events (run_no bigint, seq bigint, epoch bigint, branch integer, type text, key text, attempt integer,
		ordinal integer, at bigint, took bigint, active bigint, steps integer, data text, payload bytea, sum bigint, PRIMARY KEY (run_no, seq));
		INSERT INTO floor_events (run_no, seq, epoch) VALUES (1, 0, 7)`)
	require.NoError(t, err)
	conn, err := db.DB.Conn(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	stmt, err := conn.PrepareContext(context.Background(), `INSERT INTO floor_events
		(run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
		SELECT $1::bigint, $2::bigint, $3::bigint, 0, 'step_completed'::text, $4::text, 1, 1, $5::bigint, 0, 0, 1, NULL, $6::bytea, 1
		WHERE EXISTS (SELECT 1 FROM floor_events p WHERE p.run_no = $1 AND p.seq = $2 - 1 AND p.epoch = $3)`)
	require.NoError(t, err)
	payload := []byte(`hf1 json int@1 - - dbea4e35` + "\n" + `{"n":1}`)
	seq := int64(0)
	return func() {
		seq++
		res, err := stmt.Exec(int64(1), seq, int64(7), fmt.Sprintf("step#%d", seq), time.Now().UnixMicro(), payload)
		if n, _ := rows(res); err != nil || n != 1 {
			t.Fatalf("floor: %d rows, %v", n, err)
		}
	}
}

func rows(r sql.Result) (int64, error) {
	if r == nil {
		return 0, nil
	}
	return r.RowsAffected()
}

var stepPayload = []byte(`hf1 json int@1 - - dbea4e35` + "\n" + `{"n":1}`)

// BenchmarkSingle alternates blocks of the floor and of ours, and reports the
// ratio: above 1, ours is faster.
func BenchmarkSingle(b *testing.B) {
	dsn := pgtest.DSN(b)
	s := open(b, dsn)
	insert := floor(b, dsn)
	r := &runLog{id: "bench"}
	commit(b, s, r.create("me"))
	var theirs, ours time.Duration
	ctx := context.Background()
	batch := make([]store.Change, 1)
	for b.Loop() {
		start := time.Now()
		for range 100 {
			insert()
		}
		theirs += time.Since(start)
		start = time.Now()
		for range 100 {
			batch[0] = r.step(stepPayload)
			if err := s.Commit(ctx, batch)[0]; err != nil {
				b.Fatal(err)
			}
		}
		ours += time.Since(start)
	}
	b.ReportMetric(float64(theirs)/float64(ours), "floor/ours")
	b.ReportMetric(float64(ours.Microseconds())/float64(100*b.N), "µs/step")
}

// BenchmarkBatch commits one step of each of n runs at a time.
func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{8, 32, 128} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dsn := pgtest.DSN(b)
			s := openOptions(b, dsn, postgres.Options{Writers: 1})
			runs := make([]*runLog, n)
			for i := range runs {
				runs[i] = &runLog{id: fmt.Sprintf("run-%d", i)}
				commit(b, s, runs[i].create("me"))
			}
			batch := make([]store.Change, n)
			rounds := 0
			for b.Loop() {
				rounds++
				for i, r := range runs {
					batch[i] = r.step(stepPayload)
				}
				for _, err := range s.Commit(context.Background(), batch) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(rounds*n)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// BenchmarkMixed keeps a hundred runs going at a time, each made of a create,
// ten steps and a completion, as a busy engine does, on one connection.
func BenchmarkMixed(b *testing.B) {
	dsn := pgtest.DSN(b)
	s := openOptions(b, dsn, postgres.Options{Writers: 1})
	insert := floor(b, dsn)
	start := time.Now()
	const singles = 500
	for range singles {
		insert()
	}
	single := float64(singles) / time.Since(start).Seconds()

	const width, steps = 100, 10
	type live struct {
		*runLog
		done int
	}
	var runs []*live
	next := 0
	changes := 0
	batch := make([]store.Change, 0, width)
	b.ResetTimer()
	for b.Loop() {
		batch = batch[:0]
		for len(runs) < width {
			runs = append(runs, &live{runLog: &runLog{id: fmt.Sprintf("m-%d", next)}, done: -1 - next%(steps+2)%2})
			next++
		}
		kept := runs[:0]
		for _, r := range runs {
			switch {
			case r.done < 0:
				c := r.create("me")
				c.Events = append(c.Events, r.event(store.WorkflowStarted, "", nil))
				batch = append(batch, c)
				r.done = next % steps / 2 // so that the runs do not march in step
				kept = append(kept, r)
			case r.done < steps:
				batch = append(batch, r.step(stepPayload))
				r.done++
				kept = append(kept, r)
			default:
				batch = append(batch, r.complete())
			}
		}
		runs = kept
		for _, err := range s.Commit(context.Background(), batch) {
			if err != nil {
				b.Fatal(err)
			}
		}
		changes += len(batch)
	}
	rate := float64(changes) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "changes/s")
	b.ReportMetric(rate/single, "x-single")
}

// BenchmarkReplay reads a history of 5,000 events.
func BenchmarkReplay(b *testing.B) {
	s := fresh(b)
	r := &runLog{id: "long"}
	commit(b, s, r.create("me"))
	for range 10 {
		c := r.step(stepPayload)
		for range 499 {
			c.Events = append(c.Events, r.step(stepPayload).Events...)
		}
		commit(b, s, c)
	}
	b.ResetTimer()
	events := 0
	for b.Loop() {
		h, err := s.Load(context.Background(), "long", store.Cursor{})
		require.NoError(b, err)
		for _, err := range h.Events {
			require.NoError(b, err)
			events++
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkClaim takes runs, 64 at a time, by one process: of the unnamed queue, and of a
// named one with and without limits.
func BenchmarkClaim(b *testing.B) {
	for name, queue := range map[string]string{"unnamed": "", "queue": "q"} {
		b.Run(name, func(b *testing.B) {
			dsn := pgtest.DSN(b)
			s := open(b, dsn)
			beat(b, s, executor("e", time.Hour))
			const batch = 64
			left, taken := 0, 0
			for b.Loop() {
				if left < batch {
					b.StopTimer()
					raw(b, dsn).MustExec("TRUNCATE durable_runs, durable_events")
					backlog(b, dsn, "pending", "w", queue, "", 0, 20_000)
					left = 20_000
					b.StartTimer()
				}
				runs, err := s.Claim(context.Background(), store.Claim{
					Executor: "e", Serves: serves, Max: batch, Queues: []store.QueueRoom{{Queue: "q", Max: -1}},
				})
				if err != nil || len(runs) != batch {
					b.Fatalf("%d runs, %v", len(runs), err)
				}
				left -= batch
				taken += batch
			}
			b.ReportMetric(float64(taken)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

// BenchmarkClaimers takes 20,000 runs of a queue, 64 at a time, by two processes at once
// (as handles of their own), with and without a limit.
func BenchmarkClaimers(b *testing.B) {
	for name, limit := range map[string]int{"open": 0, "limited": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			var took time.Duration
			rounds := 0
			for b.Loop() {
				b.StopTimer()
				dsn := pgtest.DSN(b)
				first := open(b, dsn)
				require.NoError(b, first.PutQueue(b.Context(), store.Queue{Name: "q", Max: limit}))
				backlog(b, dsn, "pending", "w", "q", "", 0, 20_000)
				var all sync.WaitGroup
				var left atomic.Int64
				left.Store(20_000)
				b.StartTimer()
				began := time.Now()
				for i, s := range []*postgres.Store{first, open(b, dsn)} {
					id := fmt.Sprint("e", i)
					beat(b, s, executor(id, time.Hour))
					all.Go(func() {
						for left.Load() > 0 {
							runs, err := s.Claim(context.Background(), store.Claim{Executor: id, Serves: serves, Max: 64, AnyQueue: true})
							if err != nil {
								b.Error(err)
								return
							}
							left.Add(-int64(len(runs)))
						}
					})
				}
				all.Wait()
				took += time.Since(began)
				rounds++
			}
			b.ReportMetric(float64(20_000*rounds)/took.Seconds(), "runs/s")
		})
	}
}
