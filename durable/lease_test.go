package durable_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// beats keeps when beats were begun.
type beats struct {
	mu sync.Mutex
	at []time.Time
}

func (b *beats) watch(call string, forward func() error) error {
	if call == "beat" {
		b.mu.Lock()
		b.at = append(b.at, time.Now())
		b.mu.Unlock()
	}
	return forward()
}

// longest returns the longest time between two of them, the last one and now.
func (b *beats) longest() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	longest := time.Duration(0)
	for i, at := range append(b.at[1:len(b.at):len(b.at)], time.Now()) {
		longest = max(longest, at.Sub(b.at[i]))
	}
	return longest
}

// A take-over of many runs from a slow store lasts longer than the lease of
// whoever takes over.
func TestATakeOverOfManyRunsDelaysNoBeat(t *testing.T) {
	for _, policy := range []durable.BootPolicy{durable.FailOnBoot, durable.ResumeOnBoot} {
		t.Run(fmt.Sprint("policy ", policy), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				const orphans = 4000
				var h hold
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, durable.Do(ctx, "s", h.body) }, durable.OnBoot(policy))
				w.serve(t, wf)
				for i := range orphans {
					start(t, w, wf, fmt.Sprint("r", i), 0)
				}
				w.crash()
				w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, MaxRuns: 10 * orphans})
				var b beats
				w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
					time.Sleep(15 * time.Millisecond)
					return forward()
				})
				w.disk.tamperCalls(func(call string, forward func() error) error {
					switch call {
					case "list", "load":
						time.Sleep(15 * time.Millisecond)
					case "claim":
						time.Sleep(64 * 15 * time.Millisecond)
					}
					return b.watch(call, forward)
				})
				pass(w.lease)
				for range 45 {
					pass(10 * time.Second)
				}
				require.Empty(t, w.log.find("the lease had run out"))
				require.LessOrEqual(t, b.longest(), durable.DefaultLease/3+time.Second)
				n, err := w.data.Count(context.Background(), store.Filter{Orphaned: true}, "")
				require.NoError(t, err)
				require.Zero(t, n[""], "all were taken over")
			})
		})
	}
}

// span is one body: when it began and ended, and in which process.
type span struct {
	process    int
	key        string
	began, end time.Time
	cause      error
}

// spans are the bodies of all processes.
type spans struct {
	mu  sync.Mutex
	all []span
}

// body runs for d, or as long as its context lives.
func (s *spans) body(process int, d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		one := span{process: process, key: durable.Attempt(ctx).Key, began: time.Now()}
		select {
		case <-time.After(d):
		case <-ctx.Done():
			time.Sleep(time.Millisecond) // if it were begun again and again, no virtual time would pass
			one.cause = context.Cause(ctx)
		}
		one.end = time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, one)
		return one.cause
	}
}

func (s *spans) of(process int) []span {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some []span
	for _, one := range s.all {
		if one.process == process {
			some = append(some, one)
		}
	}
	return some
}

// Its store is out of reach, so nothing tells it that another executor has taken
// its run: it stops by itself, before that one can begin.
func TestAnExecutorThatIsCutOffBeginsNoBodyThatAnotherMayBegin(t *testing.T) {
	for _, relaxed := range []bool{true, false} {
		t.Run(fmt.Sprintf("relaxed %v", relaxed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var bodies spans
				chain := func(process int) *durable.Workflow[int, int] {
					var o []durable.StepOption
					if relaxed {
						o = append(o, durable.Relaxed())
					}
					return durable.Define("w", func(ctx context.Context, n int) (int, error) {
						for range n {
							if err := durable.Do(ctx, "s", bodies.body(process, 100*time.Millisecond), o...); err != nil {
								return 0, err
							}
						}
						return n, nil
					})
				}
				w.boot(t, with(chain(1)))
				h := start(t, w, chain(1), "r", 900)
				frozen := w.disk
				pass(15 * time.Second)
				frozen.tamper(func(batch []store.Change, _ func() []error) []error { return all(batch, errDisk) })
				frozen.tamperCalls(func(string, func() error) error { return errDisk })
				w.boot(t, with(chain(2)))
				pass(2 * w.lease)
				theirs := bodies.of(2)
				require.NotEmpty(t, theirs, "it was taken over")
				for _, one := range bodies.of(1) {
					require.Less(t, one.end, theirs[0].began, "no overlap: %s", one.key)
				}
				before := len(bodies.of(1))
				frozen.tamper(nil)
				frozen.tamperCalls(nil)
				out, err := h.Wait(w.ctx())
				require.NoError(t, err)
				require.Equal(t, 900, out)
				require.Len(t, bodies.of(1), before, "it finds that the run is lost before it begins a body")
				if relaxed {
					require.Len(t, w.log.find("the lease could not be renewed"), 1, "said once")
				}
			})
		})
	}
}

