package durable_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// stepping is a workflow of two steps; the body of the first takes this long
// and heeds its context or not.
type stepping struct {
	*durable.Workflow[int, int]
	mu     sync.Mutex
	bodies []string
	cause  error
}

func (s *stepping) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, name)
}

// ran returns the bodies that have begun.
func (s *stepping) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

func steps(took time.Duration, heeds bool, fails error) *stepping {
	s := &stepping{}
	s.Workflow = durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		_, err := durable.Step(ctx, "first", func(ctx context.Context) (int, error) {
			s.begin("first")
			if !heeds {
				time.Sleep(took)
				return 1, fails
			}
			select {
			case <-time.After(took):
				return 1, fails
			case <-ctx.Done():
				s.cause = context.Cause(ctx)
				return 0, ctx.Err()
			}
		})
		if err != nil {
			return 0, err
		}
		return durable.Step(ctx, "second", func(context.Context) (int, error) {
			s.begin("second")
			return 2, nil
		})
	})
	return s
}

func TestABodyThatFinishesWithinTheGraceIsRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := steps(8*time.Second, true, nil)
		o := with(s)
		o.Grace = 10 * time.Second
		w.open(t, o)
		start(t, w, s.Workflow, "r", 0)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, w.eng.Close())
		require.Equal(t, 8*time.Second, time.Since(began))
		require.NoError(t, s.cause)
		require.Equal(t, []string{"first"}, s.ran(), "no further step begins")
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed first", "workflow_interrupted"}, w.story("r"))
		row := w.row("r")
		require.Equal(t, store.Interrupted, row.Status)
		require.Empty(t, row.Code)
		require.Empty(t, row.Owner)
		rep := w.boot(t, o) // claimable at once: no lease to wait for
		require.Equal(t, []string{"r"}, rep.Resumed)
		out, err := wait(t, w, s.Workflow, "r")
		require.NoError(t, err)
		require.Equal(t, 2, out)
		require.Equal(t, []string{"first", "second"}, s.ran())
	})
}

func TestAfterTheGraceContextsEndAndErrorsAreNotRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := steps(time.Hour, true, nil)
		o := with(s)
		o.Grace = 10 * time.Second
		w.open(t, o)
		start(t, w, s.Workflow, "r", 0)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, w.eng.Close())
		require.Equal(t, 10*time.Second, time.Since(began))
		require.ErrorIs(t, s.cause, durable.ErrShutdown)
		require.Equal(t, []string{"workflow_created", "workflow_started", "workflow_interrupted"}, w.story("r"))
	})
}

func TestAnErrorWithinTheGraceIsNoFailureEither(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := steps(2*time.Second, true, errStock)
		o := with(s)
		o.Grace = 10 * time.Second
		w.open(t, o)
		start(t, w, s.Workflow, "r", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Close())
		require.Equal(t, []string{"workflow_created", "workflow_started", "workflow_interrupted"}, w.story("r"))
	})
}

func TestCloseNamesTheBodyThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := steps(time.Minute, false, nil)
		eng, err := durable.Open(t.Context(), w.data.Handle(), durable.Options{Workflows: []durable.Definition{s}, Grace: time.Second})
		require.NoError(t, err)
		w.eng = eng
		start(t, w, s.Workflow, "order-1", 0)
		synctest.Wait()
		err = eng.Close()
		require.ErrorContains(t, err, "order-1")
		require.ErrorContains(t, err, "step first")
		require.NoError(t, eng.Close(), "the second Close")
		pass(time.Hour) // the body ends; what it did is not recorded by a closed engine
		require.Equal(t, []string{"workflow_created", "workflow_started"}, w.story("order-1"))
		rep := w.boot(t, with(steps(0, true, nil)))
		require.Equal(t, []string{"order-1"}, rep.Resumed)
	})
}

// While Close waits for a body, the executor is alive: nobody else may take its
// runs, however long the grace is.
func TestALongGraceKeepsTheLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := steps(5*time.Minute, true, nil)
		o := with(s)
		o.Grace = 10 * time.Minute
		w.open(t, o)
		closing := w.eng
		start(t, w, s.Workflow, "r", 0)
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- closing.Close() }()
		w.boot(t, with(s))
		pass(4 * time.Minute)
		require.Equal(t, []string{"first"}, s.ran(), "another executor took it while its body ran")
		require.NoError(t, <-done)
		_, err := wait(t, w, s.Workflow, "r")
		require.NoError(t, err)
		require.Equal(t, []string{"first", "second"}, s.ran())
		require.Contains(t, w.story("r"), "step_completed first")
	})
}

func TestASecondCloseWaitsForTheFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := steps(5*time.Second, true, nil)
		o := with(s)
		o.Grace = 10 * time.Second
		w.open(t, o)
		start(t, w, s.Workflow, "r", 0)
		synctest.Wait()
		began := time.Now()
		took := make(chan time.Duration, 3)
		for range 3 {
			go func() {
				require.NoError(t, w.eng.Close())
				took <- time.Since(began)
			}()
		}
		for range 3 {
			require.Equal(t, 5*time.Second, <-took)
		}
		require.Empty(t, executors(t, w), "it has left")
	})
}

// The other executor need not wait, nor be told: it is idle and takes over.
func TestAnotherExecutorContinuesAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := steps(time.Hour, true, nil)
		w.boot(t, with(s))
		second := w.eng
		w.boot(t, with(s))
		start(t, w, s.Workflow, "r", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Close())
		synctest.Wait()
		require.Equal(t, second.ID(), w.row("r").Owner, "without any time passing")
		require.Equal(t, []string{"first", "first"}, s.ran())
	})
}

func TestUnderFailOnBootAShutdownLeavesResumingToAPerson(t *testing.T) {
	for name, policy := range map[string]durable.BootPolicy{"fail": durable.FailOnBoot, "leave": durable.LeaveOnBoot} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 3, durable.Do(ctx, "hold", h.body) }, durable.OnBoot(policy))
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				synctest.Wait()
				require.NoError(t, w.eng.Close())
				row := w.row("r")
				require.Equal(t, store.Interrupted, row.Status)
				require.Equal(t, durable.CodeShutdown, row.Code)
				rep := w.boot(t, with(wf))
				require.Empty(t, rep.Resumed)
				require.Len(t, rep.Stuck, 1)
				require.Contains(t, rep.Stuck[0].Next, `operate.On(engine).Resume(ctx, "r")`)
				pass(time.Hour)
				require.Equal(t, 1, h.count())
				require.NoError(t, resume(w.eng, w.ctx(), "r"))
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 3, out)
			})
		})
	}
}

// The store is gone while the engine closes: Close comes back, and says nothing
// wrong.
func TestCloseDoesNotHangOnADeadStore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := steps(time.Second, true, nil)
		w.serve(t, s)
		start(t, w, s.Workflow, "r", 0)
		synctest.Wait()
		w.disk.tamper(func(batch []store.Change, _ func() []error) []error { return all(batch, errDisk) })
		pass(time.Minute) // the step's outcome is tried again and again
		began := time.Now()
		require.NoError(t, w.eng.Close())
		require.LessOrEqual(t, time.Since(began), 15*time.Second)
		w.expire()
		w.boot(t, with(s))
		_, err := wait(t, w, s.Workflow, "r")
		require.NoError(t, err)
		require.Equal(t, []string{"first", "first", "second"}, s.ran())
	})
}

// A workflow function that loops over errors without a step is ended.
func TestALoopThatIgnoresErrorsIsEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		calls := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for {
				_ = durable.Do(ctx, "s", func(ctx context.Context) error {
					calls++
					if calls > 3 {
						<-ctx.Done()
					}
					return errors.New("no")
				})
			}
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Close())
		require.Equal(t, store.Interrupted, w.row("r").Status)
	})
}

// Close leaves behind what does not heed its context. Who waits for such a run learns
// that nothing comes of it here any more.
func TestAWaitForARunThatCloseHasLeftBehindEnds(t *testing.T) {
	for _, by := range []string{"the handle of its start", "a handle by its id"} {
		inWorld(t, func(t *testing.T, w *world) {
			s := steps(time.Hour, false, nil)
			eng, err := durable.Open(context.Background(), w.data.Handle(), durable.Options{Workflows: []durable.Definition{s}, Grace: -1, Logger: slog.New(w.log)})
			require.NoError(t, err)
			ctx := durable.NewContext(context.Background(), eng)
			h, err := s.Start(ctx, "r", 0)
			require.NoError(t, err)
			if by != "the handle of its start" {
				h, err = s.Handle(ctx, "r")
				require.NoError(t, err)
			}
			synctest.Wait()
			waited := make(chan error, 1)
			go func() { waited <- second(h.Wait(ctx)) }()
			synctest.Wait()
			require.ErrorContains(t, eng.Close(), "ignores its context")
			synctest.Wait()
			select {
			case err := <-waited:
				require.ErrorIs(t, err, durable.ErrClosed)
			default:
				require.Fail(t, "it still waits", by)
			}
			time.Sleep(time.Hour) // the body ends, and with it the goroutine
		})
	}
}

