package proof_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// kills is how many processes the kill test ends, per store.
func kills(t *testing.T) int {
	if v := os.Getenv("HOLDFAST_KILLS"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err)
		return n
	}
	if soaking() {
		return 2000
	}
	return 200
}

func TestNothingAcknowledgedIsLostByAnySIGKILL(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, o orders) {
		seed := uint64(time.Now().UnixNano())
		if v := os.Getenv("HOLDFAST_SEED"); v != "" {
			var err error
			seed, err = strconv.ParseUint(v, 10, 64)
			require.NoError(t, err)
		}
		t.Logf("seed %d (HOLDFAST_SEED repeats the moments of the kills)", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		o.Role, o.Lease, o.New = "worker", time.Second, 3
		acked := map[string]int{} // "run key" -> value
		var started []string
		n := kills(t)
		for o.Life = range n {
			c := start(t, o)
			c.await(t, "ready")
			time.Sleep(time.Duration(rnd.IntN(30_000)) * time.Microsecond) // the random moment of the kill, no wait for anything
			for _, line := range c.kill(t) {
				f := strings.Fields(line)
				switch {
				case len(f) == 4 && f[0] == "ack":
					v, err := strconv.Atoi(f[3])
					require.NoError(t, err)
					acked[f[1]+" "+f[2]] = v
				case len(f) == 2 && f[0] == "started":
					started = append(started, f[1])
				case len(f) > 0 && f[0] == "error":
					t.Fatalf("life %d: %s", o.Life, line)
				}
			}
		}
		o.Life, o.New = n, 0
		last := start(t, o)
		last.await(t, "ready")
		require.NoError(t, last.Wait(), "the last life ends by itself when all runs are done")
		runs, steps := len(started), len(acked)
		require.NotEmpty(t, acked, "no kill came late enough to have something to lose")
		verify(t, o, started, acked)
		attemptsNeverGoBack(t, o)
		tried.Say(t, "kills", "store=%s kills=%d runs=%d steps=%d lost=0 doubled=0", o.Backend, n, runs, steps)
	})
}

// verify reads every run back.
func verify(t *testing.T, o orders, started []string, acked map[string]int) {
	st, err := openStore(o.Backend, o.DSN)
	require.NoError(t, err)
	defer st.Close()
	ctx := context.Background()
	all := map[string]bool{}
	for f := (store.Filter{}); ; {
		page, err := st.List(ctx, f)
		require.NoError(t, err)
		for _, r := range page.Runs {
			all[r.ID] = true
			require.Equal(t, store.Completed, r.Status, "run %s: %s", r.ID, r.Reason)
			history(t, st, r.ID, acked)
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	for _, id := range started {
		require.True(t, all[id], "the start of %s was acknowledged and is lost", id)
	}
}

func history(t *testing.T, st store.Store, id string, acked map[string]int) {
	h, err := st.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(t, err)
	var before store.Event
	failed := map[string]int32{}
	done := 0
	for e, err := range h.Events {
		require.NoError(t, err)
		require.Equal(t, before.Seq+1, e.Seq, "run %s", id)
		require.Equal(t, store.Seal(id, before.Sum, &e), e.Sum, "run %s event %d", id, e.Seq)
		switch e.Type {
		case store.AttemptFailed:
			failed[e.Key]++
			require.Equal(t, failed[e.Key], e.Attempt, "run %s: attempts of %s", id, e.Key)
		case store.StepCompleted:
			done++
			require.EqualValues(t, 2, failed[e.Key], "run %s: failures before %s", id, e.Key)
			if v, ok := acked[id+" "+e.Key]; ok {
				require.True(t, strings.HasSuffix(string(e.Payload), fmt.Sprintf("\n%d", v)), "run %s: %s was acknowledged as %d and holds %s", id, e.Key, v, e.Payload)
				delete(acked, id+" "+e.Key)
			}
		}
		before = e
	}
	require.Equal(t, jobSteps, done, "run %s", id)
	for k := range acked {
		require.False(t, strings.HasPrefix(k, id+" "), "%s was acknowledged and is lost", k)
	}
}

// attemptsNeverGoBack reads the journal of the outside world: once the body of
// attempt k+1 has begun, attempt k had failed durably, and must never run again.
func attemptsNeverGoBack(t *testing.T, o orders) {
	b, err := os.ReadFile(filepath.Join(o.Dir, "journal"))
	require.NoError(t, err)
	highest := map[string]int{}
	again := 0
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		require.Len(t, f, 3)
		n, err := strconv.Atoi(f[2])
		require.NoError(t, err)
		key := f[0] + " " + f[1]
		require.GreaterOrEqual(t, n, highest[key], "%s: attempt %d ran again after attempt %d", key, n, highest[key])
		if n == highest[key] {
			again++
		}
		highest[key] = n
	}
	t.Logf("%d attempts were in flight at a kill and ran again", again)
}
