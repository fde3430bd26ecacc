package durable_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// wholeLog reads a run over all branches, and checks its chain.
func (w *world) wholeLog(id string) []store.Event {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(w.t, err)
	var all []store.Event
	var before store.Event
	for e, err := range h.Events {
		require.NoError(w.t, err)
		require.Equal(w.t, before.Seq+1, e.Seq)
		require.Equal(w.t, store.Seal(id, before.Sum, &e), e.Sum)
		require.GreaterOrEqual(w.t, e.At, before.At)
		all, before = append(all, e), e
	}
	return all
}

// tell tells events in short.
func tell(t *testing.T, events iter.Seq2[store.Event, error]) []string {
	t.Helper()
	var lines []string
	for e, err := range events {
		require.NoError(t, err)
		lines = append(lines, strings.TrimSpace(string(e.Type)+" "+e.Key))
	}
	return lines
}

// countdown does a step per generation and continues until its input is 0.
func countdown(saw func(ctx context.Context, n int)) *durable.Workflow[int, string] {
	return durable.Define("countdown", func(ctx context.Context, n int) (string, error) {
		if err := durable.Do(ctx, "work", func(ctx context.Context) error { saw(ctx, n); return nil }); err != nil {
			return "", err
		}
		if n == 0 {
			return "lift-off", nil
		}
		return "", durable.Continue(ctx, n-1)
	})
}

func nothing(context.Context, int) {}

func TestARunThatContinuesStartsAfreshUnderItsID(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		keys := map[string]bool{}
		wf := countdown(func(ctx context.Context, n int) { keys[durable.IdempotencyKey(ctx)] = true })
		w.serve(t, wf)
		h := start(t, w, wf, "r", 2)
		hash := w.row("r").InputHash
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "lift-off", out)
		require.Len(t, keys, 3, "each generation has its own idempotency keys")

		row := w.row("r")
		require.EqualValues(t, 2, row.Generation)
		require.Equal(t, hash, row.InputHash, "the identity is that of the first start")
		require.EqualValues(t, 1, row.Last.Steps, "the steps are those of the generation")
		w.wholeLog("r")
		require.Equal(t, []string{"workflow_started", "step_completed work", "workflow_completed"}, tell(t, w.eng.History(w.ctx(), "r")))
		gens, err := operate.On(w.eng).Generations(w.ctx(), "r")
		require.NoError(t, err)
		require.Len(t, gens, 3)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed work", "workflow_continued"}, tell(t, operate.On(w.eng).HistoryOf(w.ctx(), "r", 0)))
		require.Equal(t, []string{"workflow_started", "step_completed work", "workflow_continued"}, tell(t, operate.On(w.eng).HistoryOf(w.ctx(), "r", 1)))
		require.Equal(t, tell(t, w.eng.History(w.ctx(), "r")), tell(t, operate.On(w.eng).HistoryOf(w.ctx(), "r", 2)))
		for _, err := range operate.On(w.eng).HistoryOf(w.ctx(), "r", 3) {
			require.ErrorIs(t, err, durable.ErrNotFound)
		}
		_, err = operate.On(w.eng).Generations(w.ctx(), "nobody")
		require.ErrorIs(t, err, durable.ErrNotFound)

		again, err := wf.Run(w.ctx(), "r", 2)
		require.NoError(t, err, "the same start finds it")
		require.Equal(t, "lift-off", again)
		_, err = wf.Start(w.ctx(), "r", 1)
		require.ErrorIs(t, err, durable.ErrConflict, "the input of a later generation is another start")
	})
}

