package proof_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func init() { operations["patients"] = patients }

// patientCount is more than the first claim of a recovery takes.
const patientCount = 80

// patient has steps of which a process may be killed in any.
func patient(o orders, hold func()) *durable.Workflow[int, int] {
	return durable.Define("patient", func(ctx context.Context, n int) (int, error) {
		for i := range 3 {
			if err := durable.Do(ctx, fmt.Sprint("step ", i), func(context.Context) error {
				if i == 1 && hold != nil {
					hold()
				}
				return nil
			}); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// patients starts runs and leaves them in the middle, or recovers them and dies at a write.
func patients(st store.Store, o orders) error {
	if o.Life == 0 {
		there := make(chan struct{}, patientCount)
		wf := patient(o, func() { there <- struct{}{}; select {} })
		ctx, _, err := boot(st, o, wf)
		if err != nil {
			return err
		}
		if _, err := wf.StartAll(ctx, func(yield func(string, int) bool) {
			for n := range patientCount {
				if !yield(fmt.Sprint("patient ", n), n) {
					return
				}
			}
		}); err != nil {
			return err
		}
		for range patientCount {
			<-there
		}
		fmt.Println("in the middle")
		die()
	}
	f := &fatal{fullStore: st.(fullStore), at: int64(o.New), after: o.Hold == "after", which: func(write any) bool {
		_, claim := write.([]store.Run)
		return claim || o.Write == "any"
	}}
	_, eng, err := boot(f, o, patient(o, nil))
	if err != nil {
		return err
	}
	for {
		n, err := st.Count(context.Background(), store.Filter{Statuses: []store.Status{store.Completed, store.Failed}}, "")
		if err != nil {
			return err
		}
		if n[""] == patientCount {
			f.over.Store(true)
			if err := eng.Close(); err != nil { // after it no write is under way, at which it would die
				return err
			}
			fmt.Println("writes", f.n.Load())
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// cutOffPatients leaves a set in the middle.
func cutOffPatients(t *testing.T, o orders) store.Store {
	t.Helper()
	o.Role, o.Life = "patients", 0
	c := start(t, o)
	c.await(t, "in the middle")
	require.Error(t, c.Wait(), "it has killed itself")
	st, err := openStore(o.Backend, o.DSN)
	require.NoError(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

// life is a process that recovers the set; killed says that it died at its write.
func life(t *testing.T, o orders, st store.Store) (killed bool) {
	t.Helper()
	o.Role = "patients"
	await(t, st)
	c := start(t, o)
	done := false
	for c.out.Scan() {
		require.NotContains(t, c.out.Text(), "error")
		done = done || strings.HasPrefix(c.out.Text(), "writes")
	}
	require.Equal(t, done, c.Wait() == nil, "it has been killed, or has ended")
	return !done
}

// cured checks that all runs of the set have ended well, each step recorded once.
func cured(t *testing.T, st store.Store) {
	t.Helper()
	for n := range patientCount {
		h, err := st.Load(t.Context(), fmt.Sprint("patient ", n), store.Cursor{})
		require.NoError(t, err)
		require.Equal(t, store.Completed, h.Run.Status, "%s: %s", h.Run.ID, h.Run.Reason)
		var keys []string
		for e, err := range h.Events {
			require.NoError(t, err)
			if e.Type == store.StepCompleted {
				keys = append(keys, e.Key)
			}
		}
		require.Equal(t, []string{"step 0", "step 1", "step 2"}, keys, h.Run.ID)
	}
}

// A process that dies with a set claimed, and nothing of it begun, strikes nobody, however many do.
func TestProcessesThatDieWithASetClaimedStrikeNobody(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, o orders) {
		o.Lease, o.New = time.Second, 1
		st := cutOffPatients(t, o)
		for o.Life = 1; o.Life <= 5; o.Life++ {
			require.True(t, life(t, o, st))
		}
		o.New = 0
		require.False(t, life(t, o, st))
		cured(t, st)
	})
}

// Of two processes that recover a set, the first dies at its n-th write and the second at the one
// after: as quarantine needs three deaths in a step, nobody is set aside, and all runs end.
func TestASetIsRecoveredWhateverWriteOfItsRecoveryIsTheLast(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			backends(t, func(t *testing.T, o orders) {
				dir, killed := o.Dir, 0
				for n := 1; n <= 7; n += 2 {
					o.Lease, o.Hold, o.Write = time.Second, when, "any"
					o.DSN = freshDSN(t, o, dir, n)
					st := cutOffPatients(t, o)
					for o.Life = 1; o.Life <= 2; o.Life++ {
						if o.New = n + o.Life - 1; life(t, o, st) {
							killed++
						}
					}
					o.New = 0
					require.False(t, life(t, o, st))
					cured(t, st)
				}
				require.GreaterOrEqual(t, killed, 4, "it was killed some times")
			})
		})
	}
}

// freshDSN returns the address of a new store for the n-th try.
func freshDSN(t *testing.T, o orders, dir string, n int) string {
	if o.Backend == "postgres" {
		return pgtest.DSN(t)
	}
	return filepath.Join(dir, fmt.Sprint(n, ".db"))
}

// await waits until no executor is taken for alive.
func await(t *testing.T, st store.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		all, err := st.Executors(t.Context())
		require.NoError(t, err)
		return !slices.ContainsFunc(all, func(x store.Executor) bool { return x.Live })
	}, 20*time.Second, 5*time.Millisecond)
}
