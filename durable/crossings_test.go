package durable_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A write that comes to be due while the store is silent about another run's is
// sent beside that one, whatever it had to wait for itself: the write before it, or
// the pause after a failure.
func TestASilentCommitHoldsUpNoWriteThatComesToBeDueLater(t *testing.T) {
	t.Run("behind a slow commit of its own run", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			began := time.Now()
			durably := make(chan time.Duration, 1)
			release := make(chan struct{})
			both := durable.Define("both", func(ctx context.Context, _ int) (int, error) {
				g := durable.NewGroup(ctx)
				g.Go("one", func(ctx context.Context) error {
					return errors.Join(
						durable.Do(ctx, "slow", func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil }),
						durable.Do(ctx, "long", func(context.Context) error { <-release; return nil }))
				})
				g.Go("two", func(ctx context.Context) error {
					err := durable.Do(ctx, "behind", func(context.Context) error { time.Sleep(500 * time.Millisecond); return nil })
					durably <- time.Since(began)
					return err
				})
				return 0, g.Wait()
			})
			silent := durable.Define("silent", func(ctx context.Context, _ int) (int, error) {
				return 0, durable.Do(ctx, "s", func(context.Context) error { time.Sleep(700 * time.Millisecond); return nil })
			})
			w.boot(t, with(both, silent))
			w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
				for _, c := range batch {
					for _, e := range c.Events {
						switch {
						case c.RunID == "silent" && e.Key == "s":
							<-release
						case e.Key == "one/slow":
							time.Sleep(3 * time.Second)
						}
					}
				}
				return forward()
			})
			start(t, w, silent, "silent", 0)
			start(t, w, both, "both", 0)
			pass(10 * time.Minute)
			close(release)
			require.Less(t, <-durably, 10*time.Second)
			w.eventually("both", store.Completed)
			w.eventually("silent", store.Completed)
		})
	})
	t.Run("after the store was gone", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			began := time.Now()
			release := make(chan struct{})
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "s", one) })
			w.boot(t, with(wf))
			w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
				for _, c := range batch {
					switch {
					case c.Create != nil:
					case c.RunID == "silent":
						<-release
					case time.Since(began) < 2500*time.Millisecond:
						return all(batch, errDisk)
					}
				}
				return forward()
			})
			start(t, w, wf, "r", 0)
			pass(2 * time.Second)
			start(t, w, wf, "silent", 0)
			pass(10 * time.Minute)
			row := w.row("r")
			close(release)
			require.Equal(t, store.Completed, row.Status)
			require.Less(t, row.EndedAt.Time().Sub(began), 10*time.Second)
			w.eventually("silent", store.Completed)
		})
	})
}

// What an engine reads of a waiting run to go on with it may be answered when
// another executor has had the run and this one has it again: the late answer
// changes nothing about that.
func TestALateAnswerDoesNotStrandARunThatWasTakenBack(t *testing.T) {
	for name, early := range map[string]bool{"an answer of before": true, "an answer of now": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if err := durable.Sleep(ctx, time.Hour); err != nil {
						return 0, err
					}
					if _, err := durable.Await[int](ctx, "x"); err != nil {
						return 0, err
					}
					return 0, durable.Sleep(ctx, time.Hour)
				})
				o := durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: time.Second}
				w.boot(t, o)
				first := w.eng
				var asleep, held atomic.Bool
				release := make(chan struct{})
				w.disk.tamperCalls(func(call string, forward func() error) error {
					switch {
					case asleep.Load() && call == "beat":
						return errors.New("asleep")
					case asleep.Load() && call == "load" && held.CompareAndSwap(false, true):
						var err error
						if early {
							err = forward()
						}
						<-release
						if !early {
							err = forward()
						}
						return err
					}
					return forward()
				})
				start(t, w, wf, "r", 0)
				pass(30 * time.Minute)
				asleep.Store(true)
				synctest.Wait()
				w.boot(t, o) // another one, which takes it when it is due
				pass(31 * time.Minute)
				require.True(t, held.Load())
				require.Equal(t, w.eng.ID(), w.row("r").Owner)
				asleep.Store(false)
				pass(time.Minute)
				require.NoError(t, w.eng.Close())
				require.NoError(t, durable.Signal(durable.NewContext(t.Context(), first), "r", "x", 1))
				pass(10 * time.Minute)
				row := w.row("r")
				require.Equal(t, first.ID(), row.Owner)
				require.Equal(t, store.Waiting, row.Status)
				close(release)
				pass(time.Hour)
				require.Equal(t, store.Completed, w.row("r").Status)
				require.Empty(t, w.log.find("did not execute"))
			})
		})
	}
}

// An answer that was lost stays unknown when the store is closed before it can be
// asked again.
func TestAStartWhoseStoreIsClosedBeforeItIsAskedAgainIsUnknown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, nil })
		w.boot(t, with(wf))
		sent := false
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if sent {
				return all(batch, store.ErrClosed)
			}
			sent = true
			forward()
			return all(batch, store.ErrUnknown)
		})
		_, err := wf.Start(w.ctx(), "r", 0)
		require.ErrorIs(t, err, durable.ErrClosed)
		require.ErrorIs(t, err, store.ErrUnknown)
		require.ErrorContains(t, err, "start it again with the same id")
		require.Equal(t, store.Running, w.row("r").Status)
	})
}

