package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// What a write may be answered, besides the truth. An answer that is lost says
// nothing, and neither does a refused connection after it: only a decision of the
// store ends such a write.
var answers = []struct {
	name           string
	happens        bool // the write is carried out, the first time
	refused, tries int  // answers "connection refused" after the first one, and how many
}{
	{"lost after it happened", true, 0, 1},
	{"lost before it happened", false, 0, 1},
	{"lost after it happened, then refused", true, 3, 4},
	{"lost before it happened, then refused", false, 3, 4},
}

// unsure answers one write of the process, the n-th, as answers[how] says.
type unsure struct {
	mu     sync.Mutex
	n, how int
	count  int
	bad    int // answers given
	which  string
}

// nameOf tells a change from others.
func (u *unsure) nameOf(c store.Change) string {
	if len(c.Events) > 0 {
		last := c.Events[len(c.Events)-1]
		return fmt.Sprint(c.RunID, " ", last.Seq, " ", last.Sum)
	}
	if len(c.Send) > 0 {
		return fmt.Sprint("to ", c.Send[0].To, c.Send[0].ID)
	}
	return c.RunID + " row"
}

func (u *unsure) commit(batch []store.Change, forward func() []error) []error {
	u.mu.Lock()
	a := answers[u.how]
	u.count++
	switch {
	case u.count == u.n:
		u.which, u.bad = u.nameOf(batch[0]), 1
		u.mu.Unlock()
		if a.happens {
			forward()
		}
		return all(batch, fmt.Errorf("the reply was lost: %w", store.ErrUnknown))
	case u.bad > 0 && u.bad < a.tries && u.nameOf(batch[0]) == u.which:
		u.bad++
		u.mu.Unlock()
		return all(batch, errors.New("connection refused"))
	}
	u.mu.Unlock()
	return forward()
}

func (u *unsure) writes() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count
}

// everyWrite is a run that writes in every way an execution can.
func everyWrite(j *journal) []durable.Definition {
	kid := durable.Define("kid", func(ctx context.Context, n int) (int, error) {
		return durable.Step(ctx, "work", func(ctx context.Context) (int, error) { j.add(ctx); return n, nil })
	})
	step := func(ctx context.Context, name string) error {
		return durable.Do(ctx, name, func(ctx context.Context) error { j.add(ctx); return nil })
	}
	return []durable.Definition{durable.Define("everything", func(ctx context.Context, n int) (int, error) {
		if n == 1 { // the second generation
			return 42, step(ctx, "last")
		}
		_, err := durable.Retry(ctx, "retry", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(ctx context.Context) (int, error) {
			if j.add(ctx); durable.Attempt(ctx).Number == 1 {
				return 0, errNotYet
			}
			return 1, nil
		})
		if err == nil {
			_, err = kid.Run(ctx, durable.AutoID, 1)
		}
		if err == nil {
			_, err = kid.Run(ctx, "chosen", 2)
		}
		if err == nil {
			err = durable.Sleep(ctx, time.Hour)
		}
		if err == nil {
			_, err = durable.Await[int](ctx, "number", durable.Timeout(time.Hour))
		}
		if err == nil {
			_, err = durable.Map(ctx, "map", []int{1, 2}, durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) { return 0, step(ctx, "item") })
		}
		if err == nil {
			err = durable.Publish(ctx, "value", 1)
		}
		if err == nil {
			err = durable.SetAttributes(ctx, map[string]string{"a": "b"})
		}
		if err != nil {
			return 0, err
		}
		return 0, durable.Continue(ctx, 1)
	}), kid}
}

