package durable_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// chain is a workflow of n steps that counts its bodies.
func chain(bodies map[string]int) *durable.Workflow[int, int] {
	return durable.Define("chain", func(ctx context.Context, n int) (int, error) {
		sum := 0
		for i := range n {
			v, err := durable.Step(ctx, fmt.Sprint("s", i), func(context.Context) (int, error) { bodies[fmt.Sprint("s", i)]++; return i, nil })
			if err != nil {
				return 0, err
			}
			sum += v
		}
		return sum, nil
	})
}

func TestAStoreThatFailsForAWhileCostsTimeAndNothingElse(t *testing.T) {
	// Call 1 is the start, which answers its caller with the failure.
	for at := 2; at <= 5; at++ {
		for _, times := range []int{1, 7} {
			t.Run(fmt.Sprintf("write %d fails %d times", at, times), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					bodies := map[string]int{}
					wf := chain(bodies)
					w.serve(t, wf)
					calls, failed := 0, 0
					w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
						calls++
						if calls >= at && failed < times {
							failed++
							return all(batch, errDisk)
						}
						return forward()
					})
					out, err := run(t, w, wf, "r", 3)
					require.NoError(t, err)
					require.Equal(t, 3, out)
					require.Equal(t, times, failed)
					require.Equal(t, map[string]int{"s0": 1, "s1": 1, "s2": 1}, bodies)
					require.Len(t, w.story("r"), 6)
					synctest.Wait() // the result is out a moment before the log has its line
					require.Len(t, w.log.find("the store does not take a commit"), 1, "said once")
					require.Len(t, w.log.find("the store is available again"), 1)
				})
			})
		}
	}
}

// The commit happened and its reply was lost: the very same bytes are sent
// again until the answer is another one, and nothing is doubled.
func TestAnUnknownOutcomeIsResolvedBySendingTheSameAgain(t *testing.T) {
	for at := 1; at <= 5; at++ {
		for _, happened := range []bool{true, false} {
			t.Run(fmt.Sprintf("write %d, happened: %v", at, happened), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					bodies := map[string]int{}
					wf := chain(bodies)
					w.serve(t, wf)
					calls := 0
					var sent [][]store.Change
					w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
						calls++
						if calls < at || calls > at+3 {
							return forward()
						}
						sent = append(sent, copyOf(batch))
						switch {
						case calls == at+3:
							return forward()
						case happened && calls == at:
							for _, err := range forward() {
								require.NoError(t, err)
							}
						}
						return all(batch, fmt.Errorf("reply lost: %w", store.ErrUnknown))
					})
					out, err := run(t, w, wf, "r", 3)
					require.NoError(t, err)
					require.Equal(t, 3, out)
					require.Len(t, sent, 4)
					for _, s := range sent[1:] {
						require.True(t, reflect.DeepEqual(sent[0], s), "first %+v\nthen %+v", sent[0], s)
					}
					require.Equal(t, map[string]int{"s0": 1, "s1": 1, "s2": 1}, bodies)
					require.Equal(t, []string{
						"workflow_created", "workflow_started", "step_completed s0", "step_completed s1", "step_completed s2", "workflow_completed",
					}, w.story("r"))
				})
			})
		}
	}
}

func copyOf(batch []store.Change) []store.Change {
	c := append([]store.Change(nil), batch...)
	for i := range c {
		c[i].Events = append([]store.Event(nil), c[i].Events...)
		for j := range c[i].Events {
			e := &c[i].Events[j]
			e.Data, e.Payload = append([]byte(nil), e.Data...), append([]byte(nil), e.Payload...)
		}
		if c[i].Row != nil {
			row := *c[i].Row
			c[i].Row = &row
		}
		if c[i].Create != nil {
			row := *c[i].Create
			c[i].Create = &row
		}
	}
	return c
}

// One run whose outcome is unknown must not hold up the others.
func TestOneStuckRunDoesNotHoldUpTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) { return durable.Step(ctx, "s", one) })
		w.serve(t, wf)
		stuck := true
		var mu sync.Mutex
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			mu.Lock()
			defer mu.Unlock()
			if len(batch) == 1 && batch[0].RunID == "bad" && batch[0].Create == nil && stuck {
				return all(batch, errDisk)
			}
			errs := forward()
			for i := range batch {
				if batch[i].RunID == "bad" && batch[i].Create == nil && stuck {
					errs[i] = fmt.Errorf("%w", store.ErrUnknown) // it happened, though
				}
			}
			return errs
		})
		bad := start(t, w, wf, "bad", 0)
		began := time.Now()
		for i := range 20 {
			_, err := run(t, w, wf, fmt.Sprint("good-", i), 0)
			require.NoError(t, err)
		}
		require.Less(t, time.Since(began), time.Second)
		mu.Lock()
		stuck = false
		mu.Unlock()
		_, err := bad.Wait(w.ctx())
		require.NoError(t, err)
	})
}

