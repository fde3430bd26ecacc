//go:build unix

package proof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// spell is a time in which something held, in µs.
type spell struct{ from, to int64 }

// stroll is one body of a walker.
type stroll struct {
	spell
	walker, pid string
}

// overlaps is what was measured of two processes that had the same run.
type overlaps struct {
	bodies, late  int           // pairs of bodies of one run that ran in two processes at once; bodies begun by who had lost the run
	watching, all time.Duration // the longest time at once, of bodies that look at their context, and of all
	lateBy        time.Duration // the longest time after the loss at which a body began
}

// An owner that is stopped beyond its lease, or cut off from its database, has lost
// its runs, and its bodies may still run. How long is measured here, and bounded.
func TestWhoHasLostARunBeginsNothingMoreAndEndsWhatItHasBegun(t *testing.T) {
	rounds := 1
	if soaking() {
		rounds = 8
	}
	// Each has the way to the database that ways says, and loses what the other has then, in turn.
	lose := func(t *testing.T, o orders, ways [2]string, stop, goOn func(i int, a *child), idle func(pid string, s spell)) {
		t.Helper()
		o.Role, o.Lease, o.New, o.Life = "walker", walkerLease, walkerCount, rounds
		var both [2]*child
		for i := range both {
			o.DSN = ways[i]
			both[i] = start(t, o)
			both[i].await(t, "ready")
			o.New = 0
		}
		for n := range rounds {
			a := both[n%2]
			time.Sleep(500 * time.Millisecond)
			from := time.Now().UnixMicro()
			stop(n%2, a)
			time.Sleep(3 * walkerLease)
			to := time.Now().UnixMicro()
			goOn(n%2, a)
			idle(fmt.Sprint(a.Process.Pid), spell{from, to})
			time.Sleep(walkerLease)
		}
		for _, a := range both {
			require.NoError(t, a.Wait())
		}
	}
	measure := func(t *testing.T, o orders, stopped map[string][]spell) {
		t.Helper()
		st, err := openStore(o.Backend, o.DSN)
		require.NoError(t, err)
		defer st.Close()
		got := measureOverlaps(t, st, o, stopped)
		t.Logf("%d pairs of bodies of one run ran in two processes at once, for at most %s (%s of those that look at their context); %d bodies were begun by a process that had lost the run, at most %s after that",
			got.bodies, got.all, got.watching, got.late, got.lateBy)
		for n := range walkerCount {
			require.GreaterOrEqual(t, len(claims(t, st, fmt.Sprint("walker ", n))), 1+rounds, "walker %d was lost each time", n)
		}
		// A process may be stopped between its last look at the lease and the body.
		require.LessOrEqual(t, got.late, walkerCount*len(stopped), "docs/semantics.md, G4: no body begins once the lease has run out")
		require.LessOrEqual(t, got.watching, walkerLease, "docs/semantics.md, G4: the contexts of bodies under way end")
		require.LessOrEqual(t, got.all, walkerLease+walkerStep, "no body is longer than that")
		tried.Say(t, "owners", "store=%s times=%d", o.Backend, rounds)
	}
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		backends(t, func(t *testing.T, o orders) {
			stopped := map[string][]spell{}
			lose(t, o, [2]string{o.DSN, o.DSN}, func(_ int, a *child) { freeze(t, o, a, anyMoment) },
				func(_ int, a *child) { require.NoError(t, a.Process.Signal(syscall.SIGCONT)) },
				func(pid string, s spell) { stopped[pid] = append(stopped[pid], s) })
			measure(t, o, stopped)
		})
	})
	t.Run("cut off", func(t *testing.T) {
		t.Parallel()
		backends(t, func(t *testing.T, o orders) {
			if o.Backend != "postgres" {
				return // a file cannot be cut off
			}
			between := [2]*proxy.Proxy{proxy.New(t, proxy.Target(o.DSN)), proxy.New(t, proxy.Target(o.DSN))}
			lose(t, o, [2]string{between[0].DSN(o.DSN), between[1].DSN(o.DSN)},
				func(i int, _ *child) {
					between[i].SetPolicy(func(proxy.Request) proxy.Action { return proxy.CutBefore })
				},
				func(i int, _ *child) { between[i].SetPolicy(nil); between[i].CutAll() }, func(string, spell) {})
			measure(t, o, nil)
		})
	})
}

// measureOverlaps reads the journal and the claims.
func measureOverlaps(t *testing.T, st store.Store, o orders, stopped map[string][]spell) (got overlaps) {
	journal, err := os.ReadFile(filepath.Join(o.Dir, "journal"))
	require.NoError(t, err)
	var bodies []*stroll
	open := map[string]*stroll{}
	for line := range lines(string(journal)) {
		f := strings.Fields(line)
		var at int64
		_, err := fmt.Sscan(f[4], &at)
		require.NoError(t, err)
		key := strings.Join(f[1:4], " ")
		if f[0] == "begin" {
			open[key] = &stroll{walker: f[1], pid: f[3], spell: spell{at, at}}
			bodies = append(bodies, open[key])
			continue
		}
		open[key].to = at
	}
	perRun := map[string][]*stroll{}
	for _, b := range bodies {
		perRun[b.walker] = append(perRun[b.walker], b)
	}
	for _, same := range perRun {
		for i, a := range same {
			for _, b := range same[i+1:] {
				if a.pid == b.pid {
					continue
				}
				both := spell{max(a.from, b.from), min(a.to, b.to)}
				for _, s := range slices.Concat(stopped[a.pid], stopped[b.pid]) { // it stood still
					if s.from <= both.from {
						both.from = max(both.from, s.to)
					}
				}
				d := time.Duration(both.to-both.from) * time.Microsecond
				if d <= 0 {
					continue
				}
				got.bodies++
				got.all = max(got.all, d)
				if a.walker[len(a.walker)-1]%2 == 0 {
					got.watching = max(got.watching, d)
				}
			}
		}
	}
	for n := range walkerCount {
		owned := claims(t, st, fmt.Sprint("walker ", n))
		for _, b := range bodies {
			if b.walker != fmt.Sprint(n) {
				continue
			}
			i := len(owned) - 1
			for i > 0 && owned[i].at > b.from {
				i--
			}
			// Who had it before it was claimed by another.
			if i > 0 && owned[i].pid != b.pid && owned[i].pid != "0" {
				got.late++
				got.lateBy = max(got.lateBy, time.Duration(b.from-owned[i].at)*time.Microsecond)
			}
		}
	}
	return got
}

type claimed struct {
	at  int64
	pid string
}

// claims returns who has had a run from when on.
func claims(t *testing.T, st store.Store, id string) (list []claimed) {
	h, err := st.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(t, err)
	require.Equal(t, store.Completed, h.Run.Status, "%s: %s", id, h.Run.Reason)
	for ev, err := range h.Events {
		require.NoError(t, err)
		if ev.Type.Claims() || ev.Type == store.WorkflowStarted {
			var d struct {
				PID int `json:"pid"`
			}
			_ = json.Unmarshal(ev.Data, &d)
			list = append(list, claimed{int64(ev.At), fmt.Sprint(d.PID)})
		}
	}
	return list
}