func TestAWriteWhoseAnswerWasLostIsNotTakenForOneThatDidNotHappen(t *testing.T) {
	life := func(t *testing.T, n, how int) (writes int) {
		inWorld(t, func(t *testing.T, w *world) {
			j := &journal{}
			defs := everyWrite(j)
			wf := defs[0].(*durable.Workflow[int, int])
			w.boot(t, durable.Options{Workflows: defs})
			u := &unsure{n: n, how: how}
			w.disk.tamper(u.commit)
			h, err := wf.Start(w.ctx(), "r", 0, durable.WithSignal("number", 1))
			require.NoError(t, err)
			out, err := h.Wait(w.ctx())
			require.NoError(t, err)
			require.Equal(t, 42, out)
			for body, n := range j.times() {
				require.Equal(t, 1, n, "body %s", body)
			}
			require.Len(t, j.times(), 7)
			pass(time.Minute)
			require.Empty(t, w.log.find("does not execute"))
			require.Empty(t, w.log.find("did not execute"))
			for _, id := range []string{"r", "r/kid", "chosen"} {
				v, err := operate.On(w.eng).Verify(w.ctx(), id)
				require.NoError(t, err)
				require.Empty(t, v.Findings, id)
			}
			writes = u.writes()
		})
		return writes
	}
	n := life(t, 0, 0)
	require.Greater(t, n, 15)
	for at := 1; at <= n; at++ {
		for how, a := range answers {
			t.Run(fmt.Sprintf("write %d %s", at, a.name), func(t *testing.T) { life(t, at, how) })
		}
	}
}

// What people and programs do to a run, and what must be true afterwards.
var acts = map[string]func(ctx context.Context, eng *durable.Engine) error{
	"start": func(ctx context.Context, eng *durable.Engine) error {
		_, err := durable.Ref[int, int]("waiter").Start(ctx, "new", 0)
		return err
	},
	"start of many": func(ctx context.Context, eng *durable.Engine) error {
		b, err := durable.Ref[int, int]("waiter").StartAll(ctx, func(yield func(string, int) bool) { _ = yield("new", 0) && yield("newer", 0) })
		if err == nil && len(b.Refused) > 0 {
			err = b.Refused[0].Err
		}
		return err
	},
	"signal":  func(ctx context.Context, eng *durable.Engine) error { return eng.Signal(ctx, "waiting", "go", 1) },
	"cancel":  func(ctx context.Context, eng *durable.Engine) error { return eng.Cancel(ctx, "waiting", "enough") },
	"pause":   func(ctx context.Context, eng *durable.Engine) error { return eng.Pause(ctx, "waiting", "") },
	"unpause": func(ctx context.Context, eng *durable.Engine) error { return eng.Unpause(ctx, "paused") },
	"resume": func(ctx context.Context, eng *durable.Engine) error {
		_, err := operate.On(eng).Resume(ctx, "failed", operate.ResumeOptions{})
		return err
	},
	"edit": func(ctx context.Context, eng *durable.Engine) error {
		_, err := operate.On(eng).Edit(ctx, "failed", "a", 7, operate.EditOptions{})
		return err
	},
	"jump": func(ctx context.Context, eng *durable.Engine) error {
		_, err := operate.On(eng).Jump(ctx, "failed", 3, operate.JumpOptions{})
		return err
	},
	"fork": func(ctx context.Context, eng *durable.Engine) error {
		_, err := operate.On(eng).Fork(ctx, "failed", operate.ForkOptions{At: 3, ID: "copy"})
		return err
	},
}

func TestAnActWhoseAnswerWasLostIsNotSaidToHaveFailed(t *testing.T) {
	for name, act := range acts {
		for n := 1; n <= 3; n++ {
			for how, a := range answers {
				t.Run(fmt.Sprintf("%s, write %d %s", name, n, a.name), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						waiter := durable.Define("waiter", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "go") })
						failer := durable.Define("failer", func(ctx context.Context, _ int) (int, error) {
							if _, err := durable.Step(ctx, "a", one); err != nil {
								return 0, err
							}
							return durable.Step(ctx, "b", failing)
						})
						w.boot(t, with(waiter, failer))
						start(t, w, waiter, "waiting", 0)
						start(t, w, waiter, "paused", 0)
						_, err := run(t, w, failer, "failed", 0)
						require.Error(t, err)
						synctest.Wait()
						require.NoError(t, w.eng.Pause(w.ctx(), "paused", ""))
						pass(time.Second)
						u := &unsure{n: n, how: how}
						w.disk.tamper(u.commit)
						require.NoError(t, act(w.ctx(), w.eng))
						pass(time.Minute)
						require.Empty(t, w.log.find("did not execute"))
					})
				})
			}
		}
	}
}

