package failover_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
)

func soaking() bool { return os.Getenv("DURABLE_SOAK") != "" }

// diary is what the program was told, with the time of each acknowledgement.
type diary struct {
	mu      sync.Mutex
	started map[string]time.Time
	acked   map[string]time.Time // run and step
	again   map[string]bool      // acked, and lost: the body ran once more
	last    time.Time
	gap     time.Duration // the longest between two acknowledgements
}

// begins notes a body that begins. If the program was told its outcome before, that is lost.
func (d *diary) begins(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.acked[what]; ok {
		d.again[what] = true
	}
}

func (d *diary) note(m map[string]time.Time, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.gap = max(d.gap, now.Sub(d.last))
	d.last = now
	m[what] = now
}

// longest returns the longest time without an acknowledgement since it was asked last.
func (d *diary) longest() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	gap := d.gap
	d.gap = 0
	return gap
}

func (d *diary) latest() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

const steps = 4

func chain(d *diary) *durable.Workflow[int, int] {
	return durable.Define("chain", func(ctx context.Context, n int) (int, error) {
		for i := range steps {
			name := fmt.Sprint("step ", i)
			what := durable.RunID(ctx) + "/" + name
			err := durable.Do(ctx, name, func(context.Context) error {
				d.begins(what)
				time.Sleep(5 * time.Millisecond)
				return nil
			})
			if err != nil {
				return 0, err
			}
			d.note(d.acked, what)
		}
		return n, nil
	})
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// program is engines under load, with what they were told.
type program struct {
	t       *testing.T
	diary   *diary
	wf      *durable.Workflow[int, int]
	engines []*durable.Engine
	stop    context.CancelFunc
	load    sync.WaitGroup
}

// begin opens an engine on each connection string, each of which starts runs until settle.
func begin(t *testing.T, lease time.Duration, dsns ...string) *program {
	t.Helper()
	var stores []store.Store
	for _, dsn := range dsns {
		st, err := postgres.Open(dsn)
		require.NoError(t, err)
		stores = append(stores, st)
	}
	return beginOn(t, lease, stores...)
}

func beginOn(t *testing.T, lease time.Duration, stores ...store.Store) *program {
	t.Helper()
	p := &program{t: t, diary: &diary{started: map[string]time.Time{}, acked: map[string]time.Time{}, again: map[string]bool{}, last: time.Now()}}
	p.wf = chain(p.diary)
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	for i, st := range stores {
		eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{p.wf}, Lease: lease, Logger: quiet()})
		require.NoError(t, err)
		t.Cleanup(func() {
			stop()
			_ = eng.Close()
			_ = st.Close()
		})
		_, err = durable.Recover(durable.NewContext(t.Context(), eng)) // it takes over from others from now on
		require.NoError(t, err)
		p.engines = append(p.engines, eng)
		p.load.Go(func() {
			ectx := durable.NewContext(ctx, eng)
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("%d-%d", i, n)
				if _, err := p.wf.Start(ectx, id, n); err == nil {
					p.diary.note(p.diary.started, id)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	return p
}

// moves waits until something is acknowledged after since, and returns when that was.
func (p *program) moves(since time.Time) time.Time {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.diary.latest().After(since) }, 3*time.Minute, time.Millisecond)
	return p.diary.latest()
}

// spread says the median and the worst of some times.
func spread(of string, times []time.Duration) string {
	slices.Sort(times)
	at := func(percent int) time.Duration { return times[(len(times)-1)*percent/100].Round(time.Millisecond) }
	return fmt.Sprintf("%s_p50=%s %[1]s_max=%[3]s", of, at(50), at(100))
}

// findings are what became of the runs. Of damage, and of two owners at once, the first fails
// the test.
type findings struct{ runs, lostRuns, lostSteps int }

func (f findings) String() string {
	return fmt.Sprintf("runs=%d lost_runs=%d lost_steps=%d damaged=0 double_owned=0", f.runs, f.lostRuns, f.lostSteps)
}

// settle ends the load, lets every run end that is there, and counts what was acknowledged and
// is not.
func (p *program) settle(dsn string) (f findings) {
	t := p.t
	t.Helper()
	p.stop()
	p.load.Wait()
	st, err := postgres.Open(dsn)
	require.NoError(t, err)
	defer st.Close()
	open := store.Filter{Statuses: []store.Status{store.Pending, store.Running, store.Resuming, store.Interrupted, store.Waiting}}
	require.Eventually(t, func() bool {
		n, err := st.Count(t.Context(), open, "")
		return err == nil && n[""] == 0
	}, 2*time.Minute, 50*time.Millisecond, "every run that is there ends")
	looker, err := durable.Open(t.Context(), st, durable.Options{Logger: quiet()})
	require.NoError(t, err)
	defer looker.Close()
	for v, err := range operate.On(looker).VerifyAll(t.Context(), store.Filter{}) {
		require.NoError(t, err)
		require.Empty(t, v.Findings, v.RunID)
	}
	for id := range p.diary.started {
		h, err := st.Load(t.Context(), id, store.Cursor{All: true})
		if errors.Is(err, store.ErrNotFound) {
			f.lostRuns++
			continue
		}
		require.NoError(t, err)
		f.runs++
		require.Equal(t, store.Completed, h.Run.Status, "%s: %s", id, h.Run.Reason)
		done := map[string]bool{}
		epoch := int64(0)
		for e, err := range h.Events {
			require.NoError(t, err)
			require.GreaterOrEqual(t, e.Epoch, epoch, "%s: two owners wrote at once", id)
			epoch = e.Epoch
			if e.Type == store.StepCompleted {
				require.False(t, done[e.Key], "%s: %s has two outcomes", id, e.Key)
				done[e.Key] = true
			}
		}
		require.Len(t, done, steps, id)
	}
	f.lostSteps = len(p.diary.again)
	return f
}
