//go:build unix

package proof_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// sagaOf is a chain of cheap steps that is undone in the end. Each body says in
// the journal that it begins, and then that it has ended.
func sagaOf(o orders) *durable.Workflow[int, int] {
	begins := func(ctx context.Context) error {
		note(o, "%d %s", os.Getpid(), durable.Attempt(ctx).Key)
		time.Sleep(10 * time.Millisecond)
		f, err := os.OpenFile(filepath.Join(o.Dir, "ended"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(".")
		return errors.Join(err, f.Close())
	}
	return durable.Define("saga", func(ctx context.Context, n int) (int, error) {
		for i := range n {
			if err := durable.Compensate(ctx, fmt.Sprint("undo ", i), begins); err != nil {
				return 0, err
			}
			if err := durable.Do(ctx, fmt.Sprint("do ", i), begins, durable.Relaxed()); err != nil {
				return 0, err
			}
		}
		return 0, durable.Permanent(errors.New("enough"))
	})
}

func init() { operations["saga"] = saga }

// saga starts one and waits for its end.
func saga(st store.Store, o orders) error {
	ctx := context.Background()
	wf := sagaOf(o)
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet(), Lease: o.Lease})
	if err != nil {
		return err
	}
	ctx = durable.NewContext(ctx, eng)
	run, err := wf.Start(ctx, "the run", 40)
	if err != nil {
		return err
	}
	fmt.Println("inside")
	_, err = run.Wait(ctx)
	fmt.Println("outcome", err != nil)
	return eng.Close()
}

// freeze stops a process at a moment at which it holds no lock on the database:
// one that is stopped within a write to SQLite keeps everybody else from writing
// until it goes on or is killed. Once it is stopped, fits says whether the moment is right.
func freeze(t *testing.T, o orders, a *child, fits func() bool) {
	t.Helper()
	for {
		standStill(t, a)
		if fits() && (o.Backend != "sqlite" || writable(t, o.DSN)) {
			return
		}
		require.NoError(t, a.Process.Signal(syscall.SIGCONT))
		time.Sleep(time.Millisecond) // so that it comes past that moment
	}
}

// standStill stops a process, and returns when it has stopped: until one of its threads has taken
// the signal, all of them run on, on a busy machine for milliseconds.
func standStill(t *testing.T, a *child) {
	t.Helper()
	require.NoError(t, a.Process.Signal(syscall.SIGSTOP))
	for {
		var is syscall.WaitStatus
		_, err := syscall.Wait4(a.Process.Pid, &is, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		require.NoError(t, err)
		require.True(t, is.Stopped(), "the process has ended: %v", is)
		return
	}
}

// anyMoment is right.
func anyMoment() bool { return true }

// inBody reports whether a body of a saga whose process is stopped has begun, and not ended. Between
// the last look at the lease and the first line of a body there is a moment in which a stop makes two
// owners overlap, whatever a library does.
func inBody(o orders) bool {
	begun, _ := os.ReadFile(filepath.Join(o.Dir, "journal"))
	ended, _ := os.ReadFile(filepath.Join(o.Dir, "ended"))
	return strings.Count(string(begun), "\n") > len(ended)
}

// writable reports whether nobody holds the lock for writing for a second.
func writable(t *testing.T, file string) bool {
	t.Helper()
	db, err := sql.Open("sqlite3", file+"?_busy_timeout=1000&_txlock=immediate")
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		require.ErrorContains(t, err, "database is locked")
		return false
	}
	require.NoError(t, tx.Rollback())
	return true
}

// A process that was stopped beyond its lease, in steps or in compensations, goes
// on when another one has its run, and begins nothing.
func TestAProcessThatWasStoppedBeginsNoBodyBesideTheNextOwner(t *testing.T) {
	inTurn(t, func(t *testing.T, o orders) { // a stop between the last look at the lease and the body is likelier on a busy machine
		o.Role, o.Lease = "saga", 500*time.Millisecond
		for _, at := range []time.Duration{150 * time.Millisecond, 600 * time.Millisecond} {
			o.Dir = t.TempDir()
			a := start(t, o)
			a.await(t, "inside")
			time.Sleep(at) // which body that hits is for chance to say
			freeze(t, o, a, func() bool { return inBody(o) })

			st, err := openStore(o.Backend, o.DSN)
			require.NoError(t, err)
			wf := sagaOf(o)
			b, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet(), Lease: o.Lease})
			require.NoError(t, err)
			ctx := durable.NewContext(t.Context(), b)
			_, err = durable.Recover(ctx)
			require.NoError(t, err)
			ours := fmt.Sprint(os.Getpid(), " ")
			begun := func() []string {
				j, _ := os.ReadFile(filepath.Join(o.Dir, "journal"))
				return strings.Split(strings.TrimSpace(string(j)), "\n")
			}
			require.Eventually(t, func() bool {
				lines := begun() // once: it grows
				return strings.HasPrefix(lines[len(lines)-1], ours)
			}, 30*time.Second, 5*time.Millisecond)
			require.NoError(t, a.Process.Signal(syscall.SIGCONT))
			h, err := wf.Handle(ctx, "the run")
			require.NoError(t, err)
			_, err = h.Wait(ctx)
			require.Error(t, err)
			a.await(t, "outcome")
			require.NoError(t, a.Wait())
			taken := false
			for _, line := range begun() {
				taken = taken || strings.HasPrefix(line, ours)
				require.Equal(t, taken, strings.HasPrefix(line, ours), "a body of the former owner beside the new one's: %v", begun())
			}
			require.NoError(t, b.Close())
			_, err = st.Delete(t.Context(), store.Deletion{RunIDs: []string{"the run"}})
			require.NoError(t, err)
			require.NoError(t, st.Close())
		}
	})
}