// A start of which nobody knows whether it happened is not said to have failed: a
// second one would wait for a run that nobody executes.
func TestAStartThatHappenedIsNotSaidToHaveFailed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "s", one) })
		w.boot(t, with(wf))
		u := &unsure{n: 1, how: 2}
		w.disk.tamper(u.commit)
		out, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}

// Close while nobody knows: the caller hears that it is not known.
func TestAStartWhoseAnswerNeverComesIsUnknownAfterClose(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "s", one) })
		w.boot(t, with(wf))
		lost := false
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if !lost {
				lost = true
				forward()
				return all(batch, store.ErrUnknown)
			}
			return all(batch, errDisk)
		})
		eng, told := w.eng, make(chan error)
		ctx := w.ctx()
		go func() {
			_, err := wf.Start(ctx, "r", 0)
			told <- err
		}()
		pass(time.Minute)
		go func() { _ = eng.Close() }()
		err := <-told
		require.ErrorIs(t, err, store.ErrUnknown)
		require.ErrorContains(t, err, "is not known")
		w.boot(t, with(wf))
		w.eventually("r", store.Completed)
	})
}

// The ways in which a run can be owned by a live engine that does not execute it.
func TestWhatALiveEngineOwnsItExecutes(t *testing.T) {
	child := durable.Define("child", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "s", one) })
	for name, f := range map[string]func(t *testing.T, w *world){
		"a child whose row could not be read after its start": func(t *testing.T, w *world) {
			parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) { return child.Run(ctx, "chosen", 0) })
			w.boot(t, with(parent, child))
			failed := false
			w.disk.tamperCalls(func(call string, forward func() error) error {
				if call == "load" && !failed {
					failed = true
					return errDisk
				}
				return forward()
			})
			out, err := run(t, w, parent, "r", 0)
			require.NoError(t, err)
			require.Equal(t, 1, out)
			require.True(t, failed)
			require.Empty(t, w.log.find("did not execute"), "it was not found only when the engine looked for what it owns")
		},
		"a claim that happened and was answered with an error": func(t *testing.T, w *world) {
			w.boot(t, with()) // has not the code
			_, err := durable.Ref[int, int]("child").Start(w.ctx(), "r", 0)
			require.NoError(t, err)
			d := &doctored{Store: w.data.Handle(), forget: true}
			eng := openOn(t, w, d, child)
			_, err = eng.Recover(context.Background())
			require.NoError(t, err)
			w.eventually("r", store.Completed)
			require.False(t, d.forget)
			require.Len(t, w.log.find("did not execute"), 1, w.log.String())
		},
		"a compensation that ends its goroutine": func(t *testing.T, w *world) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				undo := func(name string, f func(context.Context) error) {
					require.NoError(t, durable.Compensate(ctx, name, f))
				}
				undo("one", func(context.Context) error { return nil })
				undo("two", func(context.Context) error { runtime.Goexit(); return nil })
				return 0, errNotYet
			})
			w.boot(t, with(wf))
			start(t, w, wf, "r", 0)
			w.eventually("r", store.Failed)
			require.Contains(t, w.story("r"), "step_completed ~undo/one")
			require.Empty(t, w.log.find("did not execute"), w.log.String())
		},
		"an end that the store refuses for good": func(t *testing.T, w *world) {
			w.boot(t, with(child))
			w.disk.tamper(refusing(store.WorkflowCompleted))
			_, err := run(t, w, child, "r", 0)
			require.ErrorIs(t, err, store.ErrTooLarge)
			require.Equal(t, store.Failed, w.row("r").Status)
		},
		"two ends that the store refuses for good": func(t *testing.T, w *world) {
			w.boot(t, with(child))
			w.disk.tamper(refusing(store.WorkflowCompleted, store.WorkflowFailed))
			_, err := run(t, w, child, "r", 0)
			require.ErrorIs(t, err, durable.ErrInterrupted)
			require.Equal(t, durable.CodeUnrecorded, w.row("r").Code)
			w.disk.tamper(nil)
			_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
			require.NoError(t, err)
			w.eventually("r", store.Completed)
		},
		"every end is refused, until the store is mended": func(t *testing.T, w *world) {
			w.boot(t, with(child))
			w.disk.tamper(refusing(store.WorkflowCompleted, store.WorkflowFailed, store.WorkflowInterrupted))
			start(t, w, child, "r", 0)
			pass(10 * time.Minute)
			warned := len(w.log.find("did not execute"))
			require.Greater(t, warned, 2)
			require.Less(t, warned, 12, "it is tried less and less often")
			w.disk.tamper(nil)
			pass(10 * time.Minute)
			w.eventually("r", store.Completed)
		},
	} {
		t.Run(name, func(t *testing.T) { inWorld(t, f) })
	}
}

