package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// presence counts how many executions of a workflow function are under way.
type presence struct{ begun, here atomic.Int32 }

func (p *presence) enter() (leave func()) {
	p.begun.Add(1)
	p.here.Add(1)
	return func() { p.here.Add(-1) }
}

// waits is a workflow that waits for a signal, and counts its executions.
func (p *presence) waits() *durable.Workflow[int, string] {
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		defer p.enter()()
		return durable.Await[string](ctx, "x")
	})
}

func TestASleepingRunHasNoGoroutineAndWakesInTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p presence
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (time.Time, error) {
			defer p.enter()()
			if err := durable.Do(ctx, "before", func(context.Context) error { bodies++; return nil }); err != nil {
				return time.Time{}, err
			}
			if err := durable.Sleep(ctx, 30*24*time.Hour); err != nil {
				return time.Time{}, err
			}
			return durable.Step(ctx, "after", func(context.Context) (time.Time, error) { return time.Now(), nil })
		})
		w.serve(t, wf)
		began := time.Now()
		run, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.Zero(t, p.here.Load(), "the goroutine has ended")
		require.Equal(t, store.Waiting, w.row("r").Status)
		require.Equal(t, w.eng.ID(), w.row("r").Owner, "it stays ours")

		at, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 30*24*time.Hour, at.Sub(began).Round(time.Millisecond))
		require.Equal(t, 1, bodies)
		require.EqualValues(t, 2, p.begun.Load())
		require.Equal(t, []string{
			"workflow_created", "workflow_started", "step_completed before", "timer_set sleep", "timer_fired sleep", "step_completed after", "workflow_completed",
		}, w.story("r"), "no event tells of the unloading")
	})
}

func TestAWaitWhoseEndIsNotKnownIsUnloadedAfterAWhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p presence
		wf := p.waits()
		w.serve(t, wf)
		run, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		pass(durable.DefaultUnloadAfter - time.Second)
		require.EqualValues(t, 1, p.here.Load(), "most answers come soon")
		pass(2 * time.Second)
		require.Zero(t, p.here.Load())

		// Somebody else's signal is no reason to go on, but it is looked at.
		require.NoError(t, durable.Signal(w.ctx(), "r", "y", "not yours"))
		synctest.Wait()
		require.EqualValues(t, 1, p.here.Load())
		pass(time.Minute)
		require.Zero(t, p.here.Load())
		require.EqualValues(t, 2, p.begun.Load(), "and once is enough")

		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "yours"))
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "yours", out)
	})
}

// It kept its place of MaxRuns, for which the child that it waited for waited in line.
func TestARunIsUnloadedThoughMailHasComeThatNoWaitWants(t *testing.T) {
	for _, from := range []string{"this process", "another one"} {
		t.Run("from "+from, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var p presence
				wf := p.waits()
				w.serve(t, wf)
				_, err := wf.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				pass(durable.DefaultUnloadAfter / 2)
				if from == "another one" {
					w.serve(t)
				}
				require.NoError(t, durable.Signal(w.ctx(), "r", "y", "not yours"))
				pass(time.Minute)
				require.Zero(t, p.here.Load())
				require.EqualValues(t, 1, p.begun.Load())
			})
		})
	}
}

func TestASignalFromAnotherProcessLoadsARun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p presence
		wf := p.waits()
		w.serve(t, wf)
		run, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		pass(time.Minute)
		require.Zero(t, p.here.Load())
		here := w.ctx()
		w.serve(t)
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "from afar"))
		sent := time.Now()
		out, err := run.Wait(here)
		require.NoError(t, err)
		require.Equal(t, "from afar", out)
		require.Less(t, time.Since(sent), time.Second, "the notice is enough")
	})
}

func TestAFamilyOfUnloadedRunsWakesFromTheYoungest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p presence
		var wf *durable.Workflow[int, int]
		wf = durable.Define("w", func(ctx context.Context, depth int) (int, error) {
			defer p.enter()()
			if depth == 0 {
				return 1, durable.Sleep(ctx, 24*time.Hour)
			}
			below, err := wf.Run(ctx, durable.AutoID, depth-1)
			return below + 1, err
		})
		w.serve(t, wf)
		run, err := wf.Start(w.ctx(), "r", 5)
		require.NoError(t, err)
		pass(time.Minute)
		require.Zero(t, p.here.Load())
		out, err := run.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 6, out)
	})
}