func TestAWaiterWaitsUntilTheLastGenerationEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("slow", func(ctx context.Context, n int) (string, error) {
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return "", err
			}
			if n == 0 {
				return "done", nil
			}
			return "", fmt.Errorf("next: %w", durable.Continue(ctx, n-1)) // wrapped, it still continues
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 3)
		here, other := w.eng, w.serve(t)
		results := make(chan string, 2)
		for _, e := range []*durable.Engine{here, other} {
			go func() {
				h, err := wf.Handle(durable.NewContext(context.Background(), e), "r")
				require.NoError(t, err)
				out, err := h.Wait(context.Background())
				require.NoError(t, err)
				results <- out
			}()
		}
		pass(3*time.Hour + time.Minute)
		require.Empty(t, results)
		pass(time.Hour)
		require.Len(t, results, 2)
	})
}

func TestRandomnessDiffersBetweenGenerationsAndIsTheSameOnReplay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ids []string
		var h hold
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			ids = append(ids, fmt.Sprint(n, " ", durable.NewID(ctx), " ", durable.Now(ctx).UnixMicro()))
			if n == 1 {
				return 0, durable.Do(ctx, "hold", h.body)
			}
			return 0, errors.Join(durable.Sleep(ctx, time.Minute), durable.Continue(ctx, n+1))
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(2 * time.Minute)
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Len(t, ids, 4, "each generation was replayed once: unloaded while it slept, killed in its body")
		require.Equal(t, ids[0], ids[1])
		require.NotEqual(t, ids[0][1:], ids[2][1:])
		require.Equal(t, ids[2], ids[3])
	})
}

func TestSignalsThatWereNotTakenWaitForTheNextGeneration(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type state struct{ Got []int }
		wf := durable.Define("collect", func(ctx context.Context, s state) ([]int, error) {
			// Two of a generation are taken, the rest is for the next one.
			for range 2 {
				n, err := durable.Await[int](ctx, "n")
				if err != nil {
					return nil, err
				}
				s.Got = append(s.Got, n)
			}
			if len(s.Got) == 6 {
				_, err := durable.Await[string](ctx, "other")
				return s.Got, err
			}
			return nil, durable.Continue(ctx, s)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", state{})
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "other", "early"))
		for n := range 5 {
			require.NoError(t, w.eng.Signal(w.ctx(), "r", "n", n))
		}
		synctest.Wait()
		require.EqualValues(t, 2, w.row("r").Generation)
		w.reboot(t, with(wf))
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "n", 5))
		h, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		got, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, got, "in order, each once")
	})
}

func TestContinueIsRefusedWhereItCannotBeMeant(t *testing.T) {
	noop := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		fn   func(ctx context.Context, n int) error
		says string
		is   func(t *testing.T, err error)
	}{
		"compensations": {func(ctx context.Context, n int) error {
			if err := durable.Compensate(ctx, "refund", noop); err != nil {
				return err
			}
			return durable.Continue(ctx, n+1)
		}, "refund", refusal},
		"compensations behind it": {func(ctx context.Context, n int) error {
			err := durable.Continue(ctx, n+1)
			return errors.Join(err, durable.Compensate(ctx, "refund", noop))
		}, "refund", refusal},
		"a branch": {func(ctx context.Context, n int) error {
			_, err := durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return 0, durable.Continue(ctx, n+1) }).Wait(ctx)
			return err
		}, "called in b", nil},
		"an item": {func(ctx context.Context, n int) error {
			_, err := durable.Map(ctx, "m", []int{1}, durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) { return 0, durable.Continue(ctx, n+1) })
			return err
		}, "called in m[0]", nil},
		"a body": {func(ctx context.Context, n int) error {
			return durable.Do(ctx, "s", func(ctx context.Context) error { return durable.Continue(ctx, n+1) })
		}, "in the body of s", func(t *testing.T, err error) { require.ErrorIs(t, err, durable.ErrNested) }},
		"another type": {func(ctx context.Context, n int) error { return durable.Continue(ctx, "n") }, "takes an input of type int, not string",
			func(t *testing.T, err error) { require.ErrorIs(t, err, durable.ErrInvalid) }},
		"its result": {func(ctx context.Context, n int) error { _ = durable.Continue(ctx, n+1); return nil }, "not returned", refusal},
		"another error": {func(ctx context.Context, n int) error {
			return fmt.Errorf("lost: %v", durable.Continue(ctx, n+1)) //nolint:errorlint // that is what is tested
		}, "its error was not returned", nil},
		"a branch nobody waits for": {func(ctx context.Context, n int) error {
			durable.Go(ctx, "b", func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, time.Minute) })
			return durable.Continue(ctx, n+1)
		}, "nobody has waited for b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
					if n > 0 {
						return n, nil
					}
					return n, c.fn(ctx, n)
				})
				w.serve(t, wf)
				_, err := run(t, w, wf, "r", 0)
				require.ErrorIs(t, err, durable.ErrRunFailed)
				require.ErrorContains(t, err, c.says)
				if c.is != nil {
					c.is(t, err)
				}
				require.Zero(t, w.row("r").Generation)
			})
		})
	}
}

