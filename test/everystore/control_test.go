package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A tenant is a workflow that counts how many of its functions are in memory, and
// how many there have been.
type tenant struct {
	wf          *durable.Workflow[int, string]
	here, begun atomic.Int32
}

func newTenant(name string, fn func(ctx context.Context, n int) (string, error)) *tenant {
	x := &tenant{}
	x.wf = durable.Define(name, func(ctx context.Context, n int) (string, error) {
		x.begun.Add(1)
		x.here.Add(1)
		defer x.here.Add(-1)
		return fn(ctx, n)
	})
	return x
}

// gone waits until the run waits and no function of the tenant is in memory.
func (x *tenant) gone(t *testing.T, d *data, id string) store.Run {
	t.Helper()
	row := d.awaits(t, id, store.Waiting)
	for began := time.Now(); x.here.Load() > 0; time.Sleep(moment) {
		require.Less(t, time.Since(began), patience, "%s is not unloaded", id)
	}
	return row
}

// guest waits for a letter, and answers a request meanwhile.
func guest(ctx context.Context, n int) (string, error) {
	if n == 1 {
		q, err := durable.AwaitRequest[string](ctx, "ask")
		if err != nil {
			return "", err
		}
		if err := q.Reply(ctx, q.Value+"!"); err != nil {
			return "", err
		}
	}
	if err := durable.Publish(ctx, "state", "listening"); err != nil {
		return "", err
	}
	return durable.Await[string](ctx, "letter")
}

func TestAnUnloadedRunIsControlledFromAnotherEngine(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		x := newTenant("guest", guest)
		here, there := d.unloading(t, x.wf), d.program(t)
		begin := func(id string, n int) *durable.Run[string] {
			run, err := x.wf.Start(here, id, n)
			require.NoError(t, err)
			require.Equal(t, here.eng.ID(), x.gone(t, d, id).Owner, "it stays with its engine")
			return run
		}
		result := func(run *durable.Run[string]) string {
			out, err := run.Wait(here)
			require.NoError(t, err)
			return out
		}

		run := begin("signalled", 0)
		began := time.Now()
		require.NoError(t, durable.Signal(there, "signalled", "letter", "x"))
		require.Equal(t, "x", result(run))
		t.Logf("signal from another engine to the end of an unloaded run: %s", time.Since(began))

		run = begin("asked", 1)
		answer, err := durable.Request[string](there, "asked", "ask", "well")
		require.NoError(t, err)
		require.Equal(t, "well!", answer)
		state, err := durable.WaitPublished[string](there, "asked", "state", nil)
		require.NoError(t, err)
		require.Equal(t, "listening", state)
		require.NoError(t, durable.Signal(there, "asked", "letter", "y"))
		require.Equal(t, "y", result(run))

		run = begin("cancelled", 0)
		began = time.Now()
		require.NoError(t, there.eng.Cancel(there, "cancelled", "enough"))
		_, err = run.Wait(here)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		t.Logf("cancel from another engine to the end of an unloaded run: %s", time.Since(began))

		run = begin("paused", 0)
		require.NoError(t, there.eng.Pause(there, "paused", "hold on"))
		for { // its engine has carried it out
			if h, err := d.outside.Load(there, "paused", store.Cursor{NoEvents: true}); err != nil || h.Run.Paused {
				require.NoError(t, err)
				require.Empty(t, h.Run.Owner)
				require.Equal(t, store.Waiting, h.Run.Status)
				break
			}
			time.Sleep(moment)
		}
		n := x.begun.Load()
		require.NoError(t, durable.Signal(there, "paused", "letter", "z"))
		// What would wake it is a notice; nothing is to happen, so there is nothing
		// to wait for but some time.
		time.Sleep(short)
		require.Equal(t, n, x.begun.Load(), "a paused run is not loaded for a signal")
		began = time.Now()
		require.NoError(t, there.eng.Unpause(there, "paused"))
		require.Equal(t, "z", result(run))
		t.Logf("unpause from another engine to the end of the run: %s", time.Since(began))
	})
}

func TestARunIsStartedWithASignalByTwoEngines(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		here, there := d.unloading(t, letters), d.program(t, letters)
		var runs [2]*durable.Run[string]
		var errs [2]error
		var starts sync.WaitGroup
		for i, p := range []program{here, there} {
			starts.Go(func() {
				runs[i], errs[i] = letters.Start(p, "r", 0,
					durable.WithSignal("letter", "x", durable.SignalID("common")), durable.WithSignal("letter", fmt.Sprint(i), durable.SignalID(fmt.Sprint(i))))
			})
		}
		starts.Wait()
		d.awaits(t, "r", store.Completed)
		for i, p := range []program{here, there} {
			if errors.Is(errs[i], durable.ErrNotRunning) {
				continue // the letters of the other one were enough
			}
			require.NoError(t, errs[i])
			out, err := runs[i].Wait(p)
			require.NoError(t, err)
			require.Contains(t, []string{"x0", "x1"}, out, "the common one came once, and first")
		}
	})
}

