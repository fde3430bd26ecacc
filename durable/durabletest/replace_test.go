package durabletest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// A recordingT is a test whose failures are looked at.
type recordingT struct {
	testing.TB
	mu      sync.Mutex
	said    []string
	cleanup []func()
}

func (r *recordingT) Helper()          {}
func (r *recordingT) Skipped() bool    { return false }
func (r *recordingT) Cleanup(f func()) { r.cleanup = append(r.cleanup, f) }
func (r *recordingT) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *recordingT) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

func (r *recordingT) end() []string {
	for _, f := range r.cleanup {
		f()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said
}

func engineOn(t *testing.T, s store.Store, around []durabletest.Around, defs ...durable.Definition) *durable.Engine {
	t.Helper()
	eng, err := durable.Open(t.Context(), s, durable.Options{Workflows: defs, Around: around, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	return eng
}

func runOf[I, O any](t *testing.T, eng *durable.Engine, wf *durable.Workflow[I, O], id string, in I) (O, error) {
	t.Helper()
	h, err := wf.Start(durable.NewContext(t.Context(), eng), id, in)
	require.NoError(t, err)
	return h.Wait(t.Context())
}

var errReal = errors.New("the real body ran")

func reallyInt(context.Context) (int, error) { return 0, errReal }

var three = durable.Policy{MaxAttempts: 3, Initial: time.Second}

// Each kind of step, with a fake in its place.
func TestEachKindOfStepIsReplacedByName(t *testing.T) {
	undone := 0
	wf := durable.Define("all", func(ctx context.Context, fail bool) (string, error) {
		a, err := durable.Step(ctx, "step", reallyInt)
		if err != nil {
			return "", err
		}
		if err := durable.Do(ctx, "do", func(context.Context) error { return errReal }); err != nil {
			return "", err
		}
		b, err := durable.Retry(ctx, "retry", three, reallyInt)
		if err != nil {
			return "", err
		}
		c, err := durable.Seek(ctx, "seek", three, reallyInt, func(v int) error {
			if v < 7 {
				return errors.New("too small")
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		d, err := durable.Once(ctx, "once", reallyInt)
		if err != nil {
			return "", err
		}
		e, err := durable.Transact(ctx, "transact", func(context.Context, *sql.Tx) (int, error) { return 0, errReal })
		if err != nil {
			return "", err
		}
		if err := durable.Compensate(ctx, "undo", func(context.Context) error { return errReal }); err != nil {
			return "", err
		}
		items, err := durable.Map(ctx, "items", []string{"x", "y"}, durable.MapOptions{}, func(ctx context.Context, s string) (string, error) {
			return durable.Step(ctx, "resize", func(context.Context) (string, error) { return "", errReal }, durable.WithInput(s))
		})
		if err != nil {
			return "", err
		}
		var r io.Reader
		r, err = durable.Step(ctx, "a/b #1", func(context.Context) (io.Reader, error) { return nil, errReal })
		if fail || err != nil || r != nil {
			return "", errors.Join(errors.New("failed at the end"), err)
		}
		return fmt.Sprint(a, b, c, d, e, items), nil
	})
	for name, open := range map[string]func(t *testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return memory.Open() },
		"sqlite": func(t *testing.T) store.Store {
			s, err := sqlite.Open(filepath.Join(t.TempDir(), "app.db"))
			require.NoError(t, err)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := func(t *testing.T) {
				retried := durabletest.Step("retry", durabletest.ReturnsErr(errors.New("down")).Times(2), durabletest.Returns(3))
				undo := durabletest.Step("undo", durabletest.Func(func(context.Context, durabletest.Call) (struct{}, error) { undone++; return struct{}{}, nil })).Optional()
				eng := engineOn(t, open(t), durabletest.Replace(t, retried, undo,
					durabletest.Step("step", durabletest.Returns(1)),
					durabletest.Step("do"),
					durabletest.Step("seek", durabletest.Returns(6), durabletest.Returns(7)),
					durabletest.Step("once", durabletest.Returns(8)),
					durabletest.Step("transact", durabletest.Returns(9)),
					durabletest.Step("resize", durabletest.Func(func(_ context.Context, c durabletest.Call) (string, error) {
						return c.Key + "=" + c.Input.(string), nil
					})),
					durabletest.Step("a/b #1", durabletest.Returns[io.Reader](nil)),
				), wf)
				out, err := runOf(t, eng, wf, "r", false)
				require.NoError(t, err)
				require.Equal(t, "1 3 7 8 9 [items[0]/resize=x items[1]/resize=y]", out)
				require.Len(t, retried.Calls(), 3)
				require.Equal(t, 3, retried.Calls()[2].Number)
				require.Len(t, retried.Calls()[2].Failures, 2)
				undone = 0
				_, err = runOf(t, eng, wf, "failing", true)
				require.ErrorContains(t, err, "failed at the end")
				require.NotErrorIs(t, err, errReal)
				require.Equal(t, 1, undone)
			}
			if name == "memory" {
				synctest.Test(t, body) // the pauses between the attempts take no time
			} else {
				three.Initial = time.Millisecond
				body(t)
			}
		})
	}
}

func TestAFakeThatIsNeverCalledFailsTheTest(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil })
	})
	r := &recordingT{}
	eng := engineOn(t, memory.Open(), durabletest.Replace(r, durabletest.Step("chagre", durabletest.Returns(2)), durabletest.Step("refund").Optional()), wf)
	out, err := runOf(t, eng, wf, "r", 0)
	require.NoError(t, err)
	require.Equal(t, 1, out)
	require.Equal(t, []string{`durabletest: step "chagre" was replaced and never ran; the steps that did are charge. A fake that need not be called is Optional`}, r.end())

	r = &recordingT{}
	durabletest.Replace(r, durabletest.Step("charge"), durabletest.Step("charge"))
	require.Contains(t, r.end()[0], `two fakes replace step "charge"`)
}

