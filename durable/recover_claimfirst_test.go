package durable_test

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A run whose timer has fired, and whose row still says that it waits, is due and belongs to nobody,
// contradicts its events. However long the listings take, it is repaired, as its policy says, before anything claims it because it is due.
func TestADueRunThatContradictsItsEventsIsRepairedBeforeItIsClaimed(t *testing.T) {
	for _, policy := range []durable.BootPolicy{durable.ResumeOnBoot, durable.FailOnBoot, durable.LeaveOnBoot} {
		inWorld(t, func(t *testing.T, w *world) {
			bodies := 0
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				if err := durable.Sleep(ctx, time.Second); err != nil {
					return 0, err
				}
				for range 2 {
					if err := durable.Do(ctx, "s", func(ctx context.Context) error {
						if bodies++; bodies == 2 {
							<-ctx.Done()
							return ctx.Err()
						}
						return nil
					}); err != nil {
						return 0, err
					}
				}
				return 1, nil
			}, durable.OnBoot(policy))
			w.serve(t, wf)
			start(t, w, wf, "r", 0)
			pass(time.Minute)
			require.Equal(t, 2, bodies)
			w.crash()
			w.expire()
			wake := w.row("r").CreatedAt.Add(time.Second)
			row := w.row("r")
			ev := store.Event{Type: store.AttributesSet, Seq: row.Last.Seq + 1, At: row.Last.At, Steps: row.Last.Steps, Active: row.Last.Active}
			ev.Sum = store.Seal("r", row.Last.Sum, &ev)
			errs := w.data.Commit(context.Background(), []store.Change{{
				RunID: "r", Expect: store.Expect{Epoch: row.Epoch}, Events: []store.Event{ev}, Yield: true,
				Row: &store.RowPatch{Status: new(store.Waiting), WakeAt: &wake},
			}})
			require.NoError(t, errs[0])
			require.Empty(t, w.row("r").Owner)
			w.open(t, with(wf))
			w.disk.tamperCalls(func(call string, forward func() error) error {
				if call == "list" {
					time.Sleep(time.Second)
				}
				return forward()
			})
			rep, err := w.eng.Recover(context.Background())
			require.NoError(t, err)
			require.Len(t, rep.Repaired, 1)
			require.Equal(t, durable.CodeA1, rep.Repaired[0].Code)
			pass(time.Second)
			row = w.row("r")
			require.EqualValues(t, 1, row.Branch)
			switch policy {
			case durable.FailOnBoot:
				require.Equal(t, store.Failed, row.Status)
				require.Equal(t, []string{"r"}, rep.Failed)
			case durable.LeaveOnBoot:
				require.Equal(t, store.Interrupted, row.Status)
				require.Equal(t, []string{"r"}, rep.Left)
			default:
				require.Equal(t, []string{"r"}, rep.Resumed)
				w.eventually("r", store.Completed)
			}
		})
	}
}

// slowKinds is a store that tells the kinds of its runs only when it is let.
type slowKinds struct {
	*disk
	let chan struct{}
}

func (s *slowKinds) RunKinds(ctx context.Context) ([]store.RunKind, error) {
	select {
	case <-s.let:
		return s.disk.RunKinds(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stranded is a world with a run that nobody serves, one that is due, and a process whose store is slow
// to tell about the first.
func stranded(t *testing.T, w *world) (*slowKinds, *durable.Engine) {
	t.Helper()
	other := durable.Define("other", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "never") })
	nap := durable.Define("nap", func(ctx context.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, time.Second) })
	w.serve(t, other, nap)
	start(t, w, other, "lost", 0)
	start(t, w, nap, "due", 0)
	w.eventually("lost", store.Waiting)
	w.eventually("due", store.Waiting)
	w.crash()
	w.expire()
	s := &slowKinds{disk: &disk{Store: w.data.Handle()}, let: make(chan struct{})}
	eng, err := durable.Open(context.Background(), s, durable.Options{Workflows: []durable.Definition{nap}, Logger: slog.New(w.log), Grace: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	return s, eng
}

func TestRecoverDoesNotWaitLongToKnowWhatIsStuckAndTheLogSaysItLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s, eng := stranded(t, w)
		ctx, cancel := context.WithCancel(context.Background())
		began := time.Now()
		rep, err := eng.Recover(ctx)
		cancel() // which ends nothing that is under way
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.True(t, rep.Partial)
		require.Empty(t, rep.Stuck)
		require.Equal(t, store.Completed, w.row("due").Status, "it did not wait for that")
		require.Empty(t, w.log.find("Recovery complete:"))
		close(s.let)
		pass(time.Second)
		require.Empty(t, rep.Stuck, "a report does not change any more")
		require.Len(t, w.log.find("Recovery complete:"), 1)
		require.Contains(t, w.log.find("Recovery complete:")[0], "stuck=1")
		again, err := eng.Recover(context.Background())
		require.NoError(t, err)
		require.False(t, again.Partial)
		require.Equal(t, []string{"lost"}, []string{again.Stuck[0].RunID})
	})
}

