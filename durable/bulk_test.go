package durable_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// numbered yields n ids and inputs, from a number on.
func numbered(from, n int) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for i := range n {
			if !yield(fmt.Sprintf("r%05d", from+i), from+i) {
				return
			}
		}
	}
}

// count counts runs by status.
func count(t *testing.T, w *world, s store.Status) int {
	t.Helper()
	n, err := w.data.Count(context.Background(), store.Filter{Statuses: []store.Status{s}}, "")
	require.NoError(t, err)
	return int(n[""])
}

// census is a workflow that counts how many of it are under way.
func census(name string) (wf *durable.Workflow[int, int], most func() int) {
	var now, peak atomic.Int64
	wf = durable.Define(name, func(ctx context.Context, in int) (int, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		return in + 1, durable.Do(ctx, "s", func(context.Context) error { time.Sleep(time.Second); return nil })
	})
	return wf, func() int { return int(peak.Load()) }
}

func TestManyRunsAreStartedInFewCommitsAndExecutedAsThereIsRoom(t *testing.T) {
	for _, recovered := range []bool{true, false} {
		t.Run(fmt.Sprintf("Recover was called: %v", recovered), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf, most := census("w")
				o := with(wf)
				o.MaxRuns = 100
				w.open(t, o)
				// A run of an earlier process: without Recover it is left alone.
				seed(t, w, store.Run{ID: "old", Workflow: "w", Version: "1", Status: store.Pending})
				if recovered {
					_, err := w.eng.Recover(w.ctx())
					require.NoError(t, err)
				}
				var mu sync.Mutex
				commits := 0
				w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
					mu.Lock()
					defer mu.Unlock()
					if batch[0].Create != nil {
						commits++
					}
					return forward()
				})
				b, err := wf.StartAll(w.ctx(), numbered(0, 2000))
				require.NoError(t, err)
				require.Equal(t, durable.Bulk{Started: 2000}, b)
				require.Equal(t, 4, commits)
				pass(time.Minute)
				want := 2000
				if recovered {
					want++
				}
				require.Equal(t, want, count(t, w, store.Completed))
				require.LessOrEqual(t, most(), 100)
				require.Greater(t, most(), 50)
				out, err := wait(t, w, wf, "r00041")
				require.NoError(t, err)
				require.Equal(t, 42, out)
				require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed s", "workflow_completed"}, w.story("r00041"))
			})
		})
	}
}

func TestStartAllAgainGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := census("w")
		w.serve(t, wf)
		b, err := wf.StartAll(w.ctx(), numbered(0, 700))
		require.NoError(t, err)
		require.Equal(t, durable.Bulk{Started: 700}, b)
		b, err = wf.StartAll(w.ctx(), numbered(0, 1500))
		require.NoError(t, err)
		require.Equal(t, durable.Bulk{Started: 800, Existing: 700}, b)
		pass(time.Hour)
		b, err = wf.StartAll(w.ctx(), numbered(0, 1500))
		require.NoError(t, err)
		require.Equal(t, durable.Bulk{Existing: 1500}, b)
		require.Equal(t, 1500, count(t, w, store.Completed))
	})
}

func TestOneBadItemDoesNotKeepTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(_ context.Context, in any) (int, error) { return 1, nil })
		other, _ := census("other")
		w.serve(t, wf, other)
		start(t, w, other, "another workflow", 1)
		start(t, w, wf, "another input", any(1))
		start(t, w, wf, "the same", any(2))
		items := []struct {
			id string
			in any
		}{
			{"good", 1}, {"", 1}, {"another workflow", 1}, {"another input", 2}, {"the same", 2},
			{"chan", make(chan int)}, {"twice", 1}, {"twice", 1}, {"twice", 2}, {"also good", 1}, {durable.AutoID, 1}, {durable.AutoID, 1}, {durable.AutoID, make(chan int)},
		}
		b, err := wf.StartAll(w.ctx(), func(yield func(string, any) bool) {
			for _, it := range items {
				if !yield(it.id, it.in) {
					return
				}
			}
		})
		require.NoError(t, err)
		require.Equal(t, 5, b.Started)
		require.Equal(t, 2, b.Existing)
		refused := map[string]error{}
		for _, r := range b.Refused {
			refused[r.ID] = errors.Join(refused[r.ID], r)
		}
		require.Len(t, b.Refused, 6)
		require.ErrorIs(t, refused[""], durable.ErrInvalid)
		require.ErrorIs(t, refused["another workflow"], durable.ErrConflict)
		require.ErrorIs(t, refused["another input"], durable.ErrConflict)
		require.ErrorIs(t, refused["twice"], durable.ErrConflict)
		var encode *durable.EncodeError
		require.ErrorAs(t, refused["chan"], &encode)
		require.ErrorAs(t, refused[""], &encode)
		pass(time.Minute)
		n, err := w.data.Count(context.Background(), store.Filter{Workflows: []string{"w"}, Statuses: []store.Status{store.Completed}}, "")
		require.NoError(t, err)
		require.EqualValues(t, 7, n[""])
	})
}

