package durable_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Each name is a slot of its own, beside the one without a name, live and after the
// process was killed, whatever types stand in them.
func TestProgressUnderANameMeetsNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type cursor struct{ Page, Line int }
		type seen struct {
			plain               int
			a                   cursor
			b                   string
			plainOK, a1, b1, c1 bool
		}
		var all []seen
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "copy", func(ctx context.Context) (int, error) {
				look := func() error {
					var s seen
					var errs [4]error
					s.plain, s.plainOK, errs[0] = durable.Progress[int](ctx)
					s.a, s.a1, errs[1] = durable.NamedProgress[cursor](ctx, "a")
					s.b, s.b1, errs[2] = durable.NamedProgress[string](ctx, "b")
					_, s.c1, errs[3] = durable.NamedProgress[int](ctx, "c")
					for _, err := range errs {
						if err != nil {
							return err
						}
					}
					all = append(all, s)
					return nil
				}
				if err := look(); err != nil || all[len(all)-1].b1 {
					return 7, err
				}
				if err := durable.SaveProgress(ctx, 7); err != nil {
					return 0, err
				}
				if err := durable.SaveNamedProgress(ctx, "a", cursor{1, 2}); err != nil {
					return 0, err
				}
				if err := durable.SaveNamedProgress(ctx, "b", "early"); err != nil {
					return 0, err
				}
				if err := durable.SaveNamedProgress(ctx, "b", "late"); err != nil {
					return 0, err
				}
				if err := look(); err != nil {
					return 0, err
				}
				<-ctx.Done() // killed here
				return 0, nil
			})
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		pass(time.Minute)
		w.reboot(t, with(wf))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		saved := seen{plain: 7, plainOK: true, a: cursor{1, 2}, a1: true, b: "late", b1: true}
		require.Equal(t, []seen{{}, saved, saved}, all)
	})
}

func TestANameOfProgressThatCannotBeOneIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var errs []error
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 1, durable.Do(ctx, "s", func(ctx context.Context) error {
				for _, name := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 256)} {
					errs = append(errs, durable.SaveNamedProgress(ctx, name, 1))
					_, _, err := durable.NamedProgress[int](ctx, name)
					errs = append(errs, err)
				}
				return nil
			})
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Len(t, errs, 8)
		for _, err := range errs {
			require.ErrorIs(t, err, store.ErrInvalid)
		}
		require.Empty(t, savedIn(w.events("r")))
		require.ErrorIs(t, durable.SaveNamedProgress(w.ctx(), "a", 1), durable.ErrOutsideRun)
	})
}

// What a body leaves outside can be told from what every other execution of a body
// leaves: of the attempts before, of the same attempt in an earlier process, of
// other steps and of other runs. Of one run they share what stands before the dot.
func TestEachExecutionOfABodyHasAMarkOfItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		marks := map[string][]string{}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			body := func(ctx context.Context) (int, error) {
				a := durable.Attempt(ctx)
				require.Equal(t, a.Execution, durable.Attempt(context.WithoutCancel(ctx)).Execution)
				mu.Lock()
				marks[a.RunID] = append(marks[a.RunID], a.Execution)
				n := len(marks[a.RunID])
				mu.Unlock()
				switch n {
				case 1:
					return 0, errStock
				case 2:
					<-ctx.Done() // killed here
				}
				return 1, nil
			}
			n, err := durable.Retry(ctx, "s", durable.Policy{Initial: time.Millisecond, MaxAttempts: 3}, body)
			if err != nil {
				return 0, err
			}
			return durable.Step(ctx, "t", func(ctx context.Context) (int, error) { return n, nil })
		})
		w.serve(t, wf)
		start(t, w, wf, "r1", 0)
		start(t, w, wf, "r2", 0)
		pass(time.Minute)
		w.reboot(t, with(wf))
		all := map[string]bool{}
		before := map[string]bool{}
		for _, id := range []string{"r1", "r2"} {
			_, err := wait(t, w, wf, id)
			require.NoError(t, err)
		}
		for _, id := range []string{"r1", "r2"} {
			require.Len(t, marks[id], 3)
			for _, m := range marks[id] {
				run, own, ok := strings.Cut(m, ".")
				require.True(t, ok)
				require.NotEmpty(t, own)
				all[m], before[run] = true, true
			}
		}
		require.Len(t, all, 6)
		require.Len(t, before, 2)
	})
}