func TestBranchesAndItemsThatAllWaitAreUnloadedTogether(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) (int, error){
		"go": func(ctx context.Context) (int, error) {
			a := durable.Go(ctx, "a", func(ctx context.Context) (int, error) { return 1, durable.Sleep(ctx, time.Hour) })
			b := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return 2, durable.Sleep(ctx, 2*time.Hour) })
			n, err := a.Wait(ctx)
			if err != nil {
				return 0, err
			}
			m, err := b.Wait(ctx)
			return n + m, err
		},
		"group": func(ctx context.Context) (int, error) {
			g := durable.NewGroup(ctx)
			for i := range 3 {
				g.Go(fmt.Sprint("b", i), func(ctx context.Context) error { return durable.Sleep(ctx, time.Duration(i+1)*time.Hour) })
			}
			return 3, g.Wait()
		},
		"first": func(ctx context.Context) (int, error) {
			a := durable.Go(ctx, "a", func(ctx context.Context) (int, error) { return 3, durable.Sleep(ctx, time.Hour) })
			b := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return 2, durable.Sleep(ctx, 2*time.Hour) })
			_, n, err := durable.First(ctx, "winner", b, a)
			return n, err
		},
		"map": func(ctx context.Context) (int, error) {
			vs, err := durable.Map(ctx, "items", make([]int, 7), durable.MapOptions{Concurrency: 3}, func(ctx context.Context, _ int) (int, error) {
				return 1, durable.Sleep(ctx, time.Hour)
			})
			return len(vs) - 4, err
		},
		"map of an endless source that waits": func(ctx context.Context) (int, error) {
			source := func(yield func(int) bool) {
				for i := 0; i < 100 && yield(i); i++ {
				}
			}
			return durable.MapSeq(ctx, "items", source, durable.MapOptions{Concurrency: 50}, func(ctx context.Context, _ int) (int, error) {
				return 0, durable.Sleep(ctx, time.Hour)
			}, 3, func(a, b int) int { return a + b })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var p presence
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					defer p.enter()()
					return body(ctx)
				})
				w.serve(t, wf)
				run, err := wf.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				pass(time.Second)
				require.Zero(t, p.here.Load())
				out, err := run.Wait(w.ctx())
				require.NoError(t, err)
				require.Equal(t, 3, out)
				require.Greater(t, p.begun.Load(), int32(1))
			})
		})
	}
}

func TestARunIsNotUnloadedWhileSomethingOfItGoesOn(t *testing.T) {
	nap := func(ctx context.Context) error { return durable.Sleep(ctx, time.Hour) }
	for name, c := range map[string]struct {
		o   durable.Options
		def []durable.DefineOption
		fn  func(ctx context.Context) error
	}{
		"switched off":            {o: durable.Options{UnloadAfter: -1}, fn: nap},
		"opted out":               {def: []durable.DefineOption{durable.KeepLoaded()}, fn: nap},
		"a wait below the length": {o: durable.Options{UnloadAfter: 2 * time.Hour}, fn: nap},
		"the user's own goroutine": {fn: func(ctx context.Context) error {
			done := make(chan error)
			go func() { done <- nap(ctx) }()
			return <-done
		}},
		"a step in a branch": {fn: func(ctx context.Context) error {
			g := durable.NewGroup(ctx)
			g.Go("sleeps", nap)
			g.Go("works", func(ctx context.Context) error {
				return durable.Do(ctx, "work", func(context.Context) error { time.Sleep(time.Hour); return nil })
			})
			return g.Wait()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var p presence
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					defer p.enter()()
					return 0, c.fn(ctx)
				}, c.def...)
				c.o.Workflows = []durable.Definition{wf}
				w.open(t, c.o)
				run, err := wf.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				pass(59 * time.Minute)
				require.EqualValues(t, 1, p.here.Load())
				_, err = run.Wait(w.ctx())
				require.NoError(t, err)
				require.EqualValues(t, 1, p.begun.Load())
			})
		})
	}
}

// What the user's code sees of an unloading is written down in
// docs/waiting.md.
func TestWhatTheCodeOfAnUnloadedRunSees(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var seen []string
		see := func(format string, a ...any) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf(format, a...))
		}
		var held sync.Mutex
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			held.Lock()
			defer held.Unlock()
			defer func() { see("recover: %v", recover()) }()
			defer func() {
				err := durable.Do(ctx, "late", func(context.Context) error { see("body"); return nil })
				see("deferred call: %v", err)
			}()
			go func() {
				<-ctx.Done()
				see("goroutine: %v", context.Cause(ctx))
			}()
			err := durable.Sleep(ctx, time.Hour)
			see("after the wait: %v", err)
			return 0, err
		})
		w.serve(t, wf)
		run, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.ElementsMatch(t, []string{
			"goroutine: " + durable.ErrUnloaded.Error(),
			"deferred call: " + durable.ErrUnloaded.Error(),
			"recover: <nil>",
		}, seen, "nothing behind the wait has run")
		seen = nil
		_, err = run.Wait(w.ctx())
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"after the wait: <nil>", "body", "deferred call: <nil>", "recover: <nil>"}, seen[:4])
	})
}