// slowResume is a store that answers a claim of one run by its id only once it is
// released.
type slowResume struct {
	store.Store
	release chan struct{}
}

func (s *slowResume) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if len(c.IDs) == 1 {
		<-s.release
	}
	return s.Store.Claim(ctx, c)
}

// A call whose claim comes too late for its engine returns, and what it has made
// claimable goes on elsewhere.
func TestAResumeThatMeetsCloseReturns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var fixed atomic.Bool
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "s", func(ctx context.Context) (int, error) {
				if !fixed.Load() {
					return failing(ctx)
				}
				return 1, nil
			})
		})
		st := &slowResume{Store: w.data.Handle(), release: make(chan struct{})}
		w.eng = openOn(t, w, st, wf)
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		eng := w.eng
		got := make(chan error, 1)
		go func() {
			_, err := operate.On(eng).Resume(context.Background(), "r", operate.ResumeOptions{})
			got <- err
		}()
		pass(time.Second)
		require.Equal(t, store.Interrupted, w.row("r").Status)
		require.NoError(t, eng.Close())
		close(st.release)
		select {
		case err := <-got:
			require.ErrorIs(t, err, durable.ErrClosed)
		case <-time.After(time.Hour):
			t.Fatal("it does not return")
		}
		fixed.Store(true)
		w.boot(t, with(wf))
		w.eventually("r", store.Completed)
	})
}

// lingering is a handler of log lines that holds up one of them.
type lingering struct {
	*logBook
	at      string
	reached chan struct{}
	release chan struct{}
}

func (l *lingering) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == l.at {
		close(l.reached)
		<-l.release
	}
	return l.logBook.Handle(ctx, r)
}

// The id of a run is free as soon as the run is deleted, also where the execution
// that has ended it has still something to say.
func TestARunIsStartedAgainWhileItsLastExecutionMakesWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) { return n, nil })
		l := &lingering{logBook: w.log, at: "durable: run completed", reached: make(chan struct{}), release: make(chan struct{})}
		w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(l)})
		start(t, w, wf, "r", 1)
		<-l.reached
		l.at = ""
		_, err := w.data.Delete(t.Context(), store.Deletion{RunIDs: []string{"r"}})
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { close(l.release) })
		out, err := run(t, w, wf, "r", 2)
		require.NoError(t, err)
		require.Equal(t, 2, out)
	})
}

// The end of the context ends the wait of a Start also where nobody else is about to
// commit, and the store says nothing.
func TestAStartWhoseCallerLeavesASilentStoreIsExecuted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "s", one) })
		w.serve(t, wf)
		release := make(chan struct{})
		w.disk.tamper(func(_ []store.Change, forward func() []error) []error { <-release; return forward() })
		time.AfterFunc(time.Minute, func() { close(release) })
		began := time.Now()
		ctx, cancel := context.WithTimeout(w.ctx(), time.Second)
		defer cancel()
		_, err := wf.Start(ctx, "r", 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		pass(time.Minute)
		w.eventually("r", store.Completed)
	})
}

// A parent that was lost and taken back starts its child while this engine still has
// the first execution's start of that child, which the store has not answered: the
// child is executed, and not left with an owner that does not know it.
func TestAChildIsNotOwnedByAnEngineThatOnlyTriesToStartIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) { return durable.Step(ctx, "work", one) })
		family := durable.Define("family", func(ctx context.Context, _ int) (int, error) {
			one := durable.Go(ctx, "one", func(ctx context.Context) (int, error) { return kid.Run(ctx, durable.AutoID, 0) })
			return one.Wait(ctx)
		})
		o := durable.Options{Workflows: []durable.Definition{kid, family}}
		bearing := func(batch []store.Change) bool {
			return slices.ContainsFunc(batch, func(c store.Change) bool { return len(c.Start) > 0 })
		}
		w.boot(t, o)
		first := w.eng
		var asleep, held atomic.Bool
		release := make(chan struct{})
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if bearing(batch) && held.CompareAndSwap(false, true) {
				<-release
			}
			return forward()
		})
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if asleep.Load() && call == "beat" {
				return errDisk
			}
			return forward()
		})
		asleep.Store(true)
		start(t, w, family, "f", 0)
		synctest.Wait()
		require.True(t, held.Load())
		w.expire()

		w.open(t, o) // it takes the parent, and is killed before it has started the child
		second := w.disk
		second.tamper(func(batch []store.Change, forward func() []error) []error {
			if bearing(batch) {
				second.cut()
				return all(batch, store.ErrClosed)
			}
			return forward()
		})
		_, _ = w.eng.Recover(w.ctx())
		synctest.Wait()
		require.Equal(t, w.eng.ID(), w.row("f").Owner)
		w.crash()
		asleep.Store(false)
		w.expire()
		pass(2 * w.lease)

		require.Equal(t, first.ID(), w.row("f").Owner)
		w.row("f/one/kid") // it was started
		close(release)
		w.eventually("f", store.Completed)
		require.Equal(t, store.Completed, w.row("f/one/kid").Status)
		require.Empty(t, w.log.find("did not execute"))
	})
}
