package proof_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// slowJob stops in the middle until a file exists.
func slowJob(o orders) *durable.Workflow[string, string] {
	return durable.Define("slow", func(ctx context.Context, who string) (string, error) {
		if err := durable.Do(ctx, "before", func(ctx context.Context) error { return nil }); err != nil {
			return "", err
		}
		v, err := durable.Step(ctx, "slow", func(ctx context.Context) (string, error) {
			fmt.Println("inside")
			for {
				if _, err := os.Stat(filepath.Join(o.Dir, "go on")); err == nil {
					return fmt.Sprint("by process ", os.Getpid()), nil
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
		if err != nil {
			return "", err
		}
		return v, durable.Do(ctx, "after", func(ctx context.Context) error { note(o, "after %d", os.Getpid()); return nil })
	})
}

// zombie starts the slow job and reports how it ended for this process.
func zombie(st store.Store, o orders) error {
	ctx := context.Background()
	wf := slowJob(o)
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet(), Lease: o.Lease})
	if err != nil {
		return err
	}
	ctx = durable.NewContext(ctx, eng)
	run, err := wf.Start(ctx, "the run", "A")
	if err != nil {
		return err
	}
	out, err := run.Wait(ctx)
	fmt.Printf("outcome %s, %v\n", out, err)
	return eng.Close()
}

func TestAKilledProcessIsTakenOverAtOnceWithoutWaitingForItsLease(t *testing.T) {
	backends(t, func(t *testing.T, o orders) {
		o.Role, o.Lease = "zombie", time.Hour
		a := start(t, o)
		a.await(t, "inside")
		a.kill(t)
		require.NoError(t, os.WriteFile(filepath.Join(o.Dir, "go on"), nil, 0o600))
		st, err := openStore(o.Backend, o.DSN)
		require.NoError(t, err)
		defer st.Close()
		a.isGone(t, st) // its lease would run for an hour
		wf := slowJob(o)
		b, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet()})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(durable.NewContext(t.Context(), b), time.Minute)
		defer stop()
		rep, err := durable.Recover(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"the run"}, rep.Resumed)
		h, err := wf.Handle(ctx, "the run")
		require.NoError(t, err)
		_, err = h.Wait(ctx)
		require.NoError(t, err)
		require.NoError(t, b.Close())
	})
}