func refusal(t *testing.T, err error) {
	var refused *misuse.ContinueError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "r", refused.RunID)
}

func TestContinueOutsideARunAndWithWhatCannotBeKeptIsRefused(t *testing.T) {
	require.ErrorIs(t, durable.Continue(context.Background(), 1), durable.ErrOutsideRun)
	inWorld(t, func(t *testing.T, w *world) {
		type odd struct{ C chan int }
		wf := durable.Define("w", func(ctx context.Context, in *odd) (int, error) {
			err := durable.Continue(ctx, &odd{C: make(chan int)})
			var encode *durable.EncodeError
			require.ErrorAs(t, err, &encode)
			return 1, nil
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", nil)
		require.NoError(t, err, "what was refused may be gone on without")
	})
}

// atContinue calls f just before the change that continues the run is committed.
func (w *world) atContinue(f func()) {
	var once sync.Once
	w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
		if slices.ContainsFunc(batch, func(c store.Change) bool {
			return slices.ContainsFunc(c.Events, func(e store.Event) bool { return e.Type == store.WorkflowContinued })
		}) {
			once.Do(f)
		}
		return forward()
	})
}

func TestACancelWinsOverContinue(t *testing.T) {
	for _, leftover := range []bool{false, true} {
		t.Run(fmt.Sprintf("leftover=%v", leftover), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
					if leftover {
						quick := durable.Go(ctx, "quick", func(context.Context) (int, error) { return 1, nil })
						slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) { return durable.Await[int](ctx, "never") })
						if _, _, err := durable.First(ctx, "race", quick, slow); err != nil {
							return 0, err
						}
					}
					return n, durable.Continue(ctx, n+1)
				})
				w.serve(t, wf)
				other := w.data.Handle()
				w.atContinue(func() {
					errs := other.Commit(context.Background(), []store.Change{{Send: []store.Message{{To: "r", Kind: store.KindCancel, ID: "cancel", Data: []byte(`{"reason":"enough"}`)}}}})
					require.NoError(t, errs[0])
				})
				_, err := run(t, w, wf, "r", 0)
				require.ErrorIs(t, err, durable.ErrRunCancelled)
				require.ErrorContains(t, err, "enough")
				require.Zero(t, w.row("r").Generation)
			})
		})
	}
}

