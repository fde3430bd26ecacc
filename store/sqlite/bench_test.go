//go:build cgo

package sqlite_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// floor is the least one has to do for a durable, fenced checkpoint: a prepared
// insert on a connection of the driver's, with the columns and the settings of
// ours.
type floor struct {
	st   *sqlite3.SQLiteStmt
	args []driver.NamedValue
	seq  int64
}

func newFloor(t testing.TB, mode sqlite.Synchronous) *floor {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "floor.db") + "?_journal_mode=WAL&_mutex=no&_cache_size=-16384&_synchronous=" + mode.String()
	dc, err := (&sqlite3.SQLiteDriver{}).Open(dsn)
	require.NoError(t, err)
	c := dc.(*sqlite3.SQLiteConn)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for _, text := range []string{
		`CREATE TABLE log (place INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, branch INTEGER NOT NULL, type TEXT NOT NULL, key TEXT NOT NULL,
			attempt INTEGER NOT NULL, ordinal INTEGER NOT NULL, at INTEGER NOT NULL, took INTEGER NOT NULL, active INTEGER NOT NULL,
			steps INTEGER NOT NULL, data TEXT, payload BLOB, sum INTEGER NOT NULL) STRICT`,
		`INSERT INTO log VALUES (268435457, 7, 0, 'workflow_created', '', 0, 0, 0, 0, 0, 0, NULL, NULL, 0)`,
	} {
		_, err := c.Exec(text, nil)
		require.NoError(t, err)
	}
	st, err := c.Prepare(`INSERT OR IGNORE INTO log VALUES (?1, (SELECT ?2 FROM log WHERE place = ?1 - 1 AND epoch = ?15), ?3, ?4, ?5, ?6,
		?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)`)
	require.NoError(t, err)
	f := &floor{st: st.(*sqlite3.SQLiteStmt), seq: 268435457}
	for i, v := range []driver.Value{
		int64(0), int64(7), int64(0), "step_completed", "charge", int64(1), int64(1), int64(created), int64(1000), int64(0), int64(0), nil,
		[]byte(`42`), int64(1 << 31), int64(7),
	} {
		f.args = append(f.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return f
}

func (f *floor) insert(t testing.TB) {
	f.seq++
	f.args[0].Value = f.seq
	if _, err := f.st.ExecContext(context.Background(), f.args); err != nil {
		t.Fatal(err)
	}
}

var modes = []sqlite.Synchronous{sqlite.Full, sqlite.Normal}

func BenchmarkFloor(b *testing.B) {
	for _, mode := range modes {
		b.Run(mode.String(), func(b *testing.B) {
			f := newFloor(b, mode)
			for b.Loop() {
				f.insert(b)
			}
		})
	}
}

func BenchmarkPlainCommit(b *testing.B) {
	for _, mode := range modes {
		b.Run(mode.String(), func(b *testing.B) {
			st := open(b, file(b), sqlite.Options{Synchronous: mode})
			l := start(b, st, "r")
			b.ReportAllocs()
			for b.Loop() {
				commit(b, st, l.plain(1))
			}
		})
	}
}

// BenchmarkAgainstFloor reports how our rate compares with the floor's, from
// blocks of each that alternate: a shared machine changes its speed by half
// within a minute, but not between two blocks.
func BenchmarkAgainstFloor(b *testing.B) {
	const block, pairs = 200, 21
	for _, mode := range modes {
		for _, size := range []int{1, 8, 64, 128} {
			b.Run(fmt.Sprintf("%s/batch=%d", mode, size), func(b *testing.B) {
				f := newFloor(b, mode)
				st := open(b, file(b), sqlite.Options{Synchronous: mode})
				logs := make([]*log, size)
				for i := range logs {
					logs[i] = start(b, st, fmt.Sprintf("run-%03d", i))
				}
				batch := make([]store.Change, size)
				ours := func() {
					for i, l := range logs {
						batch[i] = l.plain(1)
					}
					for _, err := range st.Commit(context.Background(), batch) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
				for b.Loop() {
					var ratios, floors, times []float64
					for range pairs {
						begin := time.Now()
						for range block {
							f.insert(b)
						}
						floor := time.Since(begin).Seconds() / block
						begin = time.Now()
						n := max(block/size, 20)
						for range n {
							ours()
						}
						own := time.Since(begin).Seconds() / float64(n*size)
						ratios, floors, times = append(ratios, floor/own), append(floors, floor), append(times, own)
					}
					b.ReportMetric(median(ratios), "ratio")
					b.ReportMetric(median(floors)*1e6, "floor-µs")
					b.ReportMetric(median(times)*1e6, "own-µs")
				}
			})
		}
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkFan is the mixture of a thousand runs of ten steps, a hundred at a
// time, as a committer hands it over: changes per second.
func BenchmarkFan(b *testing.B) {
	for _, mode := range modes {
		b.Run(mode.String(), func(b *testing.B) {
			f := newFloor(b, mode)
			st := open(b, file(b), sqlite.Options{Synchronous: mode})
			done, n := store.Completed, 0
			for b.Loop() {
				begin := time.Now()
				for range 500 {
					f.insert(b)
				}
				floor := time.Since(begin).Seconds() / 500
				changes := 0
				var spent time.Duration
				for range 10 {
					logs := make([]*log, 100)
					batch := make([]store.Change, 0, 100)
					send := func() {
						begin := time.Now()
						for _, err := range st.Commit(context.Background(), batch) {
							if err != nil {
								b.Fatal(err)
							}
						}
						spent += time.Since(begin)
						changes += len(batch)
						batch = batch[:0]
					}
					for i := range logs {
						n++
						var c store.Change
						logs[i], c = create(fmt.Sprintf("order-%09d", n), func(r *store.Run) { r.Owner, r.Status = "e1", store.Running })
						c.Events = append(c.Events, logs[i].next(store.Event{Type: store.WorkflowStarted}))
						batch = append(batch, c)
					}
					send()
					for range 10 {
						for _, l := range logs {
							batch = append(batch, l.plain(1))
						}
						send()
					}
					for _, l := range logs {
						batch = append(batch, store.Change{
							RunID: l.run, Expect: store.Expect{Epoch: l.epoch, NoCancel: true}, Yield: true, Release: true,
							Events: []store.Event{l.next(store.Event{Type: store.WorkflowCompleted, Payload: []byte(`"ok"`)})},
							Row:    &store.RowPatch{Status: &done, EndedAt: &l.last.At},
						})
					}
					send()
				}
				b.ReportMetric(float64(changes)/spent.Seconds(), "changes/s")
				b.ReportMetric(floor*float64(changes)/spent.Seconds(), "ratio")
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	st := open(b, file(b), sqlite.Options{Synchronous: sqlite.Off})
	l := start(b, st, "r")
	commit(b, st, l.plain(4999))
	for b.Loop() {
		h, err := st.Load(b.Context(), "r", store.Cursor{})
		require.NoError(b, err)
		n := 0
		for _, err := range h.Events {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		require.Equal(b, 5000, n)
	}
	b.ReportMetric(5000*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