// silent is a store that stops answering the reads of runs. They end with their contexts, unless it is deaf
// to these, too.
type silent struct {
	*disk
	stuck, deaf atomic.Bool
	answers     chan struct{}
}

func (s *silent) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	if s.stuck.Load() {
		done := ctx.Done()
		if s.deaf.Load() {
			done = nil
		}
		select {
		case <-done:
			return nil, ctx.Err()
		case <-s.answers:
		}
	}
	return s.disk.Load(ctx, id, c)
}

func (s *silent) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	return store.LoadAll(ctx, struct{ store.Store }{s}, loads)
}

// openSilent starts a process on such a store, which hears no notice.
func openSilent(t *testing.T, w *world, defs ...durable.Definition) (*durable.Engine, *silent) {
	st := &silent{disk: &disk{Store: w.data.Handle(), deaf: true}, answers: make(chan struct{})}
	eng, err := durable.Open(context.Background(), st, durable.Options{Workflows: defs, Grace: -1})
	require.NoError(t, err)
	w.eng = eng
	return eng, st
}

func TestCloseEndsTheReadOfTheReasonOfACancelThatCameFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		goOn := make(chan struct{})
		wf := durable.Define("w", func(context.Context, int) (int, error) { <-goOn; return 1, nil })
		eng, st := openSilent(t, w, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		st.tamper(func(_ []store.Change, forward func() []error) []error {
			errs := forward()
			if errors.Is(errors.Join(errs...), store.ErrCancelAsked) {
				st.stuck.Store(true)
			}
			return errs
		})
		require.NoError(t, w.open(t, durable.Options{}).Cancel(context.Background(), "r", "enough"))
		close(goOn)
		pass(time.Second)
		require.True(t, st.stuck.Load())
		require.NoError(t, eng.Close())
	})
}

func TestCloseEndsTheReadForAWaitThatNothingEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		eng, st := openSilent(t, w)
		_, err := eng.Recover(context.Background())
		require.NoError(t, err)
		run, err := durable.Ref[int, int]("order").Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		st.tamperCalls(func(call string, forward func() error) error {
			st.stuck.Store(st.stuck.Load() || call == "executors")
			return forward()
		})
		ctx, stop := context.WithTimeout(w.ctx(), time.Minute)
		defer stop()
		go func() { _, _ = run.Wait(ctx) }()
		pass(10 * time.Second)
		require.True(t, st.stuck.Load())
		require.NoError(t, eng.Close())
	})
}

// Before a wait times out, the run reads the messages that its executor has not heard of.
func TestCloseDoesNotBlameARunWhoseWaitTimesOutWhileTheStoreIsSilent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Await[int](ctx, "never", durable.Timeout(9*time.Second))
		})
		eng, st := openSilent(t, w, wf)
		start(t, w, wf, "r", 0)
		pass(8 * time.Second)
		other := w.open(t, durable.Options{})
		st.deaf.Store(true)
		st.stuck.Store(true)
		require.NoError(t, other.Signal(context.Background(), "r", "other", 1))
		pass(2 * time.Second)
		require.Equal(t, store.WaitRequested, w.row("r").Last.Type)
		err := eng.Close()
		require.ErrorContains(t, err, "the store has not answered")
		require.NotContains(t, err.Error(), "ignores its context")
		close(st.answers)
	})
}

func TestCloseDoesNotBlameABodyWhoseSignalIsUnanswered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 1, durable.Do(ctx, "send", func(ctx context.Context) error { return durable.Signal(ctx, "other", "go", 1) })
		})
		eng, st := openSilent(t, w, wf)
		_, err := durable.Ref[int, int]("waits").Start(w.ctx(), "other", 0)
		require.NoError(t, err)
		st.tamper(func(batch []store.Change, forward func() []error) []error {
			if len(batch[0].Send) > 0 {
				st.stuck.Store(true)
				<-st.answers
			}
			return forward()
		})
		start(t, w, wf, "r", 0)
		pass(time.Second)
		require.True(t, st.stuck.Load())
		err = eng.Close()
		require.ErrorContains(t, err, "the store has not answered")
		require.NotContains(t, err.Error(), "ignores its context")
		close(st.answers)
	})
}
