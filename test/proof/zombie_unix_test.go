//go:build unix

package proof_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// zombies is how many processes are stopped beyond their lease, per store.
func zombies() int {
	if soaking() {
		return 25
	}
	return 1
}

func TestAStoppedProcessCannotWriteOnceAnotherHasTakenItsRun(t *testing.T) {
	backends(t, func(t *testing.T, o orders) {
		for range zombies() {
			o.Dir = t.TempDir()
			stoppedBesideTheNextOwner(t, o)
		}
		tried.Say(t, "zombies", "store=%s zombies=%d writes=0", o.Backend, zombies())
	})
}

func stoppedBesideTheNextOwner(t *testing.T, o orders) {
	t.Helper()
	o.Role, o.Lease = "zombie", 500*time.Millisecond
	a := start(t, o)
	a.await(t, "inside")
	freeze(t, o, a, anyMoment)

	st, err := openStore(o.Backend, o.DSN)
	require.NoError(t, err)
	defer st.Close()
	wf := slowJob(o)
	b, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet(), Lease: o.Lease})
	require.NoError(t, err)
	ctx := durable.NewContext(t.Context(), b)
	_, err = durable.Recover(ctx)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(o.Dir, "go on"), nil, 0o600))
	h, err := wf.Handle(ctx, "the run")
	require.NoError(t, err)
	out, err := h.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint("by process ", os.Getpid()), out)

	// A wakes up inside its step, whose outcome it can no longer record.
	require.NoError(t, a.Process.Signal(syscall.SIGCONT))
	require.Equal(t, fmt.Sprintf("by process %d, <nil>", os.Getpid()), a.await(t, "outcome"), "A reads what B has recorded")
	require.NoError(t, a.Wait())

	count := map[store.Type]int{}
	owners := map[int64]bool{}
	for ev, err := range b.History(ctx, "the run") {
		require.NoError(t, err)
		count[ev.Type]++
		owners[ev.Epoch] = true
	}
	require.Equal(t, 1, count[store.WorkflowCompleted])
	require.Equal(t, 1, count[store.RunResumed])
	require.Equal(t, 3, count[store.StepCompleted])
	j, err := os.ReadFile(filepath.Join(o.Dir, "journal"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("after %d\n", os.Getpid()), string(j), "A began no further step")
	require.NoError(t, b.Close())
	_, err = st.Delete(t.Context(), store.Deletion{RunIDs: []string{"the run"}})
	require.NoError(t, err)
}
