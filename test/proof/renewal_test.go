package proof_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// tally is what a loop that renews itself hands on to the next generation.
type tally struct{ Generation, Sum int }

// loop adds the number of each of its generations, in two steps, and goes on
// until it is told to stop.
func loop(o orders) *durable.Workflow[tally, tally] {
	return durable.Define("loop", func(ctx context.Context, in tally) (tally, error) {
		sum := in.Sum
		for _, name := range []string{"add", "add again"} {
			n, err := durable.Step(ctx, name, func(context.Context) (int, error) { return in.Generation, nil })
			if err != nil {
				return in, err
			}
			sum += n
		}
		more, err := durable.Step(ctx, "more", func(context.Context) (bool, error) {
			_, err := os.Stat(filepath.Join(o.Dir, "enough"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
			fmt.Println("generation", in.Generation)
			return err != nil, nil
		})
		if err != nil {
			return in, err
		}
		if !more {
			return tally{in.Generation, sum}, nil
		}
		return in, durable.Continue(ctx, tally{in.Generation + 1, sum})
	})
}

// looper executes the loop until it ends.
func looper(st store.Store, o orders) error {
	ctx := context.Background()
	wf := loop(o)
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet(), Lease: o.Lease, QuarantineAfter: 1 << 20})
	if err != nil {
		return err
	}
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		return err
	}
	run, err := wf.Start(ctx, "the run", tally{Generation: 1})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	out, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Println("outcome", out.Generation, out.Sum)
	return eng.Close()
}

func TestALoopThatRenewsItselfIsKilledFiftyTimesAndAddsUp(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, o orders) {
		seed := uint64(time.Now().UnixNano())
		if v := os.Getenv("HOLDFAST_SEED"); v != "" {
			var err error
			seed, err = strconv.ParseUint(v, 10, 64)
			require.NoError(t, err)
		}
		t.Logf("seed %d (HOLDFAST_SEED repeats the moments of the kills)", seed)
		rnd := rand.New(rand.NewPCG(seed, 1))
		o.Role, o.Lease = "looper", time.Second
		seen := 0
		for range 50 {
			c := start(t, o)
			c.await(t, "ready")
			time.Sleep(time.Duration(rnd.IntN(30_000)) * time.Microsecond) // the random moment of the kill, no wait for anything
			for _, line := range c.kill(t) {
				if n, ok := strings.CutPrefix(line, "generation "); ok {
					g, err := strconv.Atoi(n)
					require.NoError(t, err)
					require.GreaterOrEqual(t, g, seen, "a generation that was closed is executed again")
					seen = g
				}
				require.False(t, strings.HasPrefix(line, "error"), line)
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(o.Dir, "enough"), nil, 0o600))
		last := start(t, o)
		var got tally
		_, err := fmt.Sscan(last.await(t, "outcome"), &got.Generation, &got.Sum)
		require.NoError(t, err)
		require.NoError(t, last.Wait())
		t.Logf("%d generations", got.Generation)
		require.GreaterOrEqual(t, got.Generation, seen)
		require.Greater(t, got.Generation, 10, "the kills came too early for it to renew itself")
		require.Equal(t, got.Generation*(got.Generation+1), got.Sum)
		generationsAreComplete(t, o, got.Generation)
	})
}

// generationsAreComplete reads the log of the loop back: each generation has what
// it must have, once.
func generationsAreComplete(t *testing.T, o orders, count int) {
	st, err := openStore(o.Backend, o.DSN)
	require.NoError(t, err)
	defer st.Close()
	h, err := st.Load(t.Context(), "the run", store.Cursor{All: true})
	require.NoError(t, err)
	var before store.Event
	n, has := 1, map[string]int{}
	for e, err := range h.Events {
		require.NoError(t, err)
		require.Equal(t, before.Seq+1, e.Seq)
		require.Equal(t, store.Seal("the run", before.Sum, &e), e.Sum, "event %d", e.Seq)
		switch e.Type {
		case store.StepCompleted:
			has[e.Key]++
		case store.WorkflowContinued, store.WorkflowCompleted:
			require.Equal(t, map[string]int{"add": 1, "add again": 1, "more": 1}, has, "generation %d", n)
			clear(has)
			if e.Type == store.WorkflowContinued {
				n++
			}
		}
		before = e
	}
	require.Equal(t, count, n)
	require.EqualValues(t, count-1, h.Run.Generation)
	require.Equal(t, store.Completed, h.Run.Status)
}
