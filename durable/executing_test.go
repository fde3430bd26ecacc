package durable_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// Of the bodies that are executed at the same time Executing names the one that began
// last, whichever of the others ends first.
func TestExecutingNamesABodyAsLongAsOneIsExecuted(t *testing.T) {
	for _, order := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a"}} {
		inWorld(t, func(t *testing.T, w *world) {
			ends := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{})}
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				g := durable.NewGroup(ctx)
				for _, name := range []string{"a", "b", "c"} {
					began := make(chan struct{})
					g.Go(name, func(ctx context.Context) error {
						return durable.Do(ctx, "body", func(context.Context) error { close(began); <-ends[name]; return nil })
					})
					<-began
				}
				return 0, g.Wait()
			}, durable.KeepLoaded())
			w.boot(t, with(wf))
			start(t, w, wf, "r", 0)
			synctest.Wait()
			under := map[string]bool{"a": true, "b": true, "c": true}
			for _, name := range append([]string{""}, order...) {
				if name != "" {
					close(ends[name])
					delete(under, name)
					synctest.Wait()
				}
				want := ""
				for _, name := range []string{"a", "b", "c"} {
					if under[name] {
						want = name + "/body"
					}
				}
				key, ok := w.eng.Executing("r")
				require.Equal(t, want, key, "ended: %v, under way: %v", name, under)
				require.Equal(t, want != "", ok)
			}
		})
	}
}