func TestChildrenLeftBehindByAGenerationAreCancelledUnlessAbandoned(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, time.Hour) })
		quick := durable.Define("quick", func(ctx context.Context, n int) (int, error) { return n, nil })
		both := durable.Define("both", func(ctx context.Context, n int) (string, error) {
			v, err := quick.Run(ctx, durable.AutoID, n)
			if err != nil || v != n {
				return "", fmt.Errorf("got %d: %w", v, err)
			}
			if n == 1 {
				_, err := quick.Run(ctx, "mine", 0)
				return fmt.Sprint(err), nil
			}
			if _, err := quick.Run(ctx, "mine", 0); err != nil {
				return "", err
			}
			if _, err := kid.Start(ctx, "dropped", 0); err != nil {
				return "", err
			}
			if _, err := kid.Start(ctx, "kept", 0, durable.Abandon()); err != nil {
				return "", err
			}
			return "", durable.Continue(ctx, n+1)
		})
		w.serve(t, both, kid, quick)
		out, err := run(t, w, both, "r", 0)
		require.NoError(t, err)
		require.Contains(t, out, "mine", "an explicit id of an earlier generation is in use")
		require.Equal(t, store.Completed, w.row("r/quick~b1").Status)
		w.eventually("dropped", store.Cancelled)
		pass(time.Hour)
		require.Equal(t, store.Completed, w.row("kept").Status)
	})
}

// A parent that starts children and does not wait for them must not carry their
// outcomes from generation to generation.
func TestOutcomesOfChildrenNobodyWaitedForAreNotCarried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		quick := durable.Define("quick", func(ctx context.Context, n int) (int, error) { return n, nil })
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if _, err := quick.Start(ctx, durable.AutoID, n); err != nil {
				return 0, err
			}
			if err := durable.Sleep(ctx, time.Minute); err != nil || n == 2 {
				return n, err
			}
			return n, durable.Continue(ctx, n+1)
		})
		w.serve(t, wf, quick)
		start(t, w, wf, "r", 0)
		pass(time.Second) // the child is the first to tell something
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "nobody", 1))
		w.eventually("r", store.Completed)
		require.EqualValues(t, 4, w.row("r").Inbox)
		for ev, err := range w.eng.History(w.ctx(), "r") {
			require.NoError(t, err)
			require.Contains(t, string(ev.Data), `"inbox":3,"pending":[2]`, "the signal is carried, and nothing else")
			break
		}
	})
}

func TestABranchThatFirstLeftBehindEndsBeforeTheNextGenerationBegins(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var did []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			did = append(did, s)
		}
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if n == 1 {
				note("second")
				return durable.Await[int](ctx, "n")
			}
			slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) {
				err := durable.Do(ctx, "body", func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(time.Minute) // it takes its time
					note(fmt.Sprint("left: ", context.Cause(ctx)))
					return nil
				})
				return 0, err
			})
			waits := durable.Go(ctx, "waits", func(ctx context.Context) (int, error) { return durable.Await[int](ctx, "n") })
			quick := durable.Go(ctx, "quick", func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, time.Second) })
			if _, _, err := durable.First(ctx, "race", slow, waits, quick); err != nil {
				return 0, err
			}
			return 0, durable.Continue(ctx, n+1)
		})
		w.serve(t, wf)
		h := start(t, w, wf, "r", 0)
		pass(10 * time.Second)
		// The branch that waited for it has been stopped: it is for the next
		// generation.
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "n", 7))
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 7, out)
		require.Equal(t, []string{"left: durable: the run continues with a new input", "second"}, did)
		require.NotContains(t, strings.Join(tell(t, operate.On(w.eng).HistoryOf(w.ctx(), "r", 0)), "\n"), "slow/body")
	})
}