func TestTheOptionsOfStartAllAreThoseOfEachRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		saw := map[string]int{}
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			mu.Lock()
			saw[written(durable.Headers(ctx))]++
			mu.Unlock()
			v, err := durable.Await[string](ctx, "go")
			if err != nil {
				return "", err
			}
			return v, durable.Sleep(ctx, 1000*time.Hour)
		})
		w.boot(t, with(wf))
		o := []durable.StartOption{durable.Header("tenant", "acme"), durable.Deadline(time.Hour), durable.WithSignal("go", "now"), durable.Attributes(map[string]string{"a": "b"})}
		b, err := wf.StartAll(w.ctx(), numbered(0, 10), o...)
		require.NoError(t, err)
		require.Equal(t, durable.Bulk{Started: 10}, b)
		pass(time.Minute)
		require.Equal(t, map[string]int{"tenant=acme": 10}, saw)
		row := w.row("r00003")
		require.Equal(t, store.Waiting, row.Status)
		require.EqualValues(t, 1, row.Inbox)
		require.Equal(t, map[string]string{"a": "b"}, row.Attributes)
		pass(2 * time.Hour)
		require.Equal(t, durable.CodeDeadline, w.row("r00003").Code)

		// A key can only be had by one of them.
		b, err = wf.StartAll(w.ctx(), numbered(100, 3), durable.Exclusive("desk"))
		require.NoError(t, err)
		require.Equal(t, 1, b.Started)
		require.Len(t, b.Refused, 2)
		occupied(t, b.Refused[0], "r00101", "desk", "r00100")

		// A signal to a run that has ended is refused, as Start would.
		b, err = wf.StartAll(w.ctx(), numbered(3, 1), durable.WithSignal("go", "late"))
		require.NoError(t, err)
		require.ErrorIs(t, b.Refused[0], durable.ErrNotRunning)

		_, err = wf.StartAll(w.ctx(), numbered(200, 1), durable.Header("", ""))
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = wf.StartAll(w.ctx(), nil)
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.ErrorIs(t, func() error { _, err := w.eng.Get(w.ctx(), "r00200"); return err }(), durable.ErrNotFound)
	})
}

func TestTheEndOfItsContextStopsStartAllBetweenBatches(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := census("w")
		w.serve(t, wf)
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(w.ctx())
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if batch[0].RunID == "r00512" {
				cancel(enough)
			}
			return forward()
		})
		b, err := wf.StartAll(ctx, numbered(0, 5000))
		require.ErrorIs(t, err, enough)
		require.ErrorContains(t, err, "1,024 runs started")
		require.Equal(t, durable.Bulk{Started: 1024}, b)
		b, err = wf.StartAll(w.ctx(), numbered(0, 2000))
		require.NoError(t, err)
		require.Equal(t, durable.Bulk{Started: 976, Existing: 1024}, b)
		require.NoError(t, w.eng.Close())
		b, err = wf.StartAll(w.ctx(), numbered(9000, 1))
		require.ErrorIs(t, err, durable.ErrClosed)
		require.Zero(t, b)
	})
}

func TestStartAllSendsUnknownOutcomesAgainAndReportsAFailedStore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := census("w")
		w.serve(t, wf)
		tries := 0
		sent := map[string]uint32{}
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if batch[0].Create == nil {
				return forward()
			}
			tries++
			for i := range batch {
				if was, again := sent[batch[i].RunID]; again {
					require.Equal(t, was, batch[i].Events[0].Sum, "as it was")
				}
				sent[batch[i].RunID] = batch[i].Events[0].Sum
			}
			switch {
			case tries == 1: // it happened, and the reply is lost
				forward()
				return all(batch, fmt.Errorf("reply lost: %w", store.ErrUnknown))
			case tries == 2: // it did not
				return all(batch, store.ErrUnknown)
			}
			return forward()
		})
		b, err := wf.StartAll(w.ctx(), numbered(0, 100))
		require.NoError(t, err)
		require.Equal(t, durable.Bulk{Started: 100}, b)
		require.Equal(t, 3, tries)

		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if batch[0].Create == nil {
				return forward()
			}
			errs := forward()
			errs[1] = errDisk // of one it does not know
			return errs
		})
		b, err = wf.StartAll(w.ctx(), numbered(100, 100))
		require.ErrorIs(t, err, durable.ErrUnavailable)
		require.Equal(t, durable.Bulk{Started: 99}, b)
		w.disk.tamper(nil)
		b, err = wf.StartAll(w.ctx(), numbered(0, 200))
		require.NoError(t, err)
		require.Equal(t, durable.Bulk{Existing: 200}, b)
		pass(time.Hour)
		require.Equal(t, 200, count(t, w, store.Completed))
	})
}

func TestStartAllWithinARunBelongsIntoAStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kid, _ := census("kid")
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := kid.StartAll(ctx, numbered(0, 3))
			if !errors.Is(err, durable.ErrInvalid) {
				return 0, fmt.Errorf("not refused: %w", err)
			}
			return durable.Step(ctx, "start", func(ctx context.Context) (int, error) {
				b, err := kid.StartAll(ctx, numbered(0, 3))
				return b.Started, err
			})
		})
		w.serve(t, wf, kid)
		n, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		pass(time.Minute)
		require.Equal(t, 4, count(t, w, store.Completed))
	})
}

// Who has no code starts, who has it executes; and a process that dies between
// starting and taking them leaves nothing behind.
func TestWhatStartAllStartedIsTakenByWhoeverServesIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b, err := func() (durable.Bulk, error) {
			w.serve(t)
			return durable.Ref[int, int]("w").StartAll(w.ctx(), numbered(0, 50))
		}()
		require.NoError(t, err)
		require.Equal(t, 50, b.Started)
		wf, _ := census("w")
		w.open(t, durable.Options{Workflows: []durable.Definition{wf}, MaxRuns: 1})
		_, err = wf.StartAll(w.ctx(), numbered(50, 50))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 99, count(t, w, store.Pending), "Recover was not called: those of others are left alone")
		w.reboot(t, with(wf))
		pass(time.Hour)
		require.Equal(t, 100, count(t, w, store.Completed))
	})
}

// A claim that fails is made again.
func TestClaimsOfStartedRunsThatFailAreMadeAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := census("w")
		w.serve(t, wf)
		failed := 0
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "claim" && failed < 2 {
				failed++
				return errDisk
			}
			return forward()
		})
		_, err := wf.StartAll(w.ctx(), numbered(0, 100))
		require.NoError(t, err)
		pass(5 * time.Minute)
		require.Equal(t, 100, count(t, w, store.Completed))
		require.Equal(t, 2, failed)
	})
}

// The caller repeats StartAll in every life; killed at any write, each run is
// there once.
func TestStartAllKilledAtAnyWriteStartsEachRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		define := func(j *journal) []durable.Definition {
			wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				return durable.Step(ctx, "all", func(ctx context.Context) (string, error) {
					b, err := letters.StartAll(ctx, numbered(1, 3), durable.WithSignal("letter", "a", durable.SignalID("1")), durable.WithSignal("letter", "b", durable.SignalID("2")), durable.WithSignal("letter", "c", durable.SignalID("3")))
					if err != nil || len(b.Refused) > 0 {
						return "", errors.Join(err, fmt.Errorf("%v", b.Refused))
					}
					all := ""
					for i := range 3 {
						h, err := letters.Handle(ctx, fmt.Sprintf("r%05d", i+1))
						if err != nil {
							return "", err
						}
						v, err := h.Wait(ctx)
						if err != nil {
							return "", err
						}
						all += v
					}
					return all, nil
				})
			})
			return []durable.Definition{wf, letters}
		}
		want, _, writes := livesOf(t, durable.Options{}, define, nil)
		require.Equal(t, "aababc, <nil>", want)
		for at := 1; at <= writes; at++ {
			for _, after := range []bool{false, true} {
				got, _, _ := livesOf(t, durable.Options{}, define, []death{{at, after}})
				require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
			}
		}
	})
}

// A batch is committed when it is full, or the sequence has ended.
func TestTheTimeOfARunIsCountedFromItsStartHoweverSlowTheSequenceOfStartAllIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, durable.Sleep(ctx, time.Minute) })
		w.boot(t, with(wf))
		bulk, err := wf.StartAll(w.ctx(), func(yield func(string, int) bool) {
			if yield("early", 0) {
				time.Sleep(time.Hour)
				yield("late", 0)
			}
		}, durable.Delay(time.Minute), durable.Deadline(10*time.Minute))
		require.NoError(t, err)
		require.Equal(t, 2, bulk.Started)
		began := time.Now()
		for _, id := range []string{"early", "late"} {
			_, err := wait(t, w, wf, id)
			require.NoError(t, err, id)
			require.GreaterOrEqual(t, w.row(id).StartedAt.Time().Sub(began), time.Minute, "the delay")
		}
	})
}

// A sequence that takes its time has a batch stamped anew when it is committed.
func TestRunsOfASlowStartAllAreListedInItsOrder(t *testing.T) {
	data := memory.Open() // with the clock of the machine: time passes between two lines
	eng, err := durable.Open(t.Context(), data, durable.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	in := func(yield func(string, int) bool) {
		numbered(0, 3000)(func(id string, n int) bool {
			if n == 1 {
				time.Sleep(150 * time.Millisecond)
			}
			return yield(id, n)
		})
	}
	b, err := durable.Ref[int, int]("elsewhere").StartAll(durable.NewContext(t.Context(), eng), in)
	require.NoError(t, err)
	require.Equal(t, 3000, b.Started)
	last := store.Time(0)
	for id := range numbered(0, 3000) {
		h, err := data.Load(t.Context(), id, store.Cursor{NoEvents: true})
		require.NoError(t, err)
		require.GreaterOrEqual(t, h.Run.CreatedAt, last, id)
		last = h.Run.CreatedAt
	}
}
