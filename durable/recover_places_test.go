package durable_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// crowd counts how many bodies are under way.
type crowd struct {
	mu   sync.Mutex
	now  int
	most int
	ran  []string
}

// aSecond is a workflow of one step that takes a second.
func (c *crowd) aSecond(name string, o ...durable.DefineOption) *durable.Workflow[int, int] {
	return durable.Define(name, func(ctx context.Context, in int) (int, error) {
		return in, durable.Do(ctx, "work", func(ctx context.Context) error {
			c.mu.Lock()
			c.now++
			c.most = max(c.most, c.now)
			c.ran = append(c.ran, durable.Attempt(ctx).RunID)
			c.mu.Unlock()
			defer func() {
				c.mu.Lock()
				c.now--
				c.mu.Unlock()
			}()
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}, o...)
}

// leftBehind seeds n runs whose process has died or, every other one, was stopped,
// and returns their ids, oldest first.
func leftBehind(t *testing.T, w *world, n int) []string {
	t.Helper()
	var died, stopped []string
	for i := range n {
		id := fmt.Sprintf("r%04d", i)
		if i%2 == 0 {
			seed(t, w, store.Run{ID: id, Workflow: "w", Version: "1", Status: store.Running, Owner: "gone"}, store.Event{Type: store.WorkflowStarted})
			died = append(died, id)
		} else {
			seed(t, w, store.Run{ID: id, Workflow: "w", Version: "1", Status: store.Interrupted}, store.Event{Type: store.WorkflowStarted}, store.Event{Type: store.WorkflowInterrupted})
			stopped = append(stopped, id)
		}
	}
	return slices.Concat(died, stopped)
}

func TestRecoverContinuesNoMoreRunsAtOnceThanMaxRunsAllows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ids := leftBehind(t, w, 1000)
		var c crowd
		rep := w.boot(t, durable.Options{Workflows: []durable.Definition{c.aSecond("w")}, MaxRuns: 100})
		require.Equal(t, ids[:100], rep.Resumed)
		require.Equal(t, ids[100:], rep.Deferred, "the others are left for later, the dead before the stopped")
		require.Empty(t, rep.Stuck)
		require.Len(t, w.log.find("Recovery complete: 0 workflows marked failed, 0 approvals restored. resumed=100 deferred=900"), 1)

		again, err := w.eng.Recover(t.Context())
		require.NoError(t, err)
		require.Empty(t, again.Resumed, "asking twice makes no room")
		require.ElementsMatch(t, ids[100:], again.Deferred)

		pass(time.Minute)
		require.Equal(t, 100, c.most)
		require.Len(t, c.ran, 1000)
		require.ElementsMatch(t, ids, c.ran, "each ran once")
		require.Len(t, w.log.find("durable: run resumed"), 1000, "each is told of once")
	})
}

// gated is a workflow of one step that waits for the gate, or for its run to be
// interrupted.
func gated(gate chan struct{}, o ...durable.DefineOption) *durable.Workflow[int, int] {
	return durable.Define("w", func(ctx context.Context, in int) (int, error) {
		return in, durable.Do(ctx, "work", func(ctx context.Context) error {
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}, o...)
}

func orphans(t *testing.T, w *world, ids ...string) {
	t.Helper()
	for _, id := range ids {
		seed(t, w, store.Run{ID: id, Workflow: "w", Version: "1", Status: store.Running, Owner: "gone"}, store.Event{Type: store.WorkflowStarted})
	}
}

func TestWhatRecoverHasLeftForLaterIsNotStuck(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		orphans(t, w, "r0", "r1", "r2")
		gate := make(chan struct{})
		rep := w.boot(t, durable.Options{Workflows: []durable.Definition{gated(gate)}, MaxRuns: 1})
		require.Equal(t, []string{"r1", "r2"}, rep.Deferred)
		pass(time.Hour)
		stuck, err := operate.On(w.eng).Stuck(t.Context(), 0)
		require.NoError(t, err)
		require.Empty(t, stuck)
		close(gate)
		pass(time.Minute)
		for _, id := range []string{"r0", "r1", "r2"} {
			require.Equal(t, store.Completed, w.row(id).Status)
		}
	})
}

// The queue of the runs that are left is memory: what dies with it must be found
// by the next recovery, and no run may be suspected for having stood in it.
func TestRunsThatWereLeftForLaterAreFoundAgainHoweverOftenTheProcessDies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		orphans(t, w, "r0", "r1", "r2", "r3")
		o := durable.Options{Workflows: []durable.Definition{gated(make(chan struct{}))}, MaxRuns: 2, QuarantineAfter: 10}
		w.boot(t, o)
		for range 4 {
			rep := w.reboot(t, o)
			require.Len(t, rep.Resumed, 2)
			require.Len(t, rep.Deferred, 2)
		}
		for _, id := range []string{"r2", "r3"} {
			require.Zero(t, w.row(id).Strikes)
			require.Equal(t, []string{"workflow_created", "workflow_started"}, w.story(id))
		}
		var c crowd
		o.Workflows = []durable.Definition{c.aSecond("w")}
		w.reboot(t, o)
		pass(time.Minute)
		require.ElementsMatch(t, []string{"r0", "r1", "r2", "r3"}, c.ran)
	})
}