func TestARunThatContinuesAndIsKilledAtAnyWriteEndsAsIfItHadNotBeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		define := func(j *journal) []durable.Definition {
			kid := durable.Define("kid", func(ctx context.Context, n int) (int, error) {
				return durable.Step(ctx, "double", func(ctx context.Context) (int, error) { j.add(ctx); return 2 * n, nil })
			})
			// The keys of a log are checked to have one outcome each, so each
			// generation has names of its own.
			parent := durable.Define("parent", func(ctx context.Context, n int) (string, error) {
				_, err := durable.Retry(ctx, fmt.Sprint("try ", n), durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(ctx context.Context) (int, error) {
					if j.add(ctx).Number == 1 {
						return 0, errors.New("once more")
					}
					return n, nil
				})
				if err != nil {
					return "", err
				}
				if err := durable.Sleep(ctx, time.Minute); err != nil {
					return "", err
				}
				v, err := kid.Run(ctx, durable.AutoID, n)
				if err != nil || v != 2*n {
					return "", fmt.Errorf("got %d: %w", v, err)
				}
				if n == 9 {
					return fmt.Sprint("at ", n), nil
				}
				return "", durable.Continue(ctx, n+1)
			})
			return []durable.Definition{parent, kid}
		}
		want, clean, writes := livesOf(t, durable.Options{}, define, nil)
		require.Equal(t, "at 9, <nil>", want)
		for at := 1; at <= writes; at++ {
			for _, after := range []bool{false, true} {
				got, j, _ := livesOf(t, durable.Options{}, define, []death{{at, after}})
				require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
				require.Len(t, j.times(), len(clean.times()))
				for body, n := range j.times() {
					require.LessOrEqual(t, n, 2, "body %s, killed once at write %d, after=%v", body, at, after)
				}
			}
		}
		for stride := 1; stride <= 3; stride++ {
			var deaths []death
			for i := range 14 {
				deaths = append(deaths, death{at: 2 + i%(stride+1), after: i%2 == 0})
			}
			got, j, _ := livesOf(t, durable.Options{}, define, deaths)
			require.Equal(t, want, got, "stride %d", stride)
			require.Len(t, j.times(), len(clean.times()))
		}
		t.Logf("%d writes", writes)
	})
}

// Signals are sent by the run itself, so that they come at the same writes in
// every life; one branch of each generation is left behind, waiting for them.
func TestSignalsCarriedByARunThatIsKilledAtAnyWriteAreTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		define := func(j *journal) []durable.Definition {
			return []durable.Definition{durable.Define("relay", func(ctx context.Context, n int) (string, error) {
				send := fmt.Sprint("send ", n)
				err := durable.Do(ctx, send, func(ctx context.Context) error {
					j.add(ctx)
					for i := range 2 {
						id := fmt.Sprint(n, ".", i)
						if err := durable.Signal(ctx, "r", "note", id, durable.SignalID(id)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return "", err
				}
				got, err := durable.Await[string](ctx, "note")
				if err != nil {
					return "", err
				}
				left := durable.Go(ctx, fmt.Sprint("left ", n), func(ctx context.Context) (int, error) { return durable.Await[int](ctx, "never") })
				quick := durable.Go(ctx, fmt.Sprint("quick ", n), func(ctx context.Context) (int, error) { return 0, durable.Sleep(ctx, time.Minute) })
				if _, _, err := durable.First(ctx, "race", left, quick); err != nil {
					return "", err
				}
				// Two are sent in a generation and one is taken: 7.0, 7.1, 8.0, 8.1.
				want := []string{"7.0", "7.1", "8.0", "8.1"}[n-7]
				if got != want {
					return "", durable.Permanent(fmt.Errorf("took %s, not %s", got, want))
				}
				if n == 10 {
					return "all", nil
				}
				return "", durable.Continue(ctx, n+1)
			})}
		}
		want, clean, writes := livesOf(t, durable.Options{}, define, nil)
		require.Equal(t, "all, <nil>", want)
		for at := 1; at <= writes; at++ {
			for _, after := range []bool{false, true} {
				got, j, _ := livesOf(t, durable.Options{}, define, []death{{at, after}})
				require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
				require.Len(t, j.times(), len(clean.times()))
			}
		}
		t.Logf("%d writes", writes)
	})
}

func TestStrikesOfAnEarlierGenerationDoNotCount(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if n == 1 {
				return n, durable.Do(ctx, "second", h.body)
			}
			if err := durable.Do(ctx, "first", h.body); err != nil {
				return 0, err
			}
			h.runs = nil
			return 0, durable.Continue(ctx, n+1)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.reboot(t, with(wf))
		synctest.Wait()
		require.EqualValues(t, 1, w.row("r").Generation)
		w.reboot(t, with(wf))
		synctest.Wait()
		require.EqualValues(t, 1, w.row("r").Strikes, "one process has died in this generation")
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
	})
}

