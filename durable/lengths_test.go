package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// listCounter counts the pages that a store is asked for.
type listCounter struct {
	store.Store
	pages atomic.Int64
}

func (c *listCounter) List(ctx context.Context, f store.Filter) (store.Page, error) {
	c.pages.Add(1)
	return c.Store.List(ctx, f)
}

func TestWhoAsksForARunAgainAndAgainCostsNoListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := memory.Open()
		counted := &listCounter{Store: data}
		twice := durable.Define("twice", func(ctx context.Context, steps int) (int, error) {
			if _, err := durable.Await[bool](ctx, "go"); err != nil {
				return 0, err
			}
			for range steps {
				if err := durable.Do(ctx, "again", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			return steps, nil
		})
		ctx := t.Context()
		open := func(st store.Store) *durable.Engine {
			eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{twice}})
			require.NoError(t, err)
			return eng
		}
		here, there := open(counted), open(data.Handle())
		defer func() { require.NoError(t, here.Close()); require.NoError(t, there.Close()) }()
		total := func() int {
			info, err := here.Get(ctx, "waits")
			require.NoError(t, err)
			return info.Total
		}
		complete := func(eng *durable.Engine, id string, steps int) {
			run, err := twice.Start(durable.NewContext(ctx, eng), id, steps)
			require.NoError(t, err)
			require.NoError(t, eng.Signal(ctx, id, "go", true))
			_, err = run.Wait(ctx)
			require.NoError(t, err)
			synctest.Wait()
		}
		_, err := twice.Start(durable.NewContext(ctx, here), "waits", 1)
		require.NoError(t, err)
		synctest.Wait()

		none := total()
		asked := counted.pages.Load()
		for range 100 {
			require.Equal(t, none, total())
		}
		require.Equal(t, asked, counted.pages.Load())

		complete(here, "longer", 3)
		require.Equal(t, none+3, total(), "a run that this engine completes counts at once")
		complete(there, "longest", 7)
		time.Sleep(time.Second)
		require.Equal(t, none+7, total(), "one of another process within a second")
	})
}