func TestAnotherExecutorTakesWhatHasNoPlaceHere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		orphans(t, w, "r0", "r1", "r2")
		gate := make(chan struct{})
		rep := w.boot(t, durable.Options{Workflows: []durable.Definition{gated(gate)}, MaxRuns: 1})
		require.Len(t, rep.Deferred, 2)
		var c crowd
		rep = w.boot(t, durable.Options{Workflows: []durable.Definition{c.aSecond("w")}})
		require.Equal(t, []string{"r1", "r2"}, rep.Resumed)
		pass(time.Minute)
		close(gate)
		pass(time.Minute)
		require.ElementsMatch(t, []string{"r1", "r2"}, c.ran)
		for _, id := range []string{"r0", "r1", "r2"} {
			require.Equal(t, store.Completed, w.row(id).Status)
		}
		require.Len(t, w.log.find("durable: run resumed"), 3, "nobody has taken one twice")
	})
}

// The runs of an executor that dies later are continued by the same measure.
func TestATakeoverContinuesNoMoreRunsThanMaxRunsAllows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var c crowd
		long := durable.Options{Workflows: []durable.Definition{c.aSecond("w")}, MaxRuns: 2}
		heir := w.open(t, long)
		_, err := heir.Recover(t.Context())
		require.NoError(t, err)
		dead := gated(make(chan struct{}))
		w.boot(t, durable.Options{Workflows: []durable.Definition{dead}})
		for i := range 10 {
			_, err := dead.Start(w.ctx(), fmt.Sprint("r", i), i)
			require.NoError(t, err)
		}
		synctest.Wait()
		w.crash()
		pass(5 * time.Minute)
		require.Len(t, c.ran, 10)
		require.Equal(t, 2, c.most)
	})
}

// A parent that waits for a child keeps its place if it is never unloaded. Its
// children must not stand in the queue for that place.
func TestAChildIsContinuedBesideAParentThatKeepsItsPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		gate := make(chan struct{})
		hold := func(ctx context.Context) error {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return ctx.Err()
		}
		child := durable.Define("child", func(ctx context.Context, in int) (int, error) {
			return in, durable.Do(ctx, "work", hold)
		})
		parent := durable.Define("parent", func(ctx context.Context, in int) (int, error) {
			beside := durable.Go(ctx, "beside", func(ctx context.Context) (int, error) {
				return 0, durable.Do(ctx, "work", hold)
			})
			out, err := child.Run(ctx, durable.AutoID, in)
			if err != nil {
				return 0, err
			}
			_, err = beside.Wait(ctx)
			return out, err
		}, durable.KeepLoaded())
		o := durable.Options{Workflows: []durable.Definition{child, parent}, MaxRuns: 1}
		w.boot(t, o)
		for i := range 3 {
			_, err := parent.Start(w.ctx(), fmt.Sprint("p", i), i)
			require.NoError(t, err)
		}
		pass(time.Second)
		w.crash()
		w.expire()
		rep := w.boot(t, o)

		require.Len(t, rep.Resumed, 3, "the children")
		require.Len(t, rep.Deferred, 3)
		close(gate) // none may end before the list is made
		pass(time.Minute)
		for i := range 3 {
			require.Equal(t, store.Completed, w.row(fmt.Sprint("p", i)).Status)
		}
	})
}

// A run that waits for a place may end the process of another executor meanwhile.
// What was decided about it is then out of date.
func TestARunThatHasBecomeASuspectIsNotContinuedFromTheQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		orphans(t, w, "r0", "r1")
		gate := make(chan struct{})
		rep := w.boot(t, durable.Options{Workflows: []durable.Definition{gated(gate)}, MaxRuns: 1, QuarantineAfter: 1, Lease: time.Hour})
		require.Equal(t, []string{"r1"}, rep.Deferred)
		rep = w.boot(t, durable.Options{Workflows: []durable.Definition{gated(make(chan struct{}))}, QuarantineAfter: 1, Lease: time.Minute})
		require.Equal(t, []string{"r1"}, rep.Resumed)
		synctest.Wait()
		w.crash()
		w.expire()
		close(gate)
		synctest.Wait()
		require.Equal(t, store.Completed, w.row("r0").Status)
		require.NotEqual(t, store.Completed, w.row("r1").Status)
		pass(time.Hour)
		row := w.row("r1")
		require.Equal(t, store.Failed, row.Status)
		require.Equal(t, durable.CodeQuarantined, row.Code)
	})
}
