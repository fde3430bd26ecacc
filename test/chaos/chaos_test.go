//go:build unix && cgo

package chaos_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/tried"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "what is done to the processes, and in which order; 0: by the clock")
	storeFlag = flag.String("store", "", "sqlite or postgres; empty: both")
	runsFlag  = flag.Int("runs", 0, "how many runs to start for each store; 0: 150, with DURABLE_SOAK 5,000")
)

// TestMain turns the binary into one of the processes when it is told to.
func TestMain(m *testing.M) {
	env := os.Getenv(childEnv)
	if env == "" {
		flag.Parse()
		os.Exit(m.Run())
	}
	var o orders
	if err := json.Unmarshal([]byte(env), &o); err != nil {
		panic(err)
	}
	if err := work(o); err != nil {
		fmt.Fprintln(os.Stderr, o.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Whatever is done to processes and their database, whatever was acknowledged holds, nothing
// happens twice, and every run ends as it must.
func TestChaosLosesAndDoublesNothing(t *testing.T) {
	for _, backend := range []string{"sqlite", "postgres"} {
		if *storeFlag != "" && *storeFlag != backend {
			continue
		}
		t.Run(backend, func(t *testing.T) {
			runs, perRound, seed := *runsFlag, 1000, *seedFlag
			if seed == 0 {
				seed = uint64(time.Now().UnixNano())
			}
			if runs == 0 {
				if runs = 150; os.Getenv("DURABLE_SOAK") != "" {
					runs = 5000
				}
			}
			t.Logf("seed %d", seed)
			processes := 3
			if runs > perRound {
				processes += int(seed % 6)
			}
			w := newWorld(t, backend, seed, processes)
			for round := 0; w.tally.runs < runs && !t.Failed(); round++ {
				w.round(round, min(perRound, runs-w.tally.runs))
			}
			w.say()
		})
	}
}

// runsPerFault is how many runs are started from one fault to the next, on average and however
// fast the machine is: some nine to a kill.
const runsPerFault = 6

// round starts runs until there are enough of them, while the world is disturbed; then it lets
// all of them end, and looks at what there is.
func (w *world) round(round, runs int) {
	w.t.Helper()
	var err error
	w.ledger, err = openLedger(w.base.Dir, "chaos")
	require.NoError(w.t, err)
	count := filepath.Join(w.base.Dir, "count")
	_ = os.Remove(count)
	for _, s := range w.slots {
		w.spawn(s, round, true)
	}
	for due, started := 0, 0; started < runs || due < runs; {
		time.Sleep(time.Duration(w.rnd.IntN(20)) * time.Millisecond)
		w.wake(false)
		if info, err := os.Stat(count); err == nil {
			started = int(info.Size())
		}
		if started >= due && due < runs {
			w.disturb(round)
			due += w.rnd.IntN(2 * runsPerFault)
		}
	}
	w.wake(true)
	w.unlocked()
	for _, s := range w.slots[1:] {
		w.leave(s, syscall.SIGTERM, time.Minute)
		w.tally.ends++
	}
	w.leave(w.slots[0], syscall.SIGUSR1, 2*time.Minute)
	require.NoError(w.t, w.ledger.file.Close())
	w.verify(readLedgers(w.t, w.base.Dir))
}

// say prints what was tried, and what came of it.
func (w *world) say() {
	x := w.tally
	for _, s := range w.slots {
		x.cuts += s.cut
		if s.proxy != nil {
			x.cuts += s.proxy.Cuts()
		}
	}
	slices.Sort(x.takeover)
	percentile := func(p int) time.Duration {
		if len(x.takeover) == 0 {
			return 0
		}
		return x.takeover[(len(x.takeover)-1)*p/100].Round(time.Millisecond)
	}
	tried.Say(w.t, "chaos", "store=%s runs=%d kills=%d stops=%d ends=%d restarts=%d cuts=%d stalls=%d readonly=%d locks=%d copies=%d lost=%d doubled=%d leaks=%d quarantined=%d struck_thrice=%d stuck=%d overlaps=%d overlap_max=%s takeovers=%d takeover_p50=%s takeover_p99=%s",
		w.base.Backend, x.runs, x.kills, x.stops, x.ends, x.restarts, x.cuts, x.stalls, x.readonly, x.locks, x.copies, x.lost, x.doubled, x.leaks, x.quarantined, x.guilty, x.stuck,
		x.overlaps, x.overlap.Round(time.Microsecond), len(x.takeover), percentile(50), percentile(99))
}