func TestAnUnloadedRunIsCancelledLikeAnyOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p presence
		undone := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			defer p.enter()()
			if err := durable.Compensate(ctx, "undo", func(context.Context) error { undone++; return nil }); err != nil {
				return 0, err
			}
			return 0, durable.Sleep(ctx, 1000*time.Hour)
		})
		w.serve(t, wf)
		run, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		pass(time.Hour)
		require.Zero(t, p.here.Load())
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
		_, err = run.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.Equal(t, 1, undone)
	})
}

func TestClosingWithUnloadedRunsLeavesThemWaiting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, durable.Sleep(ctx, time.Hour) })
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		for i := range 2000 {
			_, err := wf.Start(w.ctx(), fmt.Sprint("r", i), 0)
			require.NoError(t, err)
		}
		synctest.Wait()
		run, err := wf.Handle(w.ctx(), "r7")
		require.NoError(t, err)
		waited := make(chan error, 1)
		go func() { _, err := run.Wait(w.ctx()); waited <- err }()
		synctest.Wait()
		require.NoError(t, w.eng.Close())
		require.ErrorIs(t, <-waited, durable.ErrClosed)
		require.Equal(t, store.Waiting, w.row("r1999").Status)
		w.boot(t, o)
		pass(time.Hour)
		for i := range 2000 {
			require.Equal(t, store.Completed, w.row(fmt.Sprint("r", i)).Status)
		}
	})
}

func TestAnUnloadedRunOfALostExecutorIsWokenByAnother(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 7, durable.Sleep(ctx, time.Hour) })
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		w.reboot(t, o)
		pass(time.Hour - durable.DefaultLease)
		require.Equal(t, store.Completed, w.row("r").Status, "at its time, and not an hour after the restart")
		require.Equal(t, []string{"workflow_created", "workflow_started", "timer_set sleep", "run_claimed", "timer_fired sleep", "workflow_completed"}, w.story("r"))
	})
}

func TestAnExecutorThatSleptLosesItsUnloadedRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p presence
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			defer p.enter()()
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			_, err := durable.Await[int](ctx, "x")
			return 0, err
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		first := w.disk
		var asleep atomic.Bool
		asleep.Store(true)
		first.tamperCalls(func(call string, forward func() error) error {
			if asleep.Load() && (call == "beat" || call == "load") {
				return errors.New("asleep")
			}
			return forward()
		})
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		pass(30 * time.Minute)
		w.boot(t, o) // another one, which takes it when it is due
		pass(31 * time.Minute)
		require.Equal(t, w.eng.ID(), w.row("r").Owner)
		asleep.Store(false)
		pass(time.Minute)
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", 1))
		w.eventually("r", store.Completed)
		require.EqualValues(t, 0, p.here.Load())
	})
}

func TestARunThatKillsItsProcessBehindAWaitIsQuarantined(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		reached := make(chan struct{}, 10)
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			return durable.Step(ctx, "poison", func(ctx context.Context) (int, error) {
				reached <- struct{}{}
				<-ctx.Done()
				return 0, ctx.Err()
			})
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		for range 6 {
			for range 3 * 60 {
				pass(time.Minute)
				if len(reached) > 0 {
					break
				}
			}
			if len(reached) == 0 {
				break
			}
			<-reached
			w.crash()
			w.expire()
			w.boot(t, o)
		}
		row := w.row("r")
		require.Equal(t, store.Failed, row.Status)
		require.Equal(t, durable.CodeQuarantined, row.Code)
	})
}

func TestAMessageThatIsReadWhileTheRunIsUnloadedIsNotForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p presence
		wf := p.waits()
		w.open(t, durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: 5 * time.Second})
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		other, err := durable.Open(context.Background(), w.data.Handle(), durable.Options{}) // so that there is one reader only
		require.NoError(t, err)
		pass(4 * time.Second)
		read := make(chan struct{})
		w.disk.tamperCalls(func(call string, forward func() error) error {
			err := forward()
			if call == "load" {
				<-read
			}
			return err
		})
		require.NoError(t, other.Signal(context.Background(), "r", "x", "just in time"))
		require.NoError(t, other.Close())
		pass(2 * time.Second)
		here := p.here.Load()
		w.disk.tamperCalls(nil)
		close(read)
		require.Zero(t, here, "the message was being read, and the run was unloaded")
		synctest.Wait()
		require.Equal(t, store.Completed, w.row("r").Status)
	})
}

func TestARunThatFallsAsleepReadsNothingBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, durable.Sleep(ctx, time.Hour) })
		w.serve(t, wf)
		var loads atomic.Int32
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "load" {
				loads.Add(1)
			}
			return forward()
		})
		for i := range 100 {
			_, err := wf.Start(w.ctx(), fmt.Sprint("r", i), 0)
			require.NoError(t, err)
		}
		pass(time.Minute)
		require.Zero(t, loads.Load(), "the store tells of what this engine has written: that is no news")
		pass(time.Hour)
		require.EqualValues(t, 100, loads.Load(), "and one read wakes a run")
	})
}

// Each wait is recorded before the run is unloaded, whichever begins last: one
// that is not would begin anew when the run is next loaded.
func TestNoSleepIsForgottenWhenManyBeginAtOnce(t *testing.T) {
	const n = 8
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		g := durable.NewGroup(ctx)
		for i := range n {
			g.Go("b", func(ctx context.Context) error { return durable.Sleep(ctx, time.Duration(n-i)*time.Hour) })
		}
		return 0, g.Wait()
	})
	for range 100 {
		inWorld(t, func(t *testing.T, w *world) {
			w.boot(t, with(wf))
			start(t, w, wf, "r", 0)
			synctest.Wait()
			set := 0
			for _, e := range w.events("r") {
				require.Less(t, e.Active, time.Second, "event %d", e.Seq)
				if e.Type == store.TimerSet {
					set++
				}
			}
			require.Equal(t, n, set)
		})
	}
}

// Whenever the process dies while several begin to wait, the row does not say that
// all of them do before each of them is on record: nobody would take the run up to
// record the others.
func TestARunKilledWhileManyBeginToWaitAsksAllOfThem(t *testing.T) {
	const n = 6
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		g := durable.NewGroup(ctx)
		for range n {
			g.Go("b", func(ctx context.Context) error {
				_, err := durable.Await[int](ctx, "go", durable.Prompt("Go?"))
				return err
			})
		}
		return 0, g.Wait()
	})
	for range 100 {
		for at := 2; at <= n+2; at++ {
			synctest.Test(t, func(t *testing.T) {
				data := memory.Open()
				defer func() { require.NoError(t, data.Close()) }()
				live := func(m *crashstore.Store, begin bool) {
					eng, err := durable.Open(context.Background(), m, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
					require.NoError(t, err)
					ctx := durable.NewContext(context.Background(), eng)
					_, err = durable.Recover(ctx)
					require.NoError(t, err)
					if begin {
						_, _ = wf.Start(ctx, "r", 0)
					}
					synctest.Wait()
					_ = eng.Close()
				}
				m := crashstore.New(data.Handle())
				m.DieAt(at, true)
				live(m, true)
				time.Sleep(2 * durable.DefaultLease)
				live(crashstore.New(data.Handle()), false)
				h, err := data.Load(context.Background(), "r", store.Cursor{})
				require.NoError(t, err)
				asked := 0
				for e, err := range h.Events {
					require.NoError(t, err)
					if e.Type == store.WaitRequested {
						asked++
					}
				}
				require.Equal(t, n, asked, "killed after write %d", at)
			})
		}
	}
}

// The waits of a woken run do not begin in one moment, and its row says meanwhile what the events say.
func TestACrashWhileAWokenRunBeginsToWaitAgainAsksNobodyAgain(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (bool, error) {
		return durable.Go(ctx, "ask", func(ctx context.Context) (bool, error) {
			return durable.Await[bool](ctx, "approve", durable.Prompt("may I?"), durable.Timeout(48*time.Hour))
		}).Wait(ctx)
	})
	o := durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: time.Minute}
	writes := 0
	for die := 1; die <= writes+1; die++ {
		inWorld(t, func(t *testing.T, w *world) {
			w.open(t, o)
			_, err := wf.Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			pass(time.Hour)
			asked, err := operate.On(w.eng).ApprovalsOf(w.ctx(), "r")
			require.NoError(t, err)
			require.Len(t, asked, 1)
			writes = 0
			w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
				errs := forward()
				if writes++; writes == die {
					w.disk.cut()
				}
				return errs
			})
			w.stranger(t)("r", "another question", "its answer")
			synctest.Wait()
			rep := w.reboot(t, o)
			require.Empty(t, rep.Repaired, "the process died after write %d", die)
			again, err := operate.On(w.eng).ApprovalsOf(w.ctx(), "r")
			require.NoError(t, err)
			require.Equal(t, asked, again, "who was asked has the same question, and as much time as was said")
			require.NoError(t, operate.On(w.eng).Answer(w.ctx(), asked[0], true))
			require.Equal(t, store.Completed, w.eventually("r", store.Completed).Status)
		})
	}
}
