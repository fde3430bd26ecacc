package everystore_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// cellar is an archive that holds whatever it is given.
type cellar struct{ files sync.Map }

func (c *cellar) Store(_ context.Context, id string, file []byte) error {
	c.files.Store(id, file)
	return nil
}

// Who cleans everything away takes what nobody executes, whether it has ended or not,
// but nothing that the archive lacks or would bring back, no child of a run that stays,
// and never what is executed.
func TestIdleRunsAreCleanedAwayAndWhatTheArchiveLacksStaysOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		asks := durable.Define("asks", func(ctx context.Context, _ int) (int, error) {
			if _, err := durable.Await[int](ctx, "answer"); err != nil {
				return 0, err
			}
			return 1, durable.Do(ctx, "work", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		})
		two := durable.Define("two", func(ctx context.Context, _ int) (int, error) {
			if _, err := durable.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
			return durable.Await[int](ctx, "answer")
		})
		boss := durable.Define("boss", func(ctx context.Context, _ int) (int, error) { return two.Run(ctx, durable.AutoID, 1) })
		quick := durable.Define("quick", func(context.Context, int) (int, error) { return 1, nil })
		process := func(act func(ctx context.Context, eng *durable.Engine)) {
			st, release := d.handle(t, b, 0)
			defer release()
			eng, err := durable.Open(context.Background(), st, durable.Options{
				Workflows: []durable.Definition{asks, two, boss, quick}, Logger: slog.New(slog.DiscardHandler), Grace: -1, Archive: new(cellar),
			})
			require.NoError(t, err)
			ctx, stop := context.WithTimeout(durable.NewContext(context.Background(), eng), patience)
			defer stop()
			act(ctx, eng)
			require.NoError(t, eng.Close())
		}
		until := func(ctx context.Context, eng *durable.Engine, id string, ok func(*store.Run) bool) {
			for ctx.Err() == nil {
				page, err := eng.List(ctx, store.Filter{IDs: []string{id}, WithLast: true})
				require.NoError(t, err)
				if len(page.Runs) == 1 && ok(&page.Runs[0]) {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
			require.Fail(t, "waited in vain", id)
		}
		archived := func(r *store.Run) bool { return r.Status != store.Running && r.ArchivedSeq == r.Last.Seq }
		paused := func(r *store.Run) bool { return r.Paused && r.Owner == "" }
		waiting := func(r *store.Run) bool { return r.Status == store.Waiting }

		process(func(ctx context.Context, eng *durable.Engine) {
			_, err := quick.Run(ctx, "ended", 1)
			require.NoError(t, err)
			for _, id := range []string{"asks", "answered"} {
				_, err = asks.Start(ctx, id, 1)
				require.NoError(t, err)
				until(ctx, eng, id, archived)
			}
			until(ctx, eng, "ended", archived)
			// It has been archived, goes on, and is interrupted by the end of this engine.
			require.NoError(t, eng.Signal(ctx, "answered", "answer", 1))
			until(ctx, eng, "answered", func(r *store.Run) bool { return r.Status == store.Running })
		})
		process(func(ctx context.Context, eng *durable.Engine) {
			_, err := operate.On(eng).Clean(ctx, operate.CleanOptions{Idle: true})
			require.ErrorIs(t, err, durable.ErrInvalid)
			_, err = operate.On(eng).Clean(ctx, operate.CleanOptions{All: true, Statuses: []store.Status{store.Waiting}})
			require.ErrorIs(t, err, durable.ErrInvalid)
			dry, err := operate.On(eng).Clean(ctx, operate.CleanOptions{All: true, Idle: true, DryRun: true})
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"ended"}, dry.IDs)
			require.Equal(t, 2, dry.Unarchived, "the one that went on, and the one whose copy waits")
			require.Equal(t, 2, dry.Kept)

			_, err = boss.Start(ctx, "boss", 1)
			require.NoError(t, err)
			until(ctx, eng, "boss/two", waiting)
			require.NoError(t, eng.Pause(ctx, "boss/two", "lunch"))
			until(ctx, eng, "boss/two", paused)
			until(ctx, eng, "boss", func(r *store.Run) bool { return waiting(r) && r.Owner == eng.ID() })
			dry, err = operate.On(eng).Clean(ctx, operate.CleanOptions{All: true, Idle: true, Force: true, DryRun: true})
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"answered", "asks", "ended"}, dry.IDs, "boss is executed, and its child stays with it")

			for _, step := range []struct {
				force bool
				gone  int
				left  []string
			}{
				{false, 1, []string{"answered", "asks", "boss", "boss/two"}},
				{true, 2, []string{"boss", "boss/two"}},
				{true, 0, []string{"boss", "boss/two"}},
			} {
				did, err := operate.On(eng).Clean(ctx, operate.CleanOptions{All: true, Idle: true, Force: step.force})
				require.NoError(t, err)
				require.Equal(t, step.gone, did.Runs)
				require.Equal(t, len(step.left), did.Kept)
				page, err := eng.List(ctx, store.Filter{})
				require.NoError(t, err)
				var left []string
				for i := range page.Runs {
					left = append(left, page.Runs[i].ID)
				}
				slices.Sort(left)
				require.Equal(t, step.left, left)
			}

			// What stayed is whole.
			_, err = durable.Recover(ctx)
			require.NoError(t, err)
			require.NoError(t, eng.Unpause(ctx, "boss/two"))
			require.NoError(t, eng.Signal(ctx, "boss/two", "answer", 7))
			h, err := boss.Handle(ctx, "boss")
			require.NoError(t, err)
			out, err := h.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 7, out)
		})
	})
}
