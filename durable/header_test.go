package durable_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// written puts headers into one line, in order.
func written(h map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(h)) {
		all = append(all, k+"="+h[k])
	}
	return strings.Join(all, " ")
}

func TestHeadersAreReadEverywhereBelowARunAndAfterARestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		saw := map[string]map[string]string{} // where, by what
		note := func(ctx context.Context, where string) {
			mu.Lock()
			defer mu.Unlock()
			saw[where] = durable.Headers(ctx)
		}
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			note(ctx, "function")
			durable.Headers(ctx)["tenant"] = "changed" // a copy: nobody sees it
			_ = durable.Compensate(ctx, "undo", func(ctx context.Context) error { note(ctx, "compensation"); return nil })
			if err := durable.Do(ctx, "hold", h.body); err != nil {
				return 0, err
			}
			_ = durable.Do(ctx, "step", func(ctx context.Context) error { note(ctx, "step"); return nil })
			g := durable.NewGroup(ctx)
			g.Go("branch", func(ctx context.Context) error { note(ctx, "branch"); return nil })
			_ = g.Wait()
			_, _ = durable.Map(ctx, "items", []int{1}, durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) {
				note(ctx, "item")
				return 0, nil
			})
			return 0, errors.New("undo it")
		})
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", 0, durable.Header("tenant", "acme"), durable.Header("request", ""))
		require.NoError(t, err)
		synctest.Wait()
		w.reboot(t, with(wf))
		w.eventually("r", store.Failed)
		want := map[string]string{"tenant": "acme", "request": ""}
		for _, where := range []string{"function", "step", "branch", "item", "compensation"} {
			require.Equal(t, want, saw[where], where)
		}
		require.Nil(t, durable.Headers(context.Background()))
		require.Nil(t, durable.Headers(w.ctx()))
		info, err := w.eng.Get(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, want, info.Headers)
	})
}

func TestAChildHasTheHeadersOfItsParentUnderItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kid := durable.Define("kid", func(ctx context.Context, _ int) (string, error) { return written(durable.Headers(ctx)), nil })
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			own, err := kid.Run(ctx, durable.AutoID, 1, durable.Header("step", "2"), durable.Header("lang", "de"))
			if err != nil {
				return "", err
			}
			plain, err := kid.Run(ctx, durable.AutoID, 2)
			if err != nil {
				return "", err
			}
			// A run that a step starts is nobody's child.
			apart, err := durable.Step(ctx, "apart", func(ctx context.Context) (string, error) { return kid.Run(ctx, "apart", 3) })
			return fmt.Sprintf("%s, %s, %q, %s", own, plain, apart, written(durable.Headers(ctx))), err
		})
		w.serve(t, wf, kid)
		h, err := wf.Start(w.ctx(), "r", 0, durable.Header("tenant", "acme"), durable.Header("step", "1"))
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, `lang=de step=2 tenant=acme, step=1 tenant=acme, "", step=1 tenant=acme`, out)
	})
}

func TestHeadersDoNotTellTwoStartsApart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) { return written(durable.Headers(ctx)), nil })
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", 0, durable.Header("tenant", "acme"))
		require.NoError(t, err)
		out, err := wf.Run(w.ctx(), "r", 0, durable.Header("tenant", "other"))
		require.NoError(t, err)
		require.Equal(t, "tenant=acme", out)
	})
}

func TestHeadersThatCannotBeKeptAreRefused(t *testing.T) {
	many := func(n int, value string) []durable.StartOption {
		var o []durable.StartOption
		for i := range n {
			o = append(o, durable.Header(fmt.Sprint("h", i), value))
		}
		return o
	}
	inWorld(t, func(t *testing.T, w *world) {
		kid := durable.Define("kid", func(context.Context, int) (int, error) { return 1, nil })
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			_, err := kid.Start(ctx, durable.AutoID, 0, durable.Header("one more", "x"))
			if n == 64 {
				require.ErrorIs(t, err, durable.ErrInvalid, "with those of its parent they are too many")
			} else {
				require.NoError(t, err)
			}
			return 1, nil
		})
		w.serve(t, wf, kid)
		for name, o := range map[string][]durable.StartOption{
			"empty key":      {durable.Header("", "x")},
			"long key":       {durable.Header(strings.Repeat("k", 256), "x")},
			"control":        {durable.Header("k", "a\nb")},
			"not UTF-8":      {durable.Header("k", "\xff")},
			"long value":     {durable.Header("k", strings.Repeat("v", 8<<10+1))},
			"too many":       many(65, ""),
			"too much":       many(9, strings.Repeat("v", 1<<10)),
			"one bad of two": {durable.Header("good", "x"), durable.Header("b\x00d", "x")},
		} {
			_, err := wf.Start(w.ctx(), "r", 0, o...)
			require.ErrorIs(t, err, durable.ErrInvalid, name)
			_, err = w.eng.Get(w.ctx(), "r")
			require.ErrorIs(t, err, durable.ErrNotFound, "nothing was started: %s", name)
		}
		for _, n := range []int{63, 64} {
			h, err := wf.Start(w.ctx(), fmt.Sprint("r", n), n, many(n, "v")...)
			require.NoError(t, err)
			_, err = h.Wait(w.ctx())
			require.NoError(t, err)
		}
	})
}
