package durable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/store"
)

func one(context.Context) (int, error) { return 1, nil }

func TestADurableCallOutsideARunSaysWhatToDo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t)
		for name, ctx := range map[string]context.Context{"plain": context.Background(), "with an engine": w.ctx()} {
			_, err := durable.Step(ctx, "charge", one)
			require.ErrorIs(t, err, durable.ErrOutsideRun, name)
			require.ErrorContains(t, err, "charge")
			require.ErrorContains(t, err, "Start")
			require.ErrorIs(t, durable.Do(ctx, "d", func(context.Context) error { return nil }), durable.ErrOutsideRun)
			_, err = durable.Retry(ctx, "charge", durable.Policy{}, one)
			require.ErrorIs(t, err, durable.ErrOutsideRun)
			_, err = durable.Seek(ctx, "charge", durable.Policy{}, one, func(int) error { return nil })
			require.ErrorIs(t, err, durable.ErrOutsideRun)
			require.ErrorIs(t, durable.Checkpoint(ctx), durable.ErrOutsideRun)
			require.Zero(t, durable.Attempt(ctx))
			durable.Note(ctx, "k", "v")
			require.NotEmpty(t, durable.NewID(ctx))
			require.NotNil(t, durable.Rand(ctx))
			require.WithinDuration(t, time.Now(), durable.Now(ctx), time.Second)
		}
		require.Len(t, w.log.find("Note was called outside a step"), 1)
	})
}

func TestNilArgumentsAreRefused(t *testing.T) {
	live, _ := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
		var nilStep func(context.Context) (int, error)
		for _, err := range []error{
			second(durable.Step(ctx, "s", nilStep)),
			durable.Do(ctx, "s", nil),
			second(durable.Retry(ctx, "s", durable.Policy{}, nilStep)),
			second(durable.Seek(ctx, "s", durable.Policy{}, nilStep, func(int) error { return nil })),
			second(durable.Seek(ctx, "s", durable.Policy{}, one, nil)),
		} {
			require.ErrorIs(t, err, durable.ErrInvalid)
			require.ErrorContains(t, err, `"s"`)
			require.ErrorContains(t, err, "nil")
		}
		return 1, nil
	})
	require.Equal(t, 1, live.value)
	inWorld(t, func(t *testing.T, w *world) {
		var noContext context.Context
		wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
		w.serve(t, wf)
		_, err := durable.Step(noContext, "s", one)
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.ErrorIs(t, durable.Checkpoint(noContext), durable.ErrInvalid)
		_, err = wf.Start(noContext, "r", 0)
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = wf.Handle(noContext, "r")
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = durable.Recover(noContext)
		require.ErrorIs(t, err, durable.ErrInvalid)

		var nilWorkflow func(context.Context, int) (int, error)
		_, err = durable.Open(t.Context(), w.data, with(durable.Define("nilfunc", nilWorkflow)))
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.ErrorContains(t, err, "nilfunc")
		_, err = durable.Open(t.Context(), nil, durable.Options{})
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = durable.Open(t.Context(), w.data, with(nil))
		require.ErrorIs(t, err, durable.ErrInvalid)
		var nilDef *durable.Workflow[int, int]
		_, err = durable.Open(t.Context(), w.data, with(nilDef))
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.Len(t, executors(t, w), 1, "a refused Open leaves nothing behind")
	})
}

func executors(t *testing.T, w *world) []store.Executor {
	t.Helper()
	list, err := w.data.Executors(t.Context())
	require.NoError(t, err)
	return list
}

func second[T any](_ T, err error) error { return err }

func TestOptionsThatCannotBeUsedAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		def := func(name string, o ...durable.DefineOption) durable.Definition {
			return durable.Define(name, func(context.Context, int) (int, error) { return 1, nil }, o...)
		}
		for name, o := range map[string]durable.Options{
			"duplicate":               with(def("w"), def("w")),
			"duplicate version":       with(def("w", durable.Version("2")), def("w", durable.Version("2"))),
			"Ref":                     with(durable.Ref[int, int]("w")),
			"short lease":             {Lease: time.Millisecond},
			"negative lease":          {Lease: -time.Second},
			"negative MaxRuns":        {MaxRuns: -1},
			"negative quarantine":     {QuarantineAfter: -1},
			"unknown boot policy":     {OnBoot: 17},
			"unknown own boot policy": with(def("w", durable.OnBoot(17))),
			"error name twice":        {Errors: []durable.ErrorKind{durable.Sentinel("a", errStock), durable.ErrorType[*cardError]("a")}},
			"error without a name":    {Errors: []durable.ErrorKind{durable.Sentinel("", errStock)}},
			"nil sentinel":            {Errors: []durable.ErrorKind{durable.Sentinel("a", nil)}},
			"interface as a type":     {Errors: []durable.ErrorKind{durable.ErrorType[error]("a")}},
			"taken name":              {Errors: []durable.ErrorKind{durable.Sentinel("io.EOF", errStock)}},
			"uncomparable sentinel":   {Errors: []durable.ErrorKind{durable.Sentinel("a", uncomparable{[]int{1}})}},
			"zero error kind":         {Errors: []durable.ErrorKind{{}}},
		} {
			_, err := durable.Open(t.Context(), w.data, o)
			require.ErrorIs(t, err, durable.ErrInvalid, name)
		}
		require.Empty(t, executors(t, w))
		w.open(t, with(def("w"), def("w", durable.Version("2")), def("x")))
	})
}

func TestANestedCallIsRefusedAndTheStepGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var wf, child *durable.Workflow[int, int]
		child = durable.Define("child", func(context.Context, int) (int, error) { return 1, nil })
		wf = durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "outer", func(ctx context.Context) (int, error) {
				err := durable.Do(ctx, "inner", func(context.Context) error { t.Error("ran"); return nil })
				require.ErrorIs(t, err, durable.ErrNested)
				require.ErrorContains(t, err, "inner")
				require.ErrorContains(t, err, "outer")
				require.ErrorIs(t, durable.Checkpoint(ctx), durable.ErrNested)
				return 5, nil
			})
		})
		w.serve(t, wf, child)
		out, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 5, out)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed outer", "workflow_completed"}, w.story("r"))

		// In a body, a start is an effect like any other.
		starts := durable.Define("starts", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "in a step", func(ctx context.Context) (int, error) { return child.Run(ctx, "c2", 0) })
		})
		w.serve(t, starts, child)
		out, err = run(t, w, starts, "r2", 0)
		require.NoError(t, err)
		require.Equal(t, 1, out)
		require.Empty(t, w.row("c2").Parent)
	})
}

func TestTwoCallsAtOnceInOneScopeAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(outer context.Context, _ int) (int, error) {
			return durable.Step(outer, "first", func(context.Context) (int, error) {
				err := durable.Do(outer, "second", func(context.Context) error { t.Error("ran"); return nil })
				var c *misuse.ConcurrentCallError
				require.ErrorAs(t, err, &c)
				require.ErrorIs(t, err, durable.ErrConcurrent)
				require.Equal(t, "first", c.Running)
				require.Equal(t, "second", c.Second)
				require.ErrorContains(t, err, "outer ctx")
				require.ErrorContains(t, err, "durable.Go")
				return 3, nil
			})
		})
		w.serve(t, wf)
		out, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 3, out)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed first", "workflow_completed"}, w.story("r"))
	})
}

// The context of a workflow function is good for nothing once it has returned.
func TestACallAfterTheEndOfTheRunIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var kept, body context.Context
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			kept = ctx
			return durable.Step(ctx, "s", func(ctx context.Context) (int, error) { body = ctx; return 1, nil })
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		ran := 0
		err = durable.Do(kept, "late", func(context.Context) error { ran++; return nil })
		require.Error(t, err)
		require.Error(t, kept.Err())
		require.Zero(t, ran)
		durable.Note(body, "late", 1)
		require.Len(t, w.story("r"), 4)
	})
}

// A call that is still under way when the function returns belongs to nobody.
func TestACallStillUnderWayAtTheEndIsNoSilentSuccess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release := make(chan struct{})
		var late error
		done := make(chan struct{})
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			began := make(chan struct{})
			go func() {
				defer close(done)
				late = durable.Do(ctx, "left behind", func(context.Context) error { close(began); <-release; return nil })
			}()
			<-began
			return 1, nil
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		close(release)
		<-done
		require.Error(t, late, "what it did is not recorded")
		require.ErrorIs(t, err, durable.ErrConcurrent)
		require.Equal(t, store.Failed, w.row("r").Status)
	})
}

