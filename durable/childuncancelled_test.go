package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A person has cancelled a child by mistake and resumed it by force. It ends with its parent
// like any other child, and when a cut leaves it behind.
func TestAChildThatWasResumedByForceAfterACancelEndsWithItsParent(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world){
		"the parent ends": func(t *testing.T, w *world) {
			require.NoError(t, durable.Signal(w.ctx(), "p", "end", 1))
		},
		"a cut leaves it behind": func(t *testing.T, w *world) {
			_, err := operate.On(w.eng).Jump(w.ctx(), "p", seqOf(t, w, "p", "before"), operate.JumpOptions{})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) {
					return durable.Await[int](ctx, "never")
				})
				parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) {
					if err := durable.Do(ctx, "before", doNothing); err != nil {
						return 0, err
					}
					if _, err := kid.Start(ctx, durable.AutoID, 0); err != nil {
						return 0, err
					}
					return durable.Await[int](ctx, "end")
				})
				w.boot(t, with(parent, kid))
				start(t, w, parent, "p", 0)
				w.eventually("p/kid", store.Waiting)
				require.NoError(t, w.eng.Cancel(w.ctx(), "p/kid", "by mistake"))
				w.eventually("p/kid", store.Cancelled)
				_, err := operate.On(w.eng).Resume(w.ctx(), "p/kid", operate.ResumeOptions{Force: true})
				require.NoError(t, err)
				w.eventually("p/kid", store.Waiting)
				end(t, w)
				pass(time.Minute)
				require.Equal(t, store.Cancelled, w.row("p/kid").Status)
				w.allSound(t)
			})
		})
	}
}
