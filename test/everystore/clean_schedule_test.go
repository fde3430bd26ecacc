package everystore_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A schedule waits for the run before, and that is deleted.
func TestAScheduleGoesOnWhenTheRunItWaitsForIsDeleted(t *testing.T) {
	for name, policy := range map[string]durable.OverlapPolicy{"skip": durable.OverlapSkip, "queue": durable.OverlapQueue, "cancel": durable.OverlapCancel} {
		t.Run(name, func(t *testing.T) {
			b := backends[0] // in virtual time; what a store does with what is deleted is tried elsewhere
			b.run(t, func(t *testing.T) {
				p := newPool(t, b)
				defer p.close(t)
				d := p.get(t)
				wf := durable.Define("slow", func(ctx context.Context, n int) (string, error) {
					return durable.Await[string](ctx, "never")
				})
				options := durable.Options{Workflows: []durable.Definition{wf}, Lease: 2 * time.Second, Schedules: []durable.Schedule{
					wf.Schedule("every", durable.Every(time.Second), 1).Overlap(policy).Missed(durable.MissedOnce),
				}}
				open := func(o durable.Options) *durable.Engine {
					st, err := d.open()
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, st.Close()) })
					if len(o.Workflows) == 0 {
						o.Logger = slog.New(slog.DiscardHandler)
						eng, err := durable.Open(t.Context(), st, o)
						require.NoError(t, err)
						return eng
					}
					return runProgram(t, st, o).eng
				}
				all := func() (runs []store.Run) {
					page, err := d.outside.List(t.Context(), store.Filter{Workflows: []string{"slow"}, Limit: 100})
					require.NoError(t, err)
					return page.Runs
				}
				eng := open(options)
				require.Eventually(t, func() bool { return len(all()) > 0 && all()[0].Status == store.Waiting }, patience, 5*time.Millisecond)
				first := all()[0].ID
				require.Eventually(t, func() bool { // another time has come
					list, err := operate.On(eng).Schedules(t.Context(), "every")
					require.NoError(t, err)
					s := &list[0]
					return s.Started+s.Skipped+int64(len(s.Held)) > 1
				}, patience, 5*time.Millisecond)
				require.NoError(t, eng.Close())
				client := open(durable.Options{Lease: longLease})
				_, err := operate.On(client).Clean(t.Context(), operate.CleanOptions{All: true, Idle: true})
				require.NoError(t, err)
				require.Empty(t, all())
				require.NoError(t, client.Close())
				open(options)
				require.Eventually(t, func() bool {
					runs := all()
					return len(runs) > 0 && runs[0].ID != first
				}, 8*time.Second, 20*time.Millisecond)
			})
		})
	}
}
