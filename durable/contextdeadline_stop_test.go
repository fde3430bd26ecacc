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

// Waits that are refused under a deadline of the code's own, where the run is stopped,
// was parked before, or was unloaded.

func TestARunThatIsStoppedEndsThoughItsCodeWaitsUnderADeadline(t *testing.T) {
	for _, how := range []string{"cancel", "deadline"} {
		for _, kind := range []string{"future", "first", "child", "sleep"} {
			for _, lim := range []bool{false, true} {
				name := how + "/" + kind + "/plain"
				if lim {
					name = how + "/" + kind + "/limited"
				}
				t.Run(name, func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						undone := 0
						child := durable.Define("child", func(ctx context.Context, n int) (int, error) { return durable.Await[int](ctx, "never") })
						wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
							if err := durable.Compensate(ctx, "refund", func(context.Context) error { undone++; return nil }); err != nil {
								return 0, err
							}
							if err := durable.Do(ctx, "charge", doNothing); err != nil {
								return 0, err
							}
							f := durable.Go(ctx, "side", func(ctx context.Context) (int, error) { return durable.Await[int](ctx, "never") })
							g := durable.Go(ctx, "side2", func(ctx context.Context) (int, error) { return durable.Await[int](ctx, "never2") })
							h, err := child.Start(ctx, durable.AutoID, 1)
							if err != nil {
								return 0, err
							}
							_, err = durable.Await[int](ctx, "go")
							if err != nil { // cancelled: give the others a moment
								limited, stop := ctx, context.CancelFunc(func() {})
								if lim {
									limited, stop = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
								}
								defer stop()
								switch kind {
								case "future":
									_, _ = f.Wait(limited)
								case "first":
									_, _, _ = durable.First(limited, "f", f, g)
								case "child":
									_, _ = h.Wait(limited)
								case "sleep":
									_ = durable.Sleep(limited, time.Second)
								}
								return 0, err
							}
							return 1, nil
						})
						w.boot(t, with(wf, child))
						var o []durable.StartOption
						if how == "deadline" {
							o = append(o, durable.Deadline(time.Minute))
						}
						_, err := wf.Start(w.ctx(), "r", 1, o...)
						require.NoError(t, err)
						pass(time.Second)
						if how == "cancel" {
							require.NoError(t, w.eng.Cancel(w.ctx(), "r", "no more"))
						}
						pass(10 * time.Minute)
						row := w.row("r")
						require.True(t, row.Status.Terminal(), "%s %s: %s", row.Status, row.Code, row.Reason)
						require.Equal(t, 1, undone)
					})
				})
			}
		}
	}
}

func TestARunThatIsParkedForAWaitUnderADeadlineCanBeCancelled(t *testing.T) {
	child := durable.Define("child", func(ctx context.Context, n int) (int, error) { return n, durable.Sleep(ctx, time.Minute) })
	for name, wait := range waits(child) {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if err := durable.Do(ctx, "before", doNothing); err != nil {
						return 0, err
					}
					limited, stop := context.WithTimeout(ctx, time.Hour)
					defer stop()
					return 1, wait(ctx, limited)
				})
				w.boot(t, with(wf, child))
				start(t, w, wf, "r", 1)
				w.eventually("r", store.Interrupted)
				require.NoError(t, w.eng.Cancel(w.ctx(), "r", "no more"))
				pass(time.Hour)
				_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
				pass(time.Hour)
				require.NoError(t, err)
				require.Equal(t, store.Cancelled, w.row("r").Status)
			})
		})
	}
}

func TestUnloadingDoesNotDecideWhetherAWaitUnderADeadlineIsRefused(t *testing.T) {
	got := map[string]store.Status{}
	for name, after := range map[string]time.Duration{"unloaded": 10 * time.Second, "kept": -1} {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				f := durable.Go(ctx, "side", func(ctx context.Context) (int, error) {
					return durable.Step(ctx, "s", func(context.Context) (int, error) { return 1, nil })
				})
				if err := durable.Sleep(ctx, time.Minute); err != nil {
					return 0, err
				}
				limited, stop := context.WithTimeout(ctx, time.Hour)
				defer stop()
				n, err := f.Wait(limited)
				if err != nil {
					return 0, err
				}
				return n, durable.Do(ctx, "behind", doNothing)
			})
			w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, UnloadAfter: after})
			start(t, w, wf, "r", 1)
			pass(time.Hour)
			got[name] = w.row("r").Status
		})
	}
	require.Equal(t, map[string]store.Status{"kept": store.Completed, "unloaded": store.Completed}, got, "the branch had ended: there is nothing to wait for")
}