// Nobody has taken the run: it goes on, with the attempt that was told to stop.
func TestABodyIsToldToStopBeforeItsLeaseEndsAndGoesOnWhenItIsRenewed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var bodies spans
		var numbers []int
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "s", durable.Policy{MaxAttempts: 2}, func(ctx context.Context) (int, error) {
				numbers = append(numbers, durable.Attempt(ctx).Number)
				return len(numbers), bodies.body(1, time.Minute)(ctx)
			})
		})
		w.boot(t, with(wf))
		h := start(t, w, wf, "r", 0)
		pass(5 * time.Second)
		began := time.Now()
		w.disk.tamperCalls(func(string, func() error) error { return errDisk })
		pass(w.lease)
		require.Len(t, bodies.of(1), 1)
		told := bodies.of(1)[0]
		require.ErrorIs(t, told.cause, durable.ErrLeaseExpired)
		require.Less(t, told.end.Sub(began), w.lease)
		pass(time.Minute)
		require.Len(t, numbers, 1, "none begins until the store takes a beat")
		w.disk.tamperCalls(nil)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 2, out)
		require.Equal(t, []int{1, 1}, numbers)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed s", "workflow_completed"}, w.story("r"))
	})
}

// What a body returned although it was told to stop is an outcome.
func TestAResultThatABodyReturnsAfterItsLeaseHasEndedIsRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "s", func(ctx context.Context) (int, error) {
				bodies++
				<-ctx.Done()
				return 7, nil
			})
		})
		w.boot(t, with(wf))
		h := start(t, w, wf, "r", 0)
		w.disk.tamperCalls(func(string, func() error) error { return errDisk })
		pass(w.lease)
		w.disk.tamperCalls(nil)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 7, out)
		require.Equal(t, 1, bodies)
	})
}

// The body of Once that was told to stop may have had its effect.
func TestOnceDoesNotRunAgainAfterItsLeaseHasEnded(t *testing.T) {
	for _, happened := range []bool{false, true} {
		t.Run(fmt.Sprintf("reconciled %v", happened), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				var o []durable.OnceOption[int]
				if happened {
					o = append(o, durable.Reconcile(func(context.Context) (int, bool, error) { return 5, true, nil }))
				}
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					return durable.Once(ctx, "s", func(ctx context.Context) (int, error) {
						bodies++
						<-ctx.Done()
						return 0, context.Cause(ctx)
					}, o...)
				})
				w.boot(t, with(wf))
				h := start(t, w, wf, "r", 0)
				w.disk.tamperCalls(func(string, func() error) error { return errDisk })
				pass(w.lease)
				w.disk.tamperCalls(nil)
				out, err := h.Wait(w.ctx())
				require.Equal(t, 1, bodies)
				if happened {
					require.NoError(t, err)
					require.Equal(t, 5, out)
				} else {
					require.ErrorContains(t, err, "outcome is unknown")
				}
			})
		})
	}
}