func TestAResultThatDoesNotFitItsStepFailsTheTest(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Do(ctx, "ship", func(context.Context) error { return nil }); err != nil {
			t.Log(err) // and the run goes on
		}
		return durable.Retry(ctx, "charge", durable.Policy{}, func(context.Context) (int, error) { return 1, nil })
	})
	r := &recordingT{}
	eng := engineOn(t, memory.Open(), durabletest.Replace(r, durabletest.Step("charge", durabletest.Returns("two")), durabletest.Step("ship", durabletest.Returns(true))), wf)
	_, err := runOf(t, eng, wf, "r", 0)
	require.ErrorContains(t, err, "the fake of this step returns string") // and is not tried for ever
	require.Equal(t, []string{
		`durabletest: the fake of step "ship" returns bool, and the step ship in run r has no result (Succeeds)`,
		`durabletest: the fake of step "charge" returns string, and the step charge in run r has a result of type int`,
	}, r.end())
}

// After a failure that a run has died of, a resume makes the step again, and the fake gives its next reply.
func TestRepliesGoOnWhereAnOperatorResumesTheRun(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Step(ctx, "charge", reallyInt)
	})
	eng := engineOn(t, memory.Open(), durabletest.Replace(t, durabletest.Step("charge", durabletest.ReturnsErr(errors.New("down")), durabletest.Returns(4))), wf)
	_, err := runOf(t, eng, wf, "r", 0)
	require.ErrorContains(t, err, "down")
	_, err = operate.On(eng).Resume(t.Context(), "r", operate.ResumeOptions{ResetFailures: true})
	require.NoError(t, err)
	h, err := wf.Handle(durable.NewContext(t.Context(), eng), "r")
	require.NoError(t, err)
	out, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, out)
}

func TestAGateHoldsAStepUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "charge", func(context.Context) (int, error) { return 5, nil })
		})
		gate := &durabletest.Gate{}
		eng := engineOn(t, memory.Open(), durabletest.Replace(t, durabletest.Step("charge", gate.Before(durabletest.Body()))), wf)
		h, err := wf.Start(durable.NewContext(t.Context(), eng), "r", 0)
		require.NoError(t, err)
		<-gate.Reached()
		synctest.Wait()
		key, _ := eng.Executing("r")
		require.Equal(t, "charge", key)
		gate.Open()
		out, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5, out)

		// A body that is held ends with its context.
		shut := &durabletest.Gate{}
		eng2 := engineOn(t, memory.Open(), durabletest.Replace(t, durabletest.Step("charge", shut.Before(durabletest.Succeeds()))), wf)
		h, err = wf.Start(durable.NewContext(t.Context(), eng2), "r", 0)
		require.NoError(t, err)
		<-shut.Reached()
		require.NoError(t, eng2.Cancel(t.Context(), "r", "no longer wanted"))
		_, err = h.Wait(t.Context())
		require.ErrorIs(t, err, durable.ErrRunCancelled)
	})
}

// In Survives, where a run is executed from the beginning again and again, each of the runs meets the same replies.
func TestFakesWorkInSurvives(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		first, err := durable.Step(ctx, "quote", reallyInt)
		if err != nil {
			first = -1
		}
		second, err := durable.Step(ctx, "quote", reallyInt)
		if err != nil {
			return "", err
		}
		third, err := durable.Retry(ctx, "charge", three, reallyInt)
		return fmt.Sprint(first, second, third), err
	})
	quote := durabletest.Step("quote", durabletest.ReturnsErr(errors.New("down")), durabletest.Returns(2))
	charge := durabletest.Step("charge", durabletest.ReturnsErr(errors.New("declined")), durabletest.Returns(3))
	durabletest.Simulate(t, durabletest.Of(wf, 0, durabletest.Want("-1 2 3"),
		durabletest.Engine(durable.Options{Around: durabletest.Replace(t, quote, charge)}), durabletest.Sample(10)))
	for _, c := range quote.Calls() {
		require.Equal(t, map[string]int{"quote": 1, "quote#2": 2}[c.Key], c.N)
	}
	for _, c := range charge.Calls() {
		require.Equal(t, c.Number, c.N)
	}
	require.Greater(t, len(charge.Calls()), 20)
}

// A crash while the body of Once runs leaves its outcome unknown, also when the body is a fake; and
// Reconcile decides as it would.
func TestOnceKeepsItsPromiseWhenItIsReplaced(t *testing.T) {
	for _, happened := range []string{"unknown", "no", "yes"} {
		t.Run(happened, func(t *testing.T) {
			var o []durable.OnceOption[int]
			if happened != "unknown" {
				o = append(o, durable.Reconcile(func(context.Context) (int, bool, error) { return 20, happened == "yes", nil }))
			}
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				v, err := durable.Once(ctx, "charge", reallyInt, o...)
				if errors.Is(err, durable.ErrUnknownOutcome) {
					return 99, nil
				}
				return v, err
			})
			synctest.Test(t, func(t *testing.T) {
				data := memory.Open()
				dying := crashstore.Notifier{Store: crashstore.New(data.Handle())}
				charge := durabletest.Step("charge", durabletest.Func(func(context.Context, durabletest.Call) (int, error) {
					dying.Die() // the effect has happened, and its outcome is not recorded
					return 10, nil
				}))
				around := durabletest.Replace(t, charge)
				eng := engineOn(t, dying, around, wf)
				_, err := wf.Start(durable.NewContext(t.Context(), eng), "r", 0)
				require.NoError(t, err)
				<-dying.Died()
				next := engineOn(t, data.Handle(), around, wf)
				_, err = next.Recover(t.Context())
				require.NoError(t, err)
				h, err := wf.Handle(durable.NewContext(t.Context(), next), "r")
				require.NoError(t, err)
				out, err := h.Wait(t.Context())
				require.NoError(t, err)
				require.Equal(t, map[string]int{"unknown": 99, "no": 10, "yes": 20}[happened], out)
				require.Len(t, charge.Calls(), map[string]int{"unknown": 1, "no": 2, "yes": 1}[happened])
			})
		})
	}
}