func TestTheLookOfRecoverEndsWithItsContextAndWithTheEngine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, eng := stranded(t, w)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := eng.Recover(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.AfterFunc(time.Second, func() { _ = eng.Close() })
		_, err = eng.Recover(context.Background())
		require.ErrorIs(t, err, durable.ErrClosed)
		require.Empty(t, w.log.find("Recovery complete:"))
	})
}

// unlisted is a store that lists what waits only when it is let, unless it is asked for certain runs.
type unlisted struct {
	*disk
	let chan struct{}
}

func (s *unlisted) List(ctx context.Context, f store.Filter) (store.Page, error) {
	if len(f.IDs) == 0 && slices.Contains(f.Statuses, store.Waiting) && len(f.Codes) == 0 {
		select {
		case <-s.let:
		case <-ctx.Done():
			return store.Page{}, ctx.Err()
		}
	}
	return s.disk.List(ctx, f)
}

func TestWhatIsDueDoesNotWaitUntilAllThatWaitsWasLookedAt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var bodies atomic.Int64
		nap := durable.Define("nap", func(ctx context.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, time.Second) })
		cut := durable.Define("cut", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Sleep(ctx, time.Second); err != nil {
				return 0, err
			}
			for range 2 {
				if err := durable.Do(ctx, "s", func(ctx context.Context) error {
					if bodies.Add(1) == 2 {
						<-ctx.Done()
					}
					return ctx.Err()
				}); err != nil {
					return 0, err
				}
			}
			return 1, nil
		})
		w.serve(t, nap, cut)
		start(t, w, cut, "torn", 0)
		pass(time.Minute)
		require.EqualValues(t, 2, bodies.Load())
		start(t, w, nap, "sound", 0)
		start(t, w, nap, "noted", 0)
		w.eventually("sound", store.Waiting)
		w.eventually("noted", store.Waiting)
		w.crash()
		w.expire()
		note := func(id string, patch *store.RowPatch) {
			row := w.row(id)
			ev := store.Event{Type: store.AttributesSet, Seq: row.Last.Seq + 1, At: row.Last.At, Steps: row.Last.Steps, Active: row.Last.Active}
			ev.Sum = store.Seal(id, row.Last.Sum, &ev)
			errs := w.data.Commit(context.Background(), []store.Change{{RunID: id, Expect: store.Expect{Epoch: row.Epoch}, Events: []store.Event{ev}, Yield: true, Row: patch}})
			require.NoError(t, errs[0])
		}
		wake := w.row("torn").CreatedAt
		note("torn", &store.RowPatch{Status: new(store.Waiting), WakeAt: &wake})
		note("noted", &store.RowPatch{Status: new(store.Waiting), WakeAt: &wake})
		s := &unlisted{disk: &disk{Store: w.data.Handle()}, let: make(chan struct{})}
		eng, err := durable.Open(context.Background(), s, durable.Options{Workflows: []durable.Definition{nap, cut}, Logger: slog.New(w.log), Grace: -1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, eng.Close()) })
		began := time.Now()
		seen := map[string]store.Run{}
		time.AfterFunc(time.Second, func() {
			for _, id := range []string{"sound", "noted", "torn"} {
				seen[id] = w.row(id)
			}
			close(s.let)
		})
		rep, err := eng.Recover(context.Background())
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(began))
		for id, row := range seen {
			require.Equal(t, store.Completed, row.Status, id)
		}
		require.EqualValues(t, 1, seen["torn"].Branch, "it was repaired first")
		require.Zero(t, seen["noted"].Branch)
		require.False(t, rep.Partial)
		require.Len(t, rep.Repaired, 1)
		require.Equal(t, []string{"torn"}, rep.Resumed)
	})
}