// Compensations undo in order. One that begins although another executor has
// done the later ones would undo what those have left.
func TestNoCompensationBeginsAfterTheLeaseHasEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var bodies spans
		saga := func(process int) *durable.Workflow[int, int] {
			return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				for i := range 8 {
					if err := durable.Compensate(ctx, fmt.Sprint("undo ", i), bodies.body(process, 5*time.Second)); err != nil {
						return 0, err
					}
				}
				return 0, durable.Do(ctx, "s", func(context.Context) error { return durable.Permanent(errDisk) })
			})
		}
		w.boot(t, with(saga(1)))
		h := start(t, w, saga(1), "r", 0)
		frozen := w.disk
		pass(7 * time.Second) // in the second one
		frozen.tamper(func(batch []store.Change, _ func() []error) []error { return all(batch, errDisk) })
		frozen.tamperCalls(func(string, func() error) error { return errDisk })
		w.boot(t, with(saga(2)))
		pass(3 * w.lease)
		frozen.tamper(nil)
		frozen.tamperCalls(nil)
		_, err := h.Wait(w.ctx())
		require.Error(t, err)
		pass(w.lease)
		require.Equal(t, store.Failed, w.row("r").Status)
		theirs := bodies.of(2)
		require.NotEmpty(t, theirs)
		for _, one := range bodies.of(1) {
			require.Less(t, one.end, theirs[0].began)
		}
	})
}

// An executor that the store takes for gone beats before it claims, and says
// nothing of it: each of many runs that end asks for more.
func TestAnExecutorThatMustBeatBeforeItClaimsDoesSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) { return durable.Step(ctx, "s", one) })
		w.boot(t, with(wf))
		gone := true
		var mu sync.Mutex
		claims := 0
		w.disk.tamperCalls(func(call string, forward func() error) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case call == "beat" && claims > 0:
				gone = false
			case call == "claim" && gone:
				claims++
				return fmt.Errorf("executor must beat before it claims: %w", store.ErrNotFound)
			}
			return forward()
		})
		for i := range 100 {
			start(t, w, wf, fmt.Sprint("r", i), 0)
		}
		_, err := wf.StartAll(w.ctx(), func(yield func(string, int) bool) {
			for i := range 100 {
				if !yield(fmt.Sprint("a", i), 0) {
					return
				}
			}
		})
		require.NoError(t, err)
		pass(time.Second)
		w.eventually("a99", store.Completed)
		require.Equal(t, 1, claims)
		require.Empty(t, w.log.find("must beat before"))
	})
}

// After a gap between two beats an engine asks the store which of its runs others have taken. A run
// that comes into the store after it has answered is not one that was deleted.
func TestARunThatBeginsWhileAnEngineLooksAtWhatItHasLostGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		child  bool
		unload time.Duration
	}{
		"a run":                        {},
		"a child":                      {child: true},
		"a run that is unloaded again": {unload: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "go") })
				parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) { return wf.Run(ctx, "r", 0) })
				w.boot(t, durable.Options{Workflows: []durable.Definition{wf, parent}, UnloadAfter: c.unload})
				var cut atomic.Bool
				answered := make(chan struct{})
				w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
					if slices.ContainsFunc(batch, func(ch store.Change) bool { return ch.RunID == "r" || len(ch.Start) > 0 }) {
						<-answered
					}
					return forward()
				})
				w.disk.tamperCalls(func(call string, forward func() error) error {
					switch {
					case call == "beat" && cut.Load():
						return errDisk
					case call == "list" && !cut.Load():
						err := forward()
						select {
						case <-answered:
						default:
							close(answered)
							time.Sleep(time.Second) // the answer is on its way
						}
						return err
					}
					return forward()
				})
				cut.Store(true)
				pass(w.lease)
				go func() {
					if c.child {
						_, _ = parent.Start(w.ctx(), "p", 0)
						return
					}
					_, _ = wf.Start(w.ctx(), "r", 0)
				}()
				pass(time.Second)
				cut.Store(false)
				pass(5 * time.Second)
				require.NoError(t, durable.Signal(w.ctx(), "r", "go", 1))
				pass(time.Second)
				require.Equal(t, store.Completed, w.row("r").Status, w.log)
				pass(w.lease)
				require.Empty(t, w.log.find("did not execute"))
			})
		})
	}
}
