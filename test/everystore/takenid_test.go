package everystore_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Somebody takes the id that a child would get before its parent exists. The parent gets
// its child all the same, one and the same in every process.
func TestAChildWhoseIDIsTakenIsStartedOnEveryStore(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			b.run(t, func(t *testing.T) {
				open := b.fresh(t)().open
				pay := durable.Define("pay", func(ctx context.Context, n int) (int, error) { return n, nil })
				order := durable.Define("order", func(ctx context.Context, n int) (int, error) {
					got, err := pay.Run(ctx, durable.AutoID, n)
					if err == nil {
						_, err = durable.Await[int](ctx, "go")
					}
					return got, err
				})
				process := func(f func(ctx context.Context, eng *durable.Engine)) {
					st, err := open()
					require.NoError(t, err)
					defer func() { require.NoError(t, st.Close()) }()
					eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{order, pay}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
					require.NoError(t, err)
					defer func() { require.NoError(t, eng.Close()) }()
					_, err = eng.Recover(t.Context())
					require.NoError(t, err)
					f(durable.NewContext(t.Context(), eng), eng)
				}
				var child string
				process(func(ctx context.Context, eng *durable.Engine) {
					_, err := pay.Run(ctx, "o/pay", 1)
					require.NoError(t, err)
					_, err = order.Start(ctx, "o", 7)
					require.NoError(t, err)
					ctx, stop := context.WithTimeout(ctx, time.Minute)
					defer stop()
					for e, err := range eng.Watch(ctx, "o", 0) {
						require.NoError(t, err)
						if e.Type == store.ChildStarted {
							var d struct{ Child string }
							require.NoError(t, json.Unmarshal(e.Data, &d))
							child = d.Child
						}
						if e.Type == store.WaitRequested {
							break
						}
					}
					require.True(t, strings.HasPrefix(child, "o/pay~x"), child)
				})
				process(func(ctx context.Context, eng *durable.Engine) {
					require.NoError(t, eng.Signal(ctx, "o", "go", 1))
					out, err := order.Handle(ctx, "o")
					require.NoError(t, err)
					n, err := out.Wait(ctx)
					require.NoError(t, err)
					require.Equal(t, 7, n)
					v, err := operate.On(eng).Verify(ctx, "o")
					require.NoError(t, err)
					require.True(t, v.Sound(), "%+v", v)
					kids, err := eng.Store().List(ctx, store.Filter{Parents: []string{"o"}})
					require.NoError(t, err)
					require.Len(t, kids.Runs, 1)
					require.Equal(t, child, kids.Runs[0].ID)
				})
			})
		})
	}
}
