//go:build unix

package transactions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// victimVariable makes the test binary a victim, and says which.
const victimVariable = "HOLDFAST_TRANSACTIONS_VICTIM"

// A victim is a process that executes a transfer and kills itself with SIGKILL on
// the way.
type victim struct {
	Kind, DSN string
	At        string // where; empty: nowhere
	Nth       int64  // the how manieth time
}

// The places, in the order in which a step comes to them.
const (
	beforeBody = "before the body"
	inBody     = "in the body, after its writes"
	afterBody  = "after the body"
	atCommit   = "before the change and the commit"
	committed  = "after the commit, before its answer is known"
)

var places = []string{beforeBody, inBody, afterBody, atCommit, committed}

func (v *victim) reach(n *atomic.Int64, at string) {
	if v.At == at && n.Add(1) == v.Nth {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it is on its way
	}
}

// deadly is a store whose process dies at a commit of a transaction.
type deadly struct {
	store.Store
	store.Transactor
	v *victim
	n *atomic.Int64
}

type deadlyTx struct {
	store.Tx
	s deadly
}

func (s deadly) BeginTx(ctx context.Context) (store.Tx, error) {
	tx, err := s.Transactor.BeginTx(ctx)
	return deadlyTx{tx, s}, err
}

func (t deadlyTx) Commit(c store.Change) error {
	t.s.v.reach(t.s.n, atCommit)
	err := t.Tx.Commit(c)
	t.s.v.reach(t.s.n, committed)
	return err
}

func beVictim(spec string) {
	var v victim
	if err := json.Unmarshal([]byte(spec), &v); err != nil {
		panic(err)
	}
	var n atomic.Int64
	killing = func(place string) { v.reach(&n, place) }
	st := (&bank{kind: v.Kind, dsn: v.DSN}).open(panicking{})
	wf := transfer()
	e, err := durable.Open(context.Background(), deadly{st, store.CapabilitiesOf(st).Transactor, &v, &n}, durable.Options{
		Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler),
		Around: []func(context.Context, durable.AttemptInfo, func(context.Context) error) error{
			func(ctx context.Context, a durable.AttemptInfo, next func(context.Context) error) error {
				if !strings.HasSuffix(a.Key, "first") && !strings.HasSuffix(a.Key, "move") && !strings.HasSuffix(a.Key, "last") {
					return next(ctx)
				}
				v.reach(&n, beforeBody)
				err := next(ctx)
				v.reach(&n, afterBody)
				return err
			},
		},
	})
	if err == nil {
		ctx := durable.NewContext(context.Background(), e)
		if _, err = durable.Recover(ctx); err == nil {
			_, err = wf.Run(ctx, "r", 1)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = e.Close()
	_ = st.Close()
	os.Exit(0)
}

// panicking is a testing.TB for a process that is no test.
type panicking struct{ testing.TB }

func (panicking) Helper()                   {}
func (panicking) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (panicking) FailNow()                  { panic("failed") }

// run executes the victim, and reports whether it was killed.
func (v victim) run(t *testing.T) (killed bool) {
	t.Helper()
	spec, err := json.Marshal(v)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"="+string(spec))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%v: %s", err, out)
	return true
}

func TestATransferHappensOnceWhereverItsProcessIsKilled(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		for _, at := range places {
			for nth := range int64(movesOfATransfer) {
				if testing.Short() && nth%2 == 1 {
					continue
				}
				t.Run(fmt.Sprintf("%s %d", at, nth+1), func(t *testing.T) {
					b := newBank(t, b.kind)
					v := victim{Kind: b.kind, DSN: b.dsn, At: at, Nth: nth + 1}
					require.True(t, v.run(t), "it was killed")
					require.Equal(t, accounts*deposit, b.sum(t), "the sum right after the kill")
					require.False(t, victim{Kind: b.kind, DSN: b.dsn}.run(t))
					b.requireOnce(t, 1)
				})
			}
		}
	})
}

// The COMMIT is sent and its process is gone: the server carries it out, or it does not.
func TestATransferHappensOnceWhenItsProcessIsKilledAtTheServersCommit(t *testing.T) {
	for nth := range 12 {
		b := newBank(t, "postgres")
		p := proxy.New(t, proxy.Target(b.dsn))
		spec, err := json.Marshal(victim{Kind: b.kind, DSN: p.DSN(b.dsn)})
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), victimVariable+"="+string(spec))
		var n atomic.Int64
		p.SetPolicy(func(r proxy.Request) proxy.Action {
			commit := slices.ContainsFunc(r.SQL, func(sql string) bool { return strings.HasPrefix(sql, "COMMIT") })
			if !commit || n.Add(1) != int64(nth+1) {
				return proxy.Pass
			}
			_ = cmd.Process.Kill()
			if nth%2 == 0 {
				return proxy.CutBlind
			}
			return proxy.CutBefore
		})
		require.NoError(t, cmd.Start())
		_ = cmd.Wait()
		p.SetPolicy(nil)
		require.False(t, victim{Kind: b.kind, DSN: b.dsn}.run(t))
		b.requireOnce(t, 1)
	}
}
