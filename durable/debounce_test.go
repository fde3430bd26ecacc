package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// beginnings are what runs began with, and when.
type beginnings struct {
	mu     sync.Mutex
	inputs []int
	at     []time.Time
}

func (b *beginnings) workflow(d time.Duration) *durable.Workflow[int, int] {
	return durable.Define("w", func(ctx context.Context, n int) (int, error) {
		return n, durable.Do(ctx, "body", func(ctx context.Context) error {
			b.mu.Lock()
			b.inputs, b.at = append(b.inputs, n), append(b.at, time.Now())
			b.mu.Unlock()
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
	})
}

func (b *beginnings) all() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]int(nil), b.inputs...)
}

func bounce(t *testing.T, w *world, wf *durable.Workflow[int, int], n int, o ...durable.StartOption) string {
	t.Helper()
	h, err := wf.Start(w.ctx(), durable.AutoID, n, o...)
	require.NoError(t, err)
	return h.ID()
}

func TestStartsThatComeCloseTogetherAreOneRunWithTheLastInput(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var b beginnings
		wf := b.workflow(0)
		w.boot(t, queued(wf))
		soon := durable.Debounce("k", 5*time.Second, time.Minute)
		first := time.Now()
		id := bounce(t, w, wf, 0, soon)
		for i := 1; i < 4; i++ {
			time.Sleep(4 * time.Second)
			require.Equal(t, id, bounce(t, w, wf, i, soon), "each is told of the run that it is part of")
		}
		other := bounce(t, w, wf, 100, durable.Debounce("other", 5*time.Second, time.Minute))
		require.NotEqual(t, id, other)
		onQueue := bounce(t, w, wf, 101, durable.OnQueue("q"), soon)
		require.NotEqual(t, id, onQueue, "the key is one of the queue")
		waitAll(t, w, wf, id, other, onQueue)
		require.ElementsMatch(t, []int{3, 100, 101}, b.all())
		require.Less(t, b.at[0].Sub(first)-(3*4+5)*time.Second, 20*time.Millisecond)
		require.GreaterOrEqual(t, b.at[0].Sub(first), (3*4+5)*time.Second)
		require.Equal(t, []string{"workflow_created", "input_replaced", "input_replaced", "input_replaced", "workflow_started", "step_completed body", "workflow_completed"}, w.story(id))
		next := bounce(t, w, wf, 4, soon)
		require.NotEqual(t, id, next, "after it has begun, another start is another run")
		waitAll(t, w, wf, next)
	})
}

func TestADebouncedRunBeginsAtTheLatestWhenItMust(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var b beginnings
		wf := b.workflow(0)
		w.boot(t, queued(wf))
		began := time.Now()
		ids := map[string]bool{}
		for i := range 30 {
			ids[bounce(t, w, wf, i, durable.Debounce("k", 5*time.Second, 20*time.Second))] = true
			time.Sleep(time.Second)
		}
		pass(time.Minute)
		require.Len(t, ids, 2)
		require.Len(t, b.all(), 2)
		require.InDelta(t, 20, b.at[0].Sub(began).Seconds(), 0.1)
		require.Equal(t, 29, b.all()[1])
	})
}

func TestAStartWhileTheDebouncedRunIsExecutedIsAnotherRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var b beginnings
		wf := b.workflow(time.Hour)
		w.boot(t, queued(wf))
		soon := durable.Debounce("k", time.Second, time.Minute)
		one := bounce(t, w, wf, 1, soon)
		pass(2 * time.Second)
		require.Equal(t, store.Running, w.row(one).Status)
		two := bounce(t, w, wf, 2, soon)
		require.NotEqual(t, one, two)
		require.Equal(t, two, bounce(t, w, wf, 3, soon))
		waitAll(t, w, wf, one, two)
		require.Equal(t, []int{1, 3}, b.all())
		three := bounce(t, w, wf, 4, soon)
		require.NoError(t, w.eng.Cancel(w.ctx(), three, ""))
		four := bounce(t, w, wf, 5, soon)
		require.NotEqual(t, three, four)
		waitAll(t, w, wf, four)
	})
}

func TestDebouncedStartsOfManyProcessesAreOneRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var b beginnings
		var wfs []*durable.Workflow[int, int]
		var ctxs []context.Context
		for range 4 {
			wfs = append(wfs, b.workflow(0))
			w.boot(t, queued(wfs[len(wfs)-1]))
			ctxs = append(ctxs, w.ctx())
		}
		var mu sync.Mutex
		ids := map[string]int{}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				h, err := wfs[i%4].Start(ctxs[i%4], durable.AutoID, i, durable.OnQueue("q"), durable.Debounce("k", 2*time.Second, time.Hour))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				ids[h.ID()]++
			})
		}
		wg.Wait()
		require.Len(t, ids, 1)
		pass(time.Minute)
		require.Len(t, b.all(), 1)
	})
}

// A process that starts debounced runs dies just before or just after each of its writes. Whatever
// start has returned, its run, or one that a later start has given another input, is executed.
func TestNoDebouncedStartIsLostWhenItsProcessDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Greater(t, dieAtEachWrite(func(at int, after bool) bool { return debounceAndDie(t, at, after) }), 10)
	})
}