// tally counts the events that are read.
type tally struct {
	store.Store
	mu     sync.Mutex
	events int   // that were yielded
	span   int64 // how many a backend that reads and filters had to read
	mail   int
}

func (c *tally) Load(ctx context.Context, id string, cur store.Cursor) (*store.History, error) {
	h, err := c.Store.Load(ctx, id, cur)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.mail += len(h.Inbox)
	if !cur.NoEvents {
		c.span += h.Run.Last.Seq - cur.After
	}
	c.mu.Unlock()
	events := h.Events
	h.Events = func(yield func(store.Event, error) bool) {
		for e, err := range events {
			c.mu.Lock()
			c.events++
			c.mu.Unlock()
			if !yield(e, err) {
				return
			}
		}
	}
	return h, nil
}

func TestAThousandGenerationsKeepEachLoadShort(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const last = 1000
		var h hold
		wf := durable.Define("loop", func(ctx context.Context, n int) (int, error) {
			if _, err := durable.Await[int](ctx, "tick"); err != nil {
				return 0, err
			}
			if err := durable.Do(ctx, "work", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			if n == last {
				return n, durable.Do(ctx, "hold", h.body)
			}
			return n, durable.Continue(ctx, n+1)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		for range last + 1 {
			require.NoError(t, w.eng.Signal(w.ctx(), "r", "tick", 1))
			synctest.Wait()
		}
		require.EqualValues(t, last, w.row("r").Generation)
		w.crash()
		w.expire()
		c := &tally{Store: w.data.Handle()}
		eng, err := durable.Open(context.Background(), c, durable.Options{Workflows: []durable.Definition{wf}, Grace: -1})
		require.NoError(t, err)
		defer eng.Close()
		ctx := durable.NewContext(context.Background(), eng)
		_, err = durable.Recover(ctx)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, store.Completed, w.row("r").Status)
		require.EqualValues(t, 5, c.span)
		require.Equal(t, 5, c.events, "workflow_started, wait_requested, signal_received, step_completed, run_resumed")
		require.Equal(t, 1, c.mail, "of a thousand messages the one that came in this generation")
		require.Greater(t, len(w.wholeLog("r")), 5*last, "and the whole log is there")
	})
}

func TestAWatcherFollowsARunThroughItsGenerations(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if err := durable.Sleep(ctx, time.Minute); err != nil || n == 3 {
				return n, err
			}
			return n, durable.Continue(ctx, n+1)
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		var seen []int64
		after := int64(0)
		for over := false; !over; {
			ctx, stop := context.WithTimeout(context.Background(), 50*time.Second)
			for ev, err := range w.eng.Watch(ctx, "r", after) {
				require.NoError(t, err)
				seen, after = append(seen, ev.Seq), ev.Seq
			}
			over = ctx.Err() == nil
			stop()
		}
		log := w.wholeLog("r")
		require.Len(t, seen, len(log))
		for i, seq := range seen {
			require.EqualValues(t, i+1, seq, "each event once, in order, of all generations")
		}
		require.Equal(t, []string{"workflow_continued", "workflow_started", "timer_set sleep"}, tell(t, func(yield func(store.Event, error) bool) {
			n := 0
			for ev, err := range w.eng.Watch(context.Background(), "r", 4) {
				if n++; n > 3 || !yield(ev, err) {
					return
				}
			}
		}))
	})
}