// doctored is a store whose first claim that takes something is answered with an
// error, and that counts how often it is asked what an executor owns.
type doctored struct {
	store.Store
	forget bool
	looks  int
}

func (d *doctored) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	rows, err := d.Store.Claim(ctx, c)
	if d.forget && len(rows) > 0 {
		d.forget = false
		return nil, errDisk
	}
	return rows, err
}

func (d *doctored) List(ctx context.Context, f store.Filter) (store.Page, error) {
	if len(f.Owners) > 0 && !f.Mail && !f.Orphaned {
		d.looks++
	}
	return d.Store.List(ctx, f)
}

// openOn is w.open on another store.
func openOn(t *testing.T, w *world, st store.Store, defs ...durable.Definition) *durable.Engine {
	eng, err := durable.Open(context.Background(), st, durable.Options{Workflows: defs, Grace: -1, Logger: slog.New(w.log), UnloadAfter: time.Nanosecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	return eng
}

// refusing refuses events of these types for good.
func refusing(types ...store.Type) func(batch []store.Change, forward func() []error) []error {
	return func(batch []store.Change, forward func() []error) []error {
		for _, c := range batch {
			for _, e := range c.Events {
				for _, typ := range types {
					if e.Type == typ {
						return all(batch, &store.TooLargeError{RunID: c.RunID, Size: 2, Limit: 1})
					}
				}
			}
		}
		return forward()
	}
}

// What a step returns and the store refuses is how the step ends, live as on
// replay.
func TestAResultThatTheStoreRefusesIsTheFailureOfItsStep(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
		return 0, nil
	})
	require.Equal(t, live, replay)
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			_, err := durable.Step(ctx, "s", one)
			return fmt.Sprint(errors.Is(err, store.ErrTooLarge)), durable.Do(ctx, "go on", func(context.Context) error { return nil })
		})
		w.boot(t, with(wf))
		refused := false
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if batch[0].Create == nil && !refused {
				refused = true
				return all(batch, &store.TooLargeError{RunID: "r", Size: 2, Limit: 1})
			}
			return forward()
		})
		out, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, "true", out)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_failed s 1", "step_completed go on", "workflow_completed"}, w.story("r"))
	})
}

// The look at what is owned costs one listing at a beat and takes nothing up that
// waits, is loaded, begins or ends.
func TestTheLookAtWhatIsOwnedLeavesAloneWhatIsExecuted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			for range 3 {
				if err := durable.Sleep(ctx, time.Duration(1+n%17)*7*time.Second); err != nil {
					return 0, err
				}
			}
			return durable.Step(ctx, "s", one)
		})
		d := &doctored{Store: w.data.Handle()}
		w.eng = openOn(t, w, d, wf)
		const n = 1500
		for i := range n {
			start(t, w, wf, fmt.Sprint("r", i), i)
		}
		began := time.Now()
		pass(10 * time.Minute)
		require.LessOrEqual(t, d.looks, 1+int(time.Since(began)/(durable.DefaultLease/3)))
		require.Greater(t, d.looks, 25, "the beats between are for the look at what nobody serves")
		count, err := w.data.Count(t.Context(), store.Filter{Statuses: []store.Status{store.Completed}}, "")
		require.NoError(t, err)
		require.EqualValues(t, n, count[""])
		require.Empty(t, w.log.find("did not execute"))
	})
}

