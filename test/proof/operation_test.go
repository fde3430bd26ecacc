package proof_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// The members of a crowd, which are started at once.
const (
	members     = 120
	memberSteps = 12
)

// member has steps that take some time, and notes each that it begins.
func member(o orders) *durable.Workflow[int, int] {
	return durable.Define("member", func(ctx context.Context, n int) (int, error) {
		for i := range memberSteps {
			if err := durable.Do(ctx, fmt.Sprint("step ", i), func(ctx context.Context) error {
				note(o, "%d %d %d", n, i, os.Getpid())
				time.Sleep(80 * time.Millisecond) // what the body does
				return nil
			}); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// crowd executes members, which the first life starts, until none is left.
func crowd(st store.Store, o orders) error {
	wf := member(o)
	ctx, eng, err := boot(st, o, wf)
	if err != nil {
		return err
	}
	if _, err := wf.StartAll(ctx, func(yield func(string, int) bool) {
		for n := range o.New {
			if !yield(fmt.Sprint("member ", n), n) {
				return
			}
		}
	}); err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		left, err := st.Count(ctx, store.Filter{Statuses: []store.Status{store.Pending, store.Running, store.Resuming, store.Interrupted}}, "")
		if err != nil {
			return err
		}
		if left[""] == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return eng.Close()
}

// Walkers make many steps, for as many rounds as their life has; each step notes when its body begins
// and ends. The even ones end when their context does, the odd ones do not look at it.
const (
	walkerCount = 12
	walkerSteps = 70 // a round
	walkerStep  = 100 * time.Millisecond
	walkerLease = time.Second
)

func walker(o orders) *durable.Workflow[int, int] {
	return durable.Define("walker", func(ctx context.Context, n int) (int, error) {
		for i := range o.Life * walkerSteps {
			body := func(ctx context.Context) error {
				note(o, "begin %d %d %d %d", n, i, os.Getpid(), time.Now().UnixMicro())
				defer func() { note(o, "end %d %d %d %d", n, i, os.Getpid(), time.Now().UnixMicro()) }()
				done := ctx.Done()
				if n%2 == 1 {
					done = nil
				}
				select {
				case <-time.After(walkerStep):
					return nil
				case <-done:
					return context.Cause(ctx)
				}
			}
			// Of four, one makes steps that are no write of their own, and so meet no
			// fence one by one.
			var how []durable.StepOption
			if n%4 == 0 {
				how = append(how, durable.Relaxed())
			}
			if err := durable.Do(ctx, fmt.Sprint("step ", i), body, how...); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// walkers executes walkers until its input ends.
func walkers(st store.Store, o orders) error {
	wf := walker(o)
	ctx, eng, err := boot(st, o, wf)
	if err != nil {
		return err
	}
	for n := range o.New {
		if _, err := wf.Start(ctx, fmt.Sprint("walker ", n), n); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	for {
		left, err := st.Count(ctx, store.Filter{Statuses: []store.Status{store.Pending, store.Running, store.Resuming, store.Interrupted}}, "")
		if err == nil && left[""] == 0 {
			return eng.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Runs that are started at once stand in a queue, and each kill meets them there. None is
// set aside unless three processes died with the same step of it begun: where the machine
// is slow, that can happen to a run that is innocent, and no executor can tell.
func TestOfManyRunsUnderKillsFromOutsideNoneIsQuarantinedWithoutThreeDeathsInItsStep(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, o orders) {
		o.Role, o.Lease, o.New = "crowd", time.Second, members
		first := start(t, o)
		first.await(t, "ready") // the start is acknowledged
		o.New = 0
		until := time.Now().Add(6 * time.Second)
		if soaking() {
			until = time.Now().Add(30 * time.Second)
		}
		killed := 0
		for c := first; time.Now().Before(until); c = start(t, o) {
			time.Sleep(600 * time.Millisecond) // the pace of the kills
			c.kill(t)
			killed++
		}
		require.NoError(t, start(t, o).Wait(), "the last life ends when nothing is left to be done")

		deaths := map[string]map[string]bool{} // of "member step", the processes that began it
		journal, err := os.ReadFile(filepath.Join(o.Dir, "journal"))
		require.NoError(t, err)
		for line := range lines(string(journal)) {
			at := strings.LastIndex(line, " ")
			if deaths[line[:at]] == nil {
				deaths[line[:at]] = map[string]bool{}
			}
			deaths[line[:at]][line[at+1:]] = true
		}
		st, err := openStore(o.Backend, o.DSN)
		require.NoError(t, err)
		defer st.Close()
		page, err := st.List(t.Context(), store.Filter{Limit: 2 * members})
		require.NoError(t, err)
		require.Len(t, page.Runs, members)
		accused := 0
		for _, r := range page.Runs {
			if r.Status == store.Completed {
				continue
			}
			accused++
			require.Equal(t, durable.CodeQuarantined, r.Code, "%s: %s, %s", r.ID, r.Status, r.Reason)
			worst := 0
			for i := range memberSteps {
				worst = max(worst, len(deaths[fmt.Sprint(strings.TrimPrefix(r.ID, "member "), " ", i)]), begunOnRecord(t, st, r.ID, fmt.Sprint("step ", i)))
			}
			require.GreaterOrEqual(t, worst, 3, "%s: %s", r.ID, r.Reason)
		}
		tried.Say(t, "crowd", "store=%s kills=%d runs=%d after_three_deaths_in_a_step=%d innocents=0", o.Backend, killed, members, accused)
	})
}

// begunOnRecord returns in how many claims of a run the body of a step began on record. A body
// notes that it has begun after that, and a kill can come between the two.
func begunOnRecord(t *testing.T, st store.Store, run, key string) int {
	t.Helper()
	history, err := st.Load(t.Context(), run, store.Cursor{})
	require.NoError(t, err)
	in := map[int64]bool{}
	for ev, err := range history.Events {
		require.NoError(t, err)
		if ev.Type == store.StepStarted && ev.Key == key {
			in[ev.Epoch] = true
		}
	}
	return len(in)
}