func TestAChangedBeginningOfAGenerationIsFound(t *testing.T) {
	for name, edit := range map[string]func(e *store.Event){
		"nothing":          func(e *store.Event) {},
		"its time":         func(e *store.Event) { e.At++ },
		"its executor":     func(e *store.Event) { e.Data = []byte(strings.Replace(string(e.Data), `"ex-`, `"EX-`, 1)) },
		"its input":        func(e *store.Event) { e.Payload = slices.Concat(e.Payload[:len(e.Payload)-1], []byte("7")) },
		"its data":         func(e *store.Event) { e.Data = []byte(strings.Replace(string(e.Data), `"seed":"`, `"seed":"0`, 1)) },
		"unreadable":       func(e *store.Event) { e.Data = []byte("{") },
		"no first event":   func(e *store.Event) { e.Data = nil },
		"the sum it keeps": func(e *store.Event) { e.Data = []byte(strings.Replace(string(e.Data), `"sum":`, `"sum":1`, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := countdown(nothing)
				w.serve(t, wf)
				_, err := run(t, w, wf, "r", 1)
				require.NoError(t, err)
				w.remake("r", edit)
				w.boot(t, with(wf))
				synctest.Wait()
				row := w.row("r")
				if name == "nothing" {
					require.Equal(t, store.Completed, row.Status)
					return
				}
				require.Equal(t, durable.CodeDamaged, row.Code, "%+v", row)
			})
		})
	}
}

// remake makes a run of two generations again from its events, as one that is
// interrupted, with the beginning of the second one changed.
func (w *world) remake(id string, edit func(e *store.Event)) {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{NoEvents: true})
	require.NoError(w.t, err)
	events := w.wholeLog(id)
	events = events[:len(events)-1] // its end
	for i := range events {
		if events[i].Branch == 1 {
			edit(&events[i])
			break
		}
	}
	row := h.Run
	row.Status, row.Owner, row.Epoch, row.EndedAt, row.Last = store.Interrupted, "", row.Epoch+100, 0, nil
	_, err = w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{id}, Force: true})
	require.NoError(w.t, err)
	errs := w.data.Commit(context.Background(), []store.Change{{
		RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: events, Branch: &h.Branches[0],
	}})
	require.NoError(w.t, errs[0])
}

func TestAShutdownInTheMomentOfContinuingLosesNothing(t *testing.T) {
	for _, policy := range []durable.BootPolicy{durable.ResumeOnBoot, durable.FailOnBoot} {
		inWorld(t, func(t *testing.T, w *world) {
			var h hold
			h.open = true
			n := 0
			wf := durable.Define("w", func(ctx context.Context, g int) (int, error) {
				if g == 1 {
					n++
					return g, durable.Do(ctx, "second", h.body)
				}
				return g, durable.Continue(ctx, g+1)
			}, durable.OnBoot(policy))
			w.boot(t, with(wf))
			eng, closed := w.eng, make(chan error, 1)
			w.atContinue(func() {
				go func() { closed <- eng.Close() }()
				time.Sleep(time.Millisecond)
			})
			start(t, w, wf, "r", 0)
			require.NoError(t, <-closed)
			row := w.row("r")
			require.Equal(t, store.Interrupted, row.Status)
			require.EqualValues(t, 1, row.Generation)
			require.Zero(t, n, "nothing of the next generation began")
			w.boot(t, with(wf))
			if policy == durable.FailOnBoot {
				require.Equal(t, durable.CodeShutdown, row.Code)
				require.NoError(t, resume(w.eng, w.ctx(), "r"))
			}
			out, err := wait(t, w, wf, "r")
			require.NoError(t, err)
			require.Equal(t, 1, out)
		})
	}
}

func TestTheFormOfALaterGenerationIsKnown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			err := durable.Do(ctx, fmt.Sprint("step ", n), func(context.Context) error { return nil })
			if err != nil || n == 1 {
				return n, err
			}
			return n, durable.Continue(ctx, n+1)
		}, durable.Steps("a", "b"))
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		f, err := operate.On(w.eng).Form(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, f.Declared)
		require.Equal(t, []string{"step 1"}, f.Observed)
	})
}