// A resumed run whose history cannot be read at first is read later; it is
// ours, and nobody else would take it.
func TestAHistoryThatCannotBeReadAtFirstIsReadLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf, _ := holding("w")
		w.serve(t, wf)
		start(t, w, wf, "r", 1)
		synctest.Wait()
		w.crash()
		w.expire()
		w.serve(t, wf)
		loads := 0
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "load" {
				if loads++; loads <= 5 {
					return errDisk
				}
			}
			return forward()
		})
		_, err := w.eng.Recover(w.ctx())
		require.NoError(t, err)
		w.eventually("r", store.Completed)
		require.Greater(t, loads, 5)
	})
}

// The lease ran out while the store did not answer; another process took the
// run. The first one's late write is refused and its body's result not kept.
func TestAnOwnerThatWasReplacedWritesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release := make(chan struct{})
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			v, err := durable.Step(ctx, "s", func(context.Context) (int, error) {
				bodies++
				mine := bodies
				if mine == 1 {
					<-release // it is frozen: it does not even see its context end
				}
				return mine, nil
			})
			if err != nil {
				return 0, err
			}
			return v, durable.Do(ctx, "after", func(context.Context) error { return nil })
		})
		w.serve(t, wf)
		h := start(t, w, wf, "r", 0)
		synctest.Wait()
		frozen := w.disk
		frozen.tamperCalls(func(string, func() error) error { return errDisk })
		w.expire()
		w.boot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 2, out)
		before := w.events("r")
		frozen.tamperCalls(nil)
		close(release)
		late, err := h.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, 2, late, "it reports what counts")
		pass(time.Minute)
		require.Equal(t, before, w.events("r"))
		require.Equal(t, 2, bodies)
	})
}

// An executor that was cut off for longer than its lease and whose runs nobody
// took simply goes on.
func TestALateBeatOfASoleExecutorChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "s", func(ctx context.Context) (int, error) {
				select {
				case <-ctx.Done():
					return 0, ctx.Err()
				case <-time.After(10 * time.Minute):
					return 1, nil
				}
			})
		})
		w.boot(t, with(wf))
		h := start(t, w, wf, "r", 0)
		w.disk.tamperCalls(func(string, func() error) error { return errDisk })
		pass(5 * time.Minute)
		w.disk.tamperCalls(nil)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 1, out)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed s", "workflow_completed"}, w.story("r"))
	})
}

// A cancel that arrives before the end wins over completion.
func TestACancelThatNobodyReadWinsOverCompletion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, _ = durable.Step(ctx, "relaxed", one, durable.Relaxed())
			return durable.Step(ctx, "s", func(context.Context) (int, error) { time.Sleep(time.Minute); return 1, nil }, durable.Relaxed())
		})
		w.serve(t, wf)
		h := start(t, w, wf, "r", 0)
		synctest.Wait()
		errs := w.data.Commit(t.Context(), []store.Change{{Send: []store.Message{{To: "r", Kind: store.KindCancel, ID: "c1"}}}})
		require.NoError(t, errs[0])
		_, err := h.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.NotErrorIs(t, err, durable.ErrRunFailed)
		require.Equal(t, store.Cancelled, w.row("r").Status)
		require.Equal(t, []string{
			"workflow_created", "workflow_started", "step_completed relaxed", "step_completed s", "workflow_cancelled",
		}, w.story("r"), "what was done is recorded all the same")
	})
}

// A run that comes back to the executor that had lost it begins anew only when
// the old execution has ended; and when the engine closes before that, the run is
// given back.
func TestARunThatComesBackWaitsForItsOldExecution(t *testing.T) {
	for _, closes := range []bool{false, true} {
		t.Run(fmt.Sprintf("the engine closes meanwhile: %v", closes), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				release := make(chan struct{})
				var mu sync.Mutex
				bodies := 0
				count := func() int {
					mu.Lock()
					defer mu.Unlock()
					return bodies
				}
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					return durable.Step(ctx, "s", func(ctx context.Context) (int, error) {
						mu.Lock()
						bodies++
						mine := bodies
						mu.Unlock()
						switch mine {
						case 1:
							<-release // deaf
						case 2:
							<-ctx.Done()
						}
						return mine, ctx.Err()
					})
				})
				w.boot(t, with(wf))
				first, frozen := w.eng, w.disk
				start(t, w, wf, "r", 0)
				synctest.Wait()
				frozen.tamperCalls(func(string, func() error) error { return errDisk })
				w.expire()
				w.boot(t, with(wf))
				synctest.Wait()
				require.Equal(t, 2, count())
				require.NoError(t, w.eng.Close())
				frozen.tamperCalls(nil)
				pass(time.Minute) // the first beats again and claims it
				require.Equal(t, first.ID(), w.row("r").Owner)
				require.Equal(t, 2, count(), "the old body still runs")
				if closes {
					closed := make(chan error)
					go func() { closed <- first.Close() }()
					pass(500 * time.Millisecond)
					require.Equal(t, store.Interrupted, w.row("r").Status)
					close(release)
					require.NoError(t, <-closed)
					w.boot(t, with(wf))
				} else {
					close(release)
					w.eng = first
				}
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 3, out)
			})
		})
	}
}