func TestAClosedEngineRefusesEverything(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
		eng := w.serve(t, wf)
		_, err := run(t, w, wf, "done", 0)
		require.NoError(t, err)
		require.NoError(t, eng.Close())
		_, err = wf.Start(w.ctx(), "r", 0)
		require.ErrorIs(t, err, durable.ErrClosed)
		_, err = wf.Start(w.ctx(), durable.AutoID, 0)
		require.ErrorIs(t, err, durable.ErrClosed)
		_, err = durable.Ref[int, int]("elsewhere").Start(w.ctx(), "r", 0)
		require.ErrorIs(t, err, durable.ErrClosed)
		_, err = durable.Recover(w.ctx())
		require.ErrorIs(t, err, durable.ErrClosed)
		require.ErrorIs(t, resume(eng, w.ctx(), "done"), durable.ErrClosed)
		n, err := w.data.Count(t.Context(), store.Filter{}, "")
		require.NoError(t, err)
		require.EqualValues(t, 1, n[""])
		require.NoError(t, eng.Close())
		// What is recorded can still be read, as long as the store is open.
		i, err := eng.Get(w.ctx(), "done")
		require.NoError(t, err)
		require.Equal(t, store.Completed, i.Status)
		out, err := wait(t, w, wf, "done")
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}

func TestWaitingOnAClosedEngineForARunElsewhereEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		eng := w.serve(t)
		ref := durable.Ref[int, int]("elsewhere")
		h, err := ref.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		got := make(chan error, 1)
		go func() { _, err := h.Wait(context.Background()); got <- err }()
		synctest.Wait()
		require.NoError(t, eng.Close())
		require.ErrorIs(t, <-got, durable.ErrClosed)
	})
}

func TestNoEngineIsSaidWithBothCures(t *testing.T) {
	wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
	_, err := wf.Start(context.Background(), "r", 0)
	require.ErrorIs(t, err, durable.ErrNoEngine)
	require.ErrorContains(t, err, "SetDefault")
	require.ErrorContains(t, err, "NewContext")
	_, err = durable.Recover(context.Background())
	require.ErrorIs(t, err, durable.ErrNoEngine)
	_, err = wf.Handle(durable.NewContext(context.Background(), nil), "r")
	require.ErrorIs(t, err, durable.ErrNoEngine)
}

func TestTheDefaultEngineServesContextsWithoutOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "s", one) })
		eng := w.serve(t, wf)
		durable.SetDefault(eng)
		defer durable.SetDefault(nil)
		out, err := wf.Run(context.Background(), "r", 0)
		require.NoError(t, err)
		require.Equal(t, 1, out)
		_, err = durable.Recover(context.Background())
		require.NoError(t, err)
	})
}

var errDisk = errors.New("disk on fire")

func TestAnUnreachableStoreIsSaid(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		closed := w.data.Handle()
		require.NoError(t, closed.Close())
		_, err := durable.Open(t.Context(), closed, durable.Options{})
		require.ErrorIs(t, err, durable.ErrUnavailable)
		require.ErrorIs(t, err, store.ErrClosed)

		wf := durable.Define("w", func(context.Context, int) (int, error) { return 1, nil })
		eng := w.serve(t, wf)
		w.disk.tamperCalls(func(string, func() error) error { return errDisk })
		for name, err := range map[string]error{
			"recover": second(eng.Recover(w.ctx())),
			"resume":  resume(eng, w.ctx(), "r"),
			"get":     second(eng.Get(w.ctx(), "r")),
			"list":    second(eng.List(w.ctx(), store.Filter{})),
			"wait":    second(wait(t, w, wf, "r")),
		} {
			require.ErrorIs(t, err, durable.ErrUnavailable, name)
			require.ErrorIs(t, err, errDisk, name)
		}
		for _, err := range eng.History(w.ctx(), "r") {
			require.ErrorIs(t, err, durable.ErrUnavailable)
		}
	})
}

// A workflow nobody here has the code of can be started, waits, and is executed
// by who has it.
func TestARunOfAWorkflowThatIsNotRegisteredWaitsForItsCode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ref := durable.Ref[int, int]("w")
		w.serve(t)
		h, err := ref.Start(w.ctx(), "r", 20)
		require.NoError(t, err)
		pass(time.Hour)
		require.Equal(t, store.Pending, w.row("r").Status)
		wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
			return durable.Step(ctx, "s", func(context.Context) (int, error) { return in + 1, nil })
		}, durable.Version("7"))
		w.boot(t, with(wf))
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 21, out)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed s", "workflow_completed"}, w.story("r"))
	})
}