func TestOfTwoEnginesThatWantAKeyOneGetsIt(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		x := newTenant("guest", guest)
		programs := []program{d.unloading(t, x.wf), d.program(t, x.wf)}
		const rounds = 10
		for n := range rounds {
			var errs [2]error
			var starts sync.WaitGroup
			for i, p := range programs {
				starts.Go(func() {
					// In other orders, as two programs would.
					keys := []string{"a", "b"}
					if i == 1 {
						keys = []string{"b", "a"}
					}
					_, errs[i] = x.wf.Start(p, fmt.Sprint(n, " of ", i), 0, durable.Exclusive(keys...))
				})
			}
			starts.Wait()
			won := 0
			if errs[0] != nil {
				won = 1
			}
			require.NoError(t, errs[won])
			require.ErrorIs(t, errs[1-won], durable.ErrOccupied)
			winner := fmt.Sprint(n, " of ", won)
			var o *store.OccupiedError
			require.ErrorAs(t, errs[1-won], &o)
			require.Equal(t, winner, o.Holder)
			_, err := d.outside.Load(context.Background(), fmt.Sprint(n, " of ", 1-won), store.Cursor{NoEvents: true})
			require.ErrorIs(t, err, store.ErrNotFound, "the other one is not there")

			// It holds them while it is unloaded, and lets go of them in the act
			// that ends it.
			d.awaits(t, winner, store.Waiting)
			_, err = x.wf.Start(programs[1-won], "late", 0, durable.Exclusive("b"))
			require.ErrorIs(t, err, durable.ErrOccupied)
			require.NoError(t, durable.Signal(programs[1-won], winner, "letter", "x"))
			d.awaits(t, winner, store.Completed)
		}
	})
}

func TestTwoEnginesThatStartTheSameRunsInBulkStartEachOnce(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		const count = 400
		var mu sync.Mutex
		done := map[int]int{}
		task := durable.Define("task", func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "work", func(context.Context) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				done[n]++
				return n, nil
			})
		})
		var all iter.Seq2[string, int] = func(yield func(string, int) bool) {
			for n := range count {
				if !yield(fmt.Sprintf("task %03d", n), n) {
					return
				}
			}
		}
		var told [2]durable.Bulk
		var errs [2]error
		var starts sync.WaitGroup
		for i, p := range []program{d.program(t, task), d.program(t, task)} {
			starts.Go(func() {
				told[i], errs[i] = task.StartAll(p, all)
			})
		}
		began := time.Now()
		starts.Wait()
		require.NoError(t, errors.Join(errs[:]...))
		t.Logf("%+v and %+v in %s", told[0], told[1], time.Since(began))
		require.Equal(t, count, told[0].Started+told[1].Started)
		require.Equal(t, count, told[0].Existing+told[1].Existing)
		require.Empty(t, append(told[0].Refused, told[1].Refused...))
		for {
			counts, err := d.outside.Count(context.Background(), store.Filter{}, store.ByStatus)
			require.NoError(t, err)
			if counts[string(store.Completed)] == count {
				break
			}
			require.Less(t, time.Since(began), patience, "%v", counts)
			time.Sleep(5 * moment)
		}
		for n := range count {
			require.Equal(t, 1, done[n], "task %d", n)
		}
	})
}

// A run waits, for an hour, when its process dies: nobody executes it when its
// deadline comes, and another process carries that out.
func TestTheDeadlineOfADeadOwnersRunIsCarriedOutByAnother(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		const beat, deadline = 200 * time.Millisecond, 700 * time.Millisecond
		undone := make(chan string, 2)
		define := func(where string) *durable.Workflow[int, string] {
			return durable.Define("late", func(ctx context.Context, _ int) (string, error) {
				if err := durable.Compensate(ctx, "undo", func(context.Context) error { undone <- where; return nil }); err != nil {
					return "", err
				}
				if err := durable.Do(ctx, "book", func(context.Context) error { return nil }); err != nil {
					return "", err
				}
				return "", durable.Sleep(ctx, time.Hour)
			})
		}
		st, err := d.open()
		require.NoError(t, err)
		first := newProcess(st, "r", nil, func() {})
		here := define("here")
		lease := durable.MinLease
		if b.tellsAtOnce {
			lease = longLease
		}
		p := runProgram(t, first, durable.Options{Workflows: []durable.Definition{here}, Lease: lease, UnloadAfter: time.Nanosecond})
		began := time.Now()
		_, err = here.Start(p, "r", 0, durable.Deadline(deadline))
		require.NoError(t, err)
		d.awaits(t, "r", store.Waiting)
		first.alive(first.die)
		require.NoError(t, p.eng.Close())
		require.NoError(t, st.Close())
		require.Less(t, time.Since(began), deadline)

		there := define("there")
		q := d.beating(t, 3*beat, there)
		h, err := there.Handle(q, "r")
		require.NoError(t, err)
		_, err = h.Wait(q)
		require.ErrorIs(t, err, durable.ErrDeadline)
		took := time.Since(began)
		t.Logf("a deadline of %s was carried out after %s", deadline, took)
		require.GreaterOrEqual(t, took, deadline-short)
		require.Equal(t, "there", <-undone)
		require.Equal(t, durable.CodeDeadline, d.awaits(t, "r", store.Failed).Code)
	})
}
