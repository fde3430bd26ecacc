package durable_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

func upTo(n int) []int {
	in := make([]int, n)
	for i := range in {
		in[i] = i
	}
	return in
}

func TestMapKeepsTheOrderAndTheBoundAndCostsOneWriteAnItem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n, limit = 10_000, 64
		var under, most atomic.Int32
		wf := durable.Define("squares", func(ctx context.Context, n int) (int, error) {
			out, err := durable.Map(ctx, "items", upTo(n), durable.MapOptions{Concurrency: limit}, func(ctx context.Context, i int) (int, error) {
				now := under.Add(1)
				for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
				}
				time.Sleep(time.Millisecond)
				under.Add(-1)
				return i * i, nil
			})
			if err != nil {
				return 0, err
			}
			for i, v := range out {
				if v != i*i {
					return 0, fmt.Errorf("item %d is %d", i, v)
				}
			}
			return len(out), nil
		})
		w.serve(t, wf)
		out, err := wf.Run(w.ctx(), "r", n)
		require.NoError(t, err)
		require.Equal(t, n, out)
		require.EqualValues(t, limit, most.Load())
		require.Len(t, w.events("r"), n+5, "an event for each item; created, started, completed, and the beginning and end of the Map")
	})
}

func TestAMapThatIsKilledDoesDoneItemsNeverAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		ran := map[int]int{}
		wf := durable.Define("m", func(ctx context.Context, n int) ([]int, error) {
			return durable.Map(ctx, "items", upTo(n), durable.MapOptions{Concurrency: 4}, func(ctx context.Context, i int) (int, error) {
				a, err := durable.Step(ctx, "one", func(context.Context) (int, error) {
					mu.Lock()
					ran[i]++
					mu.Unlock()
					return i, nil
				})
				if err != nil {
					return 0, err
				}
				return a * 10, durable.Sleep(ctx, time.Hour)
			})
		})
		o := durable.Options{Workflows: []durable.Definition{wf}}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 20)
		require.NoError(t, err)
		for range 5 {
			time.Sleep(50 * time.Minute)
			w.reboot(t, o)
		}
		h, _ := wf.Handle(w.ctx(), "r")
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		for i, v := range out {
			require.Equal(t, 10*i, v)
			require.Equal(t, 1, ran[i], "item %d", i)
		}
		require.Equal(t, store.Completed, w.row("r").Status)
	})
}

func TestAFailedItemStopsTheMapOrIsKeptAsADeadLetter(t *testing.T) {
	for _, keepGoing := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			sentinel := errors.New("bad item")
			began := 0
			wf := durable.Define("m", func(ctx context.Context, n int) (string, error) {
				out, err := durable.Map(ctx, "items", upTo(n), durable.MapOptions{Concurrency: 1, KeepGoing: keepGoing}, func(ctx context.Context, i int) (int, error) {
					began++
					switch i {
					case 3:
						return 0, sentinel
					case 5:
						panic("five")
					case 6:
						runtime.Goexit()
					}
					return i, nil
				})
				var me *durable.MapError
				if !errors.As(err, &me) {
					return "", fmt.Errorf("no MapError: %w", err)
				}
				s := fmt.Sprint(out, errors.Is(err, sentinel), me.Undone)
				for _, f := range me.Failed {
					s += " " + f.Key
				}
				return s, durable.Sleep(ctx, time.Hour)
			})
			o := durable.Options{Workflows: []durable.Definition{wf}, Errors: []durable.ErrorKind{durable.Sentinel("bad", sentinel)}}
			w.boot(t, o)
			_, err := wf.Start(w.ctx(), "r", 8)
			require.NoError(t, err)
			w.eventually("r", store.Waiting)
			live := began
			w.reboot(t, o)
			h, _ := wf.Handle(w.ctx(), "r")
			out, err := h.Wait(w.ctx())
			require.NoError(t, err)
			require.Equal(t, live, began, "nothing ran again")
			if keepGoing {
				require.Equal(t, "[0 1 2 0 4 0 0 7] true 0 items[3] items[5] items[6]", out)
			} else {
				require.Equal(t, "[0 1 2 0 0 0 0 0] true 4 items[3]", out)
			}
		})
	}
}

func TestAMapNoticesOtherItems(t *testing.T) {
	for name, change := range map[string]func([]int) []int{
		"another value": func(in []int) []int { in[1] = 77; return in },
		"fewer":         func(in []int) []int { return in[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				in := upTo(3)
				wf := durable.Define("m", func(ctx context.Context, _ int) (int, error) {
					_, err := durable.Map(ctx, "items", in, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, i int) (int, error) { return i, nil })
					if err != nil {
						return 0, err
					}
					return 0, durable.Sleep(ctx, time.Hour)
				})
				o := durable.Options{Workflows: []durable.Definition{wf}}
				w.boot(t, o)
				_, err := wf.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				w.eventually("r", store.Waiting)
				w.crash()
				in = change(slices.Clone(in))
				time.Sleep(2 * time.Hour)
				w.boot(t, o)
				row := w.eventually("r", store.Interrupted)
				require.Equal(t, durable.CodeDefinitionChanged, row.Code)
			})
		})
	}
}

func TestTheContextOfTheMapUsedInAnItemIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("m", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Map(ctx, "items", upTo(1), durable.MapOptions{}, func(_ context.Context, i int) (int, error) {
				return durable.Step(ctx, "oops", func(context.Context) (int, error) { return 1, nil })
			})
			return 0, err
		})
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.ErrorContains(t, err, `"oops" was called in items[0] with the context of the workflow function`)
	})
}

func TestMapSeqFoldsASourceInOrderAndNeverHoldsMuchOfIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ahead, most atomic.Int32
		wf := durable.Define("m", func(ctx context.Context, n int) (string, error) {
			source := func(yield func(int) bool) {
				for i := range n {
					now := ahead.Add(1)
					most.Store(max(most.Load(), now))
					if !yield(i) {
						return
					}
				}
			}
			return durable.MapSeq(ctx, "items", source, durable.MapOptions{Concurrency: 3}, func(ctx context.Context, i int) (int, error) {
				time.Sleep(time.Duration(100-i%100) * time.Millisecond)
				return i, nil
			}, "", func(acc string, v int) string { ahead.Add(-1); return acc + fmt.Sprint(v, " ") })
		})
		w.serve(t, wf)
		out, err := wf.Run(w.ctx(), "r", 300)
		require.NoError(t, err)
		want := ""
		for i := range 300 {
			want += fmt.Sprint(i, " ")
		}
		require.Equal(t, want, out)
		require.LessOrEqual(t, most.Load(), int32(20))
	})
}

func TestACancelEndsAMapAndKeepsWhatIsDone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("m", func(ctx context.Context, n int) (int, error) {
			_, err := durable.Map(ctx, "items", upTo(n), durable.MapOptions{Concurrency: 2}, func(ctx context.Context, i int) (int, error) {
				return i, durable.Sleep(ctx, time.Hour)
			})
			return 0, err
		})
		w.serve(t, wf)
		run, err := wf.Start(w.ctx(), "r", 10)
		require.NoError(t, err)
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
		_, err = run.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.Contains(t, w.story("r"), "item_completed items[0]")
	})
}
