package roundtrips

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// From the start of a run of one step to its result are three round trips to PostgreSQL: the
// creation, the step and the end. What is put in line takes one. Neither makes this engine look
// for runs to claim.
func TestAStartIsThreeRoundTripsOnPostgres(t *testing.T) {
	dsn := pgtest.DSN(t)
	p := proxy.New(t, proxy.Target(dsn))
	var c trips
	s, err := postgres.OpenOptions(p.DSN(dsn), postgres.Options{Writers: 1})
	require.NoError(t, err)
	defer s.Close()
	wf := durable.Define("one", func(ctx context.Context, n int) (int, error) {
		return durable.Step(ctx, "step", func(context.Context) (int, error) { return n, nil })
	})
	e, err := durable.Open(t.Context(), s, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), ServeQueues: []string{"here"}})
	require.NoError(t, err)
	defer e.Close()
	ctx := durable.NewContext(t.Context(), e)
	_, err = durable.Recover(ctx)
	require.NoError(t, err)
	run := func(from, to int) func() {
		return func() {
			for i := from; i < to; i++ {
				_, err := wf.Run(ctx, fmt.Sprint("r", i), i)
				require.NoError(t, err)
			}
		}
	}
	enqueue := func(from, to int) func() {
		return func() {
			for i := from; i < to; i++ {
				_, err := wf.Enqueue(ctx, fmt.Sprint("q", i), i, durable.OnQueue("elsewhere"))
				require.NoError(t, err)
			}
		}
	}
	run(0, 20)() // what the engine does once, it has done
	enqueue(0, 5)()
	p.SetPolicy(c.policy)
	const n = 200
	sent := c.during(run(20, 20+n))
	of := map[string]int{}
	for _, text := range sent {
		of[text]++
	}
	few := 20 // beats, and what they find
	require.LessOrEqual(t, len(sent), 3*n+few, "%v", of)
	require.LessOrEqual(t, len(c.during(enqueue(5, 5+n))), n+few)
}
