package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// rowCounter counts the rows that a store lists.
type rowCounter struct {
	store.Store
	rows atomic.Int64
}

func (c *rowCounter) List(ctx context.Context, f store.Filter) (store.Page, error) {
	p, err := c.Store.List(ctx, f)
	c.rows.Add(int64(len(p.Runs)))
	return p, err
}

func TestTheStuckAreFoundWithoutReadingTheManyThatSleep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nap := func(ctx context.Context, _ string) (string, error) { return "", durable.Sleep(ctx, 24*time.Hour) }
		named := func(name string, versions ...string) *durable.Workflow[string, string] {
			var o []durable.DefineOption
			for _, v := range versions {
				o = append(o, durable.Version(v))
			}
			return durable.Define(name, nap, o...)
		}
		first, second, other := named("nap", "1"), named("nap", "2"), named("other", "1")
		w.boot(t, durable.Options{Workflows: []durable.Definition{first, other}})
		start := func(wf *durable.Workflow[string, string], id string) {
			_, err := wf.Start(w.ctx(), id, "")
			require.NoError(t, err)
		}
		start(first, "old")
		start(other, "foreign")
		pass(time.Second)
		w.crash()
		w.expire()
		w.serve(t, second)
		for i := range 300 {
			start(second, fmt.Sprint("sleeps-", i))
		}
		start(second, "paused")
		pass(time.Second)
		require.NoError(t, w.eng.Pause(w.ctx(), "paused", "lunch"))
		pass(time.Minute)

		counter := &rowCounter{Store: w.eng.Store()}
		looks, err := durable.Open(context.Background(), counter, durable.Options{Logger: slog.New(w.log)})
		require.NoError(t, err)
		defer looks.Close()
		counter.rows.Store(0)
		found, err := operate.On(looks).Stuck(w.ctx(), 10) // it looks at as many that wait as it may list
		require.NoError(t, err)
		codes := map[string]string{}
		for _, s := range found {
			codes[s.RunID] = s.Code
		}
		require.Equal(t, map[string]string{"old": durable.CodeNotRegistered, "foreign": durable.CodeNotRegistered, "paused": durable.CodePaused}, codes)
		require.Less(t, counter.rows.Load(), int64(20), "rows were read of runs that sleep soundly")
	})
}
