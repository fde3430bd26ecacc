package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Code that looks at its context, as any Go code does, sees it end at the same
// place on replay: the run is undone to the end, wherever its process dies.
func TestAContextEndsAtTheSamePlaceOnReplay(t *testing.T) {
	deaf := func(context.Context) error { time.Sleep(time.Second); return nil }
	heeding := func(ctx context.Context) error {
		select {
		case <-time.After(time.Second):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	work := deaf
	loop := func(ctx context.Context, undo func(context.Context) error) error {
		for i := 0; ; i++ {
			if ctx.Err() != nil {
				return fmt.Errorf("stopped after %d: %w", i, context.Cause(ctx))
			}
			if err := durable.Compensate(ctx, fmt.Sprint("undo ", i), undo); err != nil {
				return err
			}
			if err := durable.Do(ctx, "s", work); err != nil {
				return err
			}
		}
	}
	shapes := map[string]func(ctx context.Context, undo func(context.Context) error) error{
		"the function": loop,
		"a branch beside others": func(ctx context.Context, undo func(context.Context) error) error {
			var fs []*durable.Future[int]
			for i := range 3 {
				fs = append(fs, durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
					time.Sleep(time.Duration(i) * 100 * time.Millisecond)
					return 0, loop(ctx, undo)
				}))
			}
			var errs []error
			for _, f := range fs {
				_, err := f.Wait(ctx)
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
		"items of a Map": func(ctx context.Context, undo func(context.Context) error) error {
			_, err := durable.Map(ctx, "m", []int{1, 2, 3}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, n int) (int, error) {
				return n, loop(ctx, undo)
			})
			return err
		},
		"a wait for the end of the context": func(ctx context.Context, undo func(context.Context) error) error {
			for i := range 2 {
				if err := durable.Compensate(ctx, fmt.Sprint("undo ", i), undo); err != nil {
					return err
				}
				if err := durable.Do(ctx, "s", work); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"a context of its own": func(ctx context.Context, undo func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return loop(ctx, undo)
		},
	}
	for name, shape := range shapes {
		for _, by := range []string{"cancel", "deadline", "cancel heeded", "deadline heeded"} {
			t.Run(name+"/"+by, func(t *testing.T) {
				by, heeds := strings.CutSuffix(by, " heeded")
				if work = deaf; heeds {
					work = heeding
				}
				for dies := 0; ; dies++ { // in the compensation of this number
					more := false
					inWorld(t, func(t *testing.T, w *world) {
						var undone []string
						undo := func(ctx context.Context) error {
							if len(undone) == dies && !more {
								more = true
								<-ctx.Done()
								return context.Cause(ctx)
							}
							undone = append(undone, durable.Attempt(ctx).Key)
							return nil
						}
						wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, shape(ctx, undo) })
						w.boot(t, with(wf))
						var o []durable.StartOption
						if by == "deadline" {
							o = append(o, durable.Deadline(3500*time.Millisecond))
						}
						_, err := wf.Start(w.ctx(), "r", 0, o...)
						require.NoError(t, err)
						pass(3500 * time.Millisecond)
						if by == "cancel" {
							require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
						}
						pass(2 * time.Second)
						w.reboot(t, with(wf))
						pass(10 * time.Second)
						row := w.row("r")
						want := store.Cancelled
						if by == "deadline" {
							want = store.Failed
						}
						require.Equal(t, want, row.Status, "%s: %s\n%s", row.Code, row.Reason, w.log.find("WARN"))
						require.NotEmpty(t, undone)
						slices.Sort(undone)
						require.Len(t, slices.Compact(undone), len(undone), "none is undone twice")
					})
					if !more || t.Failed() {
						require.Greater(t, dies, 1)
						break
					}
				}
			})
		}
	}
}
