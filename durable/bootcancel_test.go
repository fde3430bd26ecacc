package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// FailOnBoot and LeaveOnBoot leave a run to a person. One who has cancelled it has decided: it is undone,
// and ends cancelled.
func TestACancelledRunEndsCancelledWhateverItsPolicyOnBoot(t *testing.T) {
	type life struct {
		at    string                       // the body in which its first life ends
		end   func(t *testing.T, w *world) // of that life
		early bool                         // it is cancelled while its process lives
	}
	lives := map[string]life{
		"nobody has read the cancel":     {"work", func(_ *testing.T, w *world) { w.crash() }, false},
		"killed while it is undone":      {"undo", func(_ *testing.T, w *world) { w.crash() }, true},
		"its engine is closed meanwhile": {"undo", func(t *testing.T, w *world) { require.NoError(t, w.eng.Close()) }, true},
		"its row was torn and is repaired": {"", func(_ *testing.T, w *world) {
			w.crash()
			w.tear("r", to(store.Running))
		}, false},
		"nobody had its code for some time": {"work", func(t *testing.T, w *world) {
			other := durable.Define("other", func(context.Context, int) (int, error) { return 0, nil })
			w.reboot(t, with(other))
			require.Equal(t, store.CodeNotRegistered, w.row("r").Code)
			w.crash()
		}, false},
		"its code had changed for some time": {"", func(t *testing.T, w *world) {
			changed := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "other") })
			w.reboot(t, with(changed))
			require.NoError(t, durable.Signal(w.ctx(), "r", "unknown", 1)) // it is looked at
			synctest.Wait()
			require.Equal(t, durable.CodeDefinitionChanged, w.row("r").Code)
			w.crash()
		}, false},
	}
	for policy, on := range map[string]durable.BootPolicy{"fail": durable.FailOnBoot, "leave": durable.LeaveOnBoot} {
		for name, l := range lives {
			t.Run(policy+": "+name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					held, undone := true, 0
					hang := func(ctx context.Context, at string) error {
						if held && at == l.at {
							<-ctx.Done()
							return context.Cause(ctx)
						}
						return nil
					}
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						err := durable.Compensate(ctx, "undo", func(ctx context.Context) error {
							if err := hang(ctx, "undo"); err != nil {
								return err
							}
							undone++
							return nil
						})
						if err != nil {
							return 0, err
						}
						if err := durable.Do(ctx, "work", func(ctx context.Context) error { return hang(ctx, "work") }); err != nil {
							return 0, err
						}
						_, err = durable.Await[int](ctx, "never")
						return 0, err
					})
					o := with(wf)
					o.OnBoot = on
					w.boot(t, o)
					start(t, w, wf, "r", 0)
					synctest.Wait()
					cancel := func() {
						require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
						synctest.Wait()
					}
					if l.early {
						cancel()
					}
					l.end(t, w)
					held = false
					if !l.early {
						w.open(t, durable.Options{}) // a terminal
						cancel()
					}
					w.expire()
					w.boot(t, o)
					pass(time.Minute)
					row := w.row("r")
					require.Equal(t, store.Cancelled, row.Status, "%s: %s", row.Code, row.Reason)
					require.Equal(t, "enough", row.Reason)
					require.Equal(t, 1, undone)
				})
			})
		}
	}
}