// An engine in which nothing happens beats, and hardly asks for anything else.
func TestAnEngineThatOwnsNothingHardlyAsksTheStore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("order", func(context.Context, int) (int, error) { return 0, nil })
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Completed)
		pass(4 * w.lease)
		var mu sync.Mutex
		asked := map[string]int{}
		w.disk.tamperCalls(func(call string, forward func() error) error {
			mu.Lock()
			asked[call]++
			mu.Unlock()
			return forward()
		})
		pass(40 * w.lease)
		w.disk.tamperCalls(nil)
		beats := asked["beat"]
		delete(asked, "beat")
		others := 0
		for _, n := range asked {
			others += n
		}
		require.GreaterOrEqual(t, beats, 120)
		require.LessOrEqual(t, others, beats/3, "%v", asked)
	})
}

// A batch that the store does not answer holds up nothing but the runs in it.
func TestABatchWithoutAnAnswerHoldsUpNoOtherRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) { return durable.Step(ctx, "s", one) })
		w.boot(t, with(wf))
		release := make(chan struct{})
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if batch[0].RunID == "bad" && batch[0].Create == nil {
				<-release
			}
			return forward()
		})
		bad := start(t, w, wf, "bad", 0)
		synctest.Wait()
		began := time.Now()
		for i := range 20 {
			_, err := run(t, w, wf, fmt.Sprint("good-", i), 0)
			require.NoError(t, err)
		}
		require.Less(t, time.Since(began), 3*time.Second)
		close(release)
		_, err := bad.Wait(w.ctx())
		require.NoError(t, err)
		require.Len(t, w.log.find("does not answer a commit"), 1)
	})
}

// branching has several writes at once of one run: one under way and others
// behind it.
func manyBranches(go_ <-chan struct{}) *durable.Workflow[int, int] {
	return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		g := durable.NewGroup(ctx)
		for i := range 5 {
			g.Go(fmt.Sprint("b", i), func(ctx context.Context) error {
				return durable.Do(ctx, "s", func(context.Context) error {
					<-go_
					time.Sleep(time.Duration(i) * time.Millisecond)
					return nil
				})
			})
		}
		return 0, g.Wait()
	})
}

func TestCloseWithAStoreThatIsDownLeavesNobodyWaiting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		gate := make(chan struct{})
		wf := manyBranches(gate)
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.disk.tamper(func(batch []store.Change, _ func() []error) []error { return all(batch, errDisk) })
		close(gate)
		pass(time.Minute)
		began := time.Now()
		require.NoError(t, w.eng.Close())
		require.Less(t, time.Since(began), time.Minute)
	})
}

// A write that was not sent yet, behind one that the store does not answer, is given up, and
// what waits for it ends with the engine.
func TestCloseBlamesAStoreThatIsSilentAndLetsGoOfWhatStandsBehindIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ended atomic.Int32
		gate, release := make(chan struct{}), make(chan struct{})
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			defer ended.Add(1)
			return durable.Step(ctx, "s", func(context.Context) (int, error) { <-gate; return 1, nil })
		})
		w.boot(t, with(wf))
		for i := range 5 {
			start(t, w, wf, fmt.Sprint("r", i), 0)
		}
		synctest.Wait()
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			<-release
			return forward()
		})
		close(gate)
		pass(time.Minute)
		require.ErrorContains(t, w.eng.Close(), "the store has not answered")
		require.NotZero(t, ended.Load())
		close(release)
		pass(time.Minute)
	})
}

func TestCloseBlamesAStoreThatDoesNotAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		gate, release := make(chan struct{}), make(chan struct{})
		wf := manyBranches(gate)
		eng, err := durable.Open(context.Background(), func() store.Store {
			w.disk = &disk{Store: w.data.Handle()}
			return w.disk
		}(), durable.Options{Workflows: []durable.Definition{wf}, Grace: -1})
		require.NoError(t, err)
		w.eng = eng
		start(t, w, wf, "r", 0)
		start(t, w, wf, "r2", 0)
		synctest.Wait()
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			<-release
			return forward()
		})
		close(gate)
		pass(time.Minute)
		err = eng.Close()
		require.ErrorContains(t, err, "the store has not answered")
		require.NotContains(t, err.Error(), "whose code ignores its context")
		close(release)
		pass(time.Minute)
	})
}
