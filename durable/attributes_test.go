package durable_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// found returns the ids of the runs with this attribute.
func found(t *testing.T, w *world, name, value string) []string {
	t.Helper()
	page, err := w.eng.List(w.ctx(), store.Filter{Attributes: map[string]string{name: value}, OldestFirst: true})
	require.NoError(t, err)
	var ids []string
	for _, r := range page.Runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestAttributesThatAreSetAtRunTimeAreMergedAndSearchable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ran := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			ran++
			if err := durable.SetAttributes(ctx, map[string]string{"stage": "paid", "customer": ""}); err != nil {
				return 0, err
			}
			if err := durable.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
			if err := durable.SetAttributes(ctx, map[string]string{"stage": "shipped"}); err != nil {
				return 0, err
			}
			return 0, durable.Sleep(ctx, time.Hour)
		})
		w.boot(t, with(wf))
		_, err := wf.Start(w.ctx(), "r", 0, durable.Attributes(map[string]string{"customer": "Ada", "country": "fr", "empty": ""}))
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		require.Equal(t, map[string]string{"country": "fr", "stage": "paid"}, w.row("r").Attributes)
		require.Equal(t, []string{"r"}, found(t, w, "stage", "paid"))
		require.Empty(t, found(t, w, "customer", "Ada"))
		last := w.row("r").Last.Seq

		w.reboot(t, with(wf))
		pass(time.Hour)
		require.Equal(t, 2, ran)
		require.Equal(t, map[string]string{"country": "fr", "stage": "shipped"}, w.row("r").Attributes, "it builds on what was set before the restart")
		require.Equal(t, []string{"r"}, found(t, w, "stage", "shipped"))
		require.Empty(t, found(t, w, "stage", "paid"))
		set := 0
		for _, e := range w.events("r") {
			if e.Type == store.AttributesSet {
				set++
			}
			if e.Type == store.AttributesSet && e.Seq > last {
				require.JSONEq(t, `{"attributes":{"country":"fr","stage":"shipped"}}`, string(e.Data), "the whole set")
			}
		}
		require.Equal(t, 2, set)
		pass(time.Hour)
		w.eventually("r", store.Completed)
		i, err := w.eng.Get(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"country": "fr", "stage": "shipped"}, i.Attributes)
	})
}

// The row is a cache: what a run builds on is what its history says.
func TestARunBuildsOnTheAttributesOfItsHistory(t *testing.T) {
	for calls, want := range []map[string]string{{"a": "1", "c": "3"}, {"a": "1", "b": "2", "c": "3"}} {
		inWorld(t, func(t *testing.T, w *world) {
			var h hold
			wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
				for range n {
					if err := durable.SetAttributes(ctx, map[string]string{"b": "2"}); err != nil {
						return 0, err
					}
				}
				if err := durable.Do(ctx, "hold", h.body); err != nil {
					return 0, err
				}
				return 0, durable.SetAttributes(ctx, map[string]string{"c": "3"})
			})
			w.serve(t, wf)
			_, err := wf.Start(w.ctx(), "r", calls, durable.Attributes(map[string]string{"a": "1"}))
			require.NoError(t, err)
			synctest.Wait()
			w.crash()
			w.expire()
			errs := w.data.Commit(t.Context(), []store.Change{{
				RunID: "r", Expect: store.Expect{Epoch: w.row("r").Epoch}, Row: &store.RowPatch{Attributes: map[string]string{"wrong": "x"}},
			}})
			require.NoError(t, errs[0])
			w.boot(t, with(wf))
			w.eventually("r", store.Completed)
			require.Equal(t, want, w.row("r").Attributes)
		})
	}
}

func TestBranchesSetAttributesAtOnceAndNoneIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 50
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Map(ctx, "items", upTo(n), durable.MapOptions{Concurrency: n}, func(ctx context.Context, i int) (int, error) {
				return 0, durable.SetAttributes(ctx, map[string]string{fmt.Sprint("a", i): "x", "last": fmt.Sprint(i)})
			})
			return 0, err
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Len(t, w.row("r").Attributes, n+1)
		before := map[string]string{}
		for _, e := range w.events("r") {
			if e.Type == store.AttributesSet {
				require.Contains(t, string(e.Data), `"last"`)
				before["n"] += "."
			}
		}
		require.Len(t, before["n"], n)
	})
}

func TestAttributesThatCannotBeKeptAreRefused(t *testing.T) {
	full := map[string]string{}
	for i := range durable.MaxAttributes {
		full[fmt.Sprint("k", i)] = "v"
	}
	tooMany := maps.Clone(full)
	tooMany["one more"] = "v"
	bad := map[string]map[string]string{
		"no name": {"": "v"}, "a long name": {strings.Repeat("n", 256): "v"}, "a control character in the name": {"a\nb": "v"},
		"a long value": {"k": strings.Repeat("v", durable.MaxAttributeValue+1)}, "a NUL in the value": {"k": "\x00"}, "bytes that are no text": {"k": "\xff"}, "too many": tooMany,
	}
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
		for what, set := range bad {
			if err := durable.SetAttributes(ctx, set); !errors.Is(err, durable.ErrInvalid) {
				return 0, fmt.Errorf("%s: %w", what, err)
			}
		}
		if err := durable.SetAttributes(ctx, full); err != nil {
			return 0, err
		}
		if err := durable.SetAttributes(ctx, map[string]string{"k0": "", "k1": "w", "new": strings.Repeat("ü", durable.MaxAttributeValue/2)}); err != nil {
			return 0, err
		}
		err := durable.Do(ctx, "body", func(ctx context.Context) error { return durable.SetAttributes(ctx, full) })
		if !errors.Is(err, durable.ErrNested) {
			return 0, err
		}
		// Whether there is room depends on the moment: it is recorded.
		return 1, durable.SetAttributes(ctx, map[string]string{"too much": "v"})
	})
	require.Equal(t, 1, live.value)
	require.ErrorIs(t, live.err, durable.ErrInvalid)
	require.ErrorContains(t, live.err, "at most 64")
	require.Equal(t, live, replay)
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, int) (int, error) { return 0, nil })
		w.serve(t, wf)
		for what, set := range bad {
			_, err := wf.Start(w.ctx(), "r", 0, durable.Attributes(set))
			require.ErrorIs(t, err, durable.ErrInvalid, what)
		}
		n, err := w.data.Count(t.Context(), store.Filter{}, "")
		require.NoError(t, err)
		require.Zero(t, n[""])
		require.ErrorIs(t, durable.SetAttributes(w.ctx(), full), durable.ErrOutsideRun)
	})
}
