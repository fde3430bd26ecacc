package durable_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// stillRead is what a store goes on reading: the first changes of batches, and what was in them.
type stillRead struct{ given, copies []store.Change }

func (r *stillRead) add(batch []store.Change) {
	r.given, r.copies = append(r.given, batch[0]), append(r.copies, copyOf(batch[:1])...)
}

// whole checks that nothing of it was overwritten, and returns how many changes it is.
func (r *stillRead) whole(t *testing.T) int {
	t.Helper()
	for i := range r.given {
		require.Equal(t, r.copies[i].Events, r.given[i].Events)
	}
	return len(r.given)
}

// A store may go on reading a change whose outcome it does not know: the memory of that change
// is not used for later steps, also when the change was durable at the next try.
func TestWhatAStoreHasNotAnsweredIsNotOverwritten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			for i := range n {
				if _, err := durable.Step(ctx, "a", func(context.Context) (string, error) { return strings.Repeat(string(rune('a'+i)), 20), nil }); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		w.serve(t, wf)
		var read stillRead
		unanswered := 0
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			if ev := batch[0].Events; len(ev) == 1 && ev[0].Type == store.StepCompleted && ev[0].Seq%3 == 0 && unanswered < int(ev[0].Seq) {
				unanswered = int(ev[0].Seq)
				read.add(batch)
				return all(batch, store.ErrUnknown)
			}
			return forward()
		})
		_, err := run(t, w, wf, "r", 12)
		require.NoError(t, err)
		require.Equal(t, 4, read.whole(t))
	})
}

// That holds too if the store then refuses a change of several writes, and each of these is durable
// by a change of its own.
func TestWhatAStoreHasNotAnsweredIsNotOverwrittenThoughItIsRefusedThen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			for i := range n {
				var o []durable.StepOption
				if i%2 == 0 {
					o = append(o, durable.Relaxed())
				}
				if _, err := durable.Step(ctx, "a", func(context.Context) (string, error) { return strings.Repeat(string(rune('a'+i)), 20), nil }, o...); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		w.serve(t, wf)
		var read stillRead
		tries := map[int64]int{}
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			ev := batch[0].Events
			if len(ev) != 2 || ev[1].Type != store.StepCompleted {
				return forward()
			}
			if tries[ev[0].Seq]++; tries[ev[0].Seq] > 1 {
				return all(batch, store.ErrTooLarge)
			}
			read.add(batch)
			return all(batch, store.ErrUnknown)
		})
		_, err := run(t, w, wf, "r", 12)
		require.NoError(t, err)
		require.Equal(t, 6, read.whole(t))
	})
}

// Steps whose results have different types, sizes and outcomes take turns in one scope, and so in
// the same memory.
func TestStepsThatTakeTurnsKeepTheirResults(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		long := strings.Repeat("l", 2000)
		wf := durable.Define("w", func(ctx context.Context, n int) (bool, error) {
			for i := range n {
				num, err := durable.Step(ctx, "int", func(context.Context) (int, error) { return i, nil })
				require.Equal(t, []any{i, nil}, []any{num, err})
				flat, err := durable.Step(ctx, "struct", func(context.Context) (benchReceipt, error) { return benchReceipt{Amount: int64(i)}, nil })
				require.Equal(t, []any{benchReceipt{Amount: int64(i)}, nil}, []any{flat, err})
				text, err := durable.Step(ctx, "text", func(context.Context) (string, error) { return long[:i*50], nil })
				require.Equal(t, []any{long[:i*50], nil}, []any{text, err})
				again, err := durable.Retry(ctx, "again", durable.Policy{MaxAttempts: 2}, func(ctx context.Context) (*int, error) {
					if durable.Attempt(ctx).Number == 1 {
						return nil, errDisk
					}
					return &i, nil
				})
				require.NoError(t, err)
				require.Equal(t, i, *again)
				none, err := durable.Step(ctx, "none", func(context.Context) (*int, error) { return nil, nil })
				require.Equal(t, []any{(*int)(nil), nil}, []any{none, err})
				nothing, err := durable.Step(ctx, "nothing", func(context.Context) (int, error) { return 7, errDisk })
				require.Zero(t, nothing)
				require.ErrorContains(t, err, errDisk.Error())
				require.NoError(t, durable.Do(ctx, "do", func(context.Context) error { return nil }))
			}
			return true, nil
		})
		w.serve(t, wf)
		ok, err := run(t, w, wf, "r", 5)
		require.NoError(t, err)
		require.True(t, ok)
	})
}

// The end of a body that ran before, in the same memory or in the same step, is not the time of an
// outcome that no body has returned.
func TestAnOutcomeWithoutAnEndOfABodyHappensNow(t *testing.T) {
	failedAt := func(t *testing.T, w *world) time.Duration {
		t.Helper()
		events := w.events("r")
		for _, e := range events {
			if e.Type == store.StepFailed {
				require.Equal(t, e.At.Sub(events[0].At), e.Active)
				return e.Active
			}
		}
		t.Fatalf("no step has failed: %v", w.story("r"))
		return 0
	}
	t.Run("after a relaxed step", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				for range 20 {
					if err := durable.Do(ctx, "cheap", func(context.Context) error { return nil }, durable.Relaxed()); err != nil {
						return 0, err
					}
				}
				return 0, durable.Do(ctx, "exits", func(context.Context) error {
					time.Sleep(time.Hour)
					runtime.Goexit()
					return nil
				})
			})
			w.serve(t, wf)
			_, err := run(t, w, wf, "r", 0)
			require.ErrorContains(t, err, "Goexit")
			require.Equal(t, time.Hour, failedAt(t, w))
		})
	})
	t.Run("after an attempt that does not count", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				return durable.Retry(ctx, "s", durable.Policy{MaxAttempts: 2, Deadline: 30 * time.Minute}, func(ctx context.Context) (int, error) {
					<-ctx.Done()
					return 0, context.Cause(ctx)
				})
			})
			w.boot(t, with(wf))
			h := start(t, w, wf, "r", 0)
			w.disk.tamperCalls(func(string, func() error) error { return errDisk })
			pass(time.Hour)
			w.disk.tamperCalls(nil)
			_, err := h.Wait(w.ctx())
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.GreaterOrEqual(t, failedAt(t, w), time.Hour)
		})
	})
}