func debounceAndDie(t *testing.T, at int, after bool) (died bool) {
	t.Helper()
	data := memory.Open()
	var b beginnings
	wf := b.workflow(30 * time.Second)
	said := -1 // the last start that has returned
	dying := crashstore.NewQueues(data.Handle())
	dying.DieAt(at, after)
	silent := slog.New(slog.DiscardHandler)
	eng, err := durable.Open(context.Background(), dying, durable.Options{Workflows: []durable.Definition{wf}, Grace: -1, Logger: silent})
	if err == nil {
		ctx := durable.NewContext(context.Background(), eng)
		_, _ = eng.Recover(ctx)
		for i := range 6 {
			short, stop := context.WithTimeout(ctx, 5*time.Second)
			if _, err := wf.Start(short, durable.AutoID, i, durable.OnQueue("q"), durable.Debounce("k", 2*time.Second, 10*time.Second)); err == nil {
				said = i
			}
			stop()
			time.Sleep(time.Second)
			if i == 2 {
				time.Sleep(3 * time.Second) // the run begins
			}
		}
		synctest.Wait()
		died = dying.IsDead()
		dying.Die()
		_ = eng.Close()
	}
	died = died || err != nil
	time.Sleep(time.Minute)
	next, err := durable.Open(context.Background(), data.Handle(), durable.Options{Workflows: []durable.Definition{wf}, Grace: -1, Logger: silent})
	require.NoError(t, err)
	defer func() { require.NoError(t, next.Close()) }()
	_, err = next.Recover(context.Background())
	require.NoError(t, err)
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	page, err := data.List(context.Background(), store.Filter{})
	require.NoError(t, err)
	for _, r := range page.Runs {
		require.Equal(t, store.Completed, r.Status, "write %d, after: %v: run %s", at, after, r.ID)
	}
	checkVerified(t, data)
	if said >= 0 {
		last := -1
		for _, n := range b.all() {
			last = max(last, n)
		}
		require.GreaterOrEqual(t, last, said, fmt.Sprintf("write %d, after: %v: start %d has returned, and what was executed is %v", at, after, said, b.all()))
	}
	return died
}

// While processes are being replaced, starts of two versions take two inputs, and the earlier
// version may be gone for good.
func TestAStartIsNotDebouncedIntoARunOfAnotherVersion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one := durable.Define("w", func(ctx context.Context, n int) (int, error) { return n, nil }, durable.Version("1"))
		two := durable.Define("w", func(ctx context.Context, s string) (string, error) { return s, nil }, durable.Version("2"))
		soon := durable.Debounce("k", time.Minute, time.Hour)
		w.boot(t, with(one))
		earlier := bounce(t, w, one, 1, soon)
		w.reboot(t, with(two))
		h, err := two.Start(w.ctx(), durable.AutoID, "later", soon)
		require.NoError(t, err)
		require.NotEqual(t, earlier, h.ID())
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "later", out)
		require.Equal(t, store.Pending, w.row(earlier).Status)
		checkVerified(t, w.data)
	})
}

func TestADebouncedStartThatMakesNoRunHasNoSpanOfOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spans := tracetest.NewInMemoryExporter()
		var b beginnings
		wf := b.workflow(0)
		o := with(wf)
		o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		w.boot(t, o)
		var id string
		for i := range 3 {
			id = bounce(t, w, wf, i, durable.Debounce("k", time.Second, time.Hour))
		}
		waitAll(t, w, wf, id)
		starts := 0
		for _, s := range spans.GetSpans() {
			for _, a := range s.Attributes {
				if string(a.Key) == "durable.run.id" {
					require.Equal(t, id, a.Value.String(), "%s of a run that does not exist", s.Name)
				}
			}
			if s.Name == "start w" {
				starts++
			}
		}
		require.Equal(t, 1, starts)
	})
}

func TestADebouncedRunThatFailedAtOnceIsOnlyResumedByForce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails := true
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if fails {
				return 0, errors.New("no")
			}
			return n, nil
		})
		w.boot(t, encrypted(keysOf("k1"), wf))
		soon := durable.Debounce("k", time.Second, time.Hour)
		bounce(t, w, wf, 1, soon)
		id := bounce(t, w, wf, 2, soon)
		w.eventually(id, store.Failed)
		op := operate.On(w.eng)
		_, err := op.Resume(w.ctx(), id, operate.ResumeOptions{})
		var none *operate.CheckpointError
		require.ErrorAs(t, err, &none, "as for any run of which nothing was recorded")
		fails = false
		_, err = op.Resume(w.ctx(), id, operate.ResumeOptions{Force: true})
		require.NoError(t, err)
		out, err := wait(t, w, wf, id)
		require.NoError(t, err)
		require.Equal(t, 2, out)
		checkVerified(t, w.data)
	})
}

func TestADebouncedStartOutlivesTheRunThatItFinds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var b beginnings
		wf := b.workflow(0)
		w.boot(t, queued(wf))
		soon := durable.Debounce("k", time.Second, time.Hour)
		first := bounce(t, w, wf, 1, soon)
		other := w.eng
		var gone atomic.Bool
		w.boot(t, queued(wf))
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "load" && gone.CompareAndSwap(false, true) { // the run ends and is deleted just before the start reads it
				require.NoError(t, other.Cancel(context.Background(), first, ""))
				synctest.Wait() // an engine that had taken it up has ended it
				n, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{first}})
				require.NoError(t, err)
				require.EqualValues(t, 1, n)
			}
			return forward()
		})
		second := bounce(t, w, wf, 2, soon)
		require.True(t, gone.Load())
		waitAll(t, w, wf, second)
		require.Equal(t, []int{2}, b.all())
	})
}
