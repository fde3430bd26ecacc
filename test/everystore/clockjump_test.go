package everystore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

var clockJumps = []time.Duration{time.Hour, 365 * 24 * time.Hour, -time.Hour, -365 * 24 * time.Hour}

// A jumper is a program on data whose clock jumps, and what it has executed.
type jumper struct {
	*clockwork
	t      *testing.T
	flow   *durable.Workflow[int, int]
	p      program
	mu     sync.Mutex
	bodies map[string]int
	began  map[string]time.Time // by the clock of the store
	seen   map[string]bool
}

func newJumper(t *testing.T, c *clockwork, o func(flow *durable.Workflow[int, int]) durable.Options) *jumper {
	j := &jumper{clockwork: c, t: t, bodies: map[string]int{}, began: map[string]time.Time{}, seen: map[string]bool{}}
	j.flow = durable.Define("w", func(ctx context.Context, n int) (int, error) {
		return n, durable.Do(ctx, "body", func(ctx context.Context) error {
			now := j.now()
			j.mu.Lock()
			defer j.mu.Unlock()
			j.bodies[durable.RunID(ctx)]++
			j.began[durable.RunID(ctx)] = now
			return nil
		})
	})
	st, err := c.open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	opt := o(j.flow)
	opt.Workflows, opt.Lease = []durable.Definition{j.flow}, c.lease
	j.p = runProgram(t, st, opt)
	return j
}

func (j *jumper) row(id string) (store.Run, bool) {
	page, err := j.p.eng.List(context.Background(), store.Filter{IDs: []string{id}})
	require.NoError(j.t, err)
	if len(page.Runs) == 0 {
		return store.Run{}, false
	}
	return page.Runs[0], true
}

func (j *jumper) completes(id string) {
	j.t.Helper()
	await(j.t, id+" has completed", func() bool {
		r, ok := j.row(id)
		return ok && r.Status == store.Completed
	})
}

// waits fails if one of the runs has begun.
func (j *jumper) waits(ids ...string) {
	j.t.Helper()
	for _, id := range ids {
		r, ok := j.row(id)
		require.True(j.t, ok)
		require.Equal(j.t, store.Pending, r.Status, "%s has begun at %s, by a clock that says %s", id, r.StartedAt.Time(), j.now())
	}
}

// once fails if a body was executed twice.
func (j *jumper) once() {
	j.t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for id, n := range j.bodies {
		require.Equal(j.t, 1, n, "%s was executed %d times", id, n)
	}
}

// fired returns how many runs of the schedule there are, and fails if one is there before its
// time, or was executed twice.
func (j *jumper) fired() int {
	j.t.Helper()
	page, err := j.p.eng.List(context.Background(), store.Filter{Limit: 1000})
	require.NoError(j.t, err)
	now := j.now()
	for i := range page.Runs {
		id := page.Runs[i].ID
		at, err := time.Parse(time.RFC3339, strings.TrimPrefix(id, "s@"))
		require.NoError(j.t, err)
		if !j.seen[id] {
			require.False(j.t, now.Before(at), "%s is there, and it is %s", id, now)
		}
		j.seen[id] = true
	}
	j.once()
	return len(page.Runs)
}

// next returns the next time of the schedule, once the engine has settled those that have
// passed, and has noticed a clock that was far off.
func (j *jumper) next() (at time.Time) {
	j.t.Helper()
	await(j.t, "the next fire is near", func() bool {
		list, err := operate.On(j.p.eng).Schedules(context.Background(), "s")
		require.NoError(j.t, err)
		at = list[0].Next[0]
		away := at.Sub(j.now())
		return away > 0 && away < 80*time.Minute
	})
	return at
}

// fire lets the time go by until the schedule fires, and it does.
func (j *jumper) fire() {
	j.t.Helper()
	at := j.next()
	n := j.fired()
	j.until(at.Add(-time.Minute))
	j.looked()
	require.Equal(j.t, n, j.fired(), "nothing before its time")
	j.until(at.Add(time.Second))
	j.completes("s@" + at.UTC().Format(time.RFC3339))
	require.Equal(j.t, n+1, j.fired())
}

func TestAScheduleFiresNothingEarlyAndNothingTwiceWhenTheClockOfAnyStoreJumps(t *testing.T) {
	for _, jump := range clockJumps {
		onEachClock(t, jump.String(), func(t *testing.T, c *clockwork) {
			j := newJumper(t, c, func(flow *durable.Workflow[int, int]) durable.Options {
				return durable.Options{Schedules: []durable.Schedule{flow.Schedule("s", durable.Every(10*time.Minute), 0)}}
			})
			j.fire()
			j.fire()
			j.jump(jump)
			j.looked()
			if jump > 0 {
				await(t, "of the missed fires the latest has fired", func() bool { return j.fired() == 3 })
			} else {
				require.Equal(t, 2, j.fired(), "what has fired does not fire again")
			}
			if jump == -time.Hour {
				j.until(j.now().Add(30 * time.Minute))
				j.looked()
				require.Equal(t, 2, j.fired(), "the times until then have fired")
			}
			j.fire()
			j.jump(-jump) // and right again
			j.looked()
			j.fire()
		})
	}
}

func TestNoRunOfAQueueBeginsEarlyOrTwiceWhenTheClockOfAnyStoreJumps(t *testing.T) {
	for _, jump := range clockJumps {
		onEachClock(t, jump.String(), func(t *testing.T, c *clockwork) {
			j := newJumper(t, c, func(flow *durable.Workflow[int, int]) durable.Options {
				return durable.Options{
					Queues: []durable.Queue{{Name: "rate", Rate: 1, Per: time.Minute}},
					// The engine looks for what is due, which the test waits for.
					Schedules: []durable.Schedule{flow.Schedule("s", durable.Every(24*time.Hour), 0).Paused()},
				}
			})
			put := func(id string, o ...durable.StartOption) {
				_, err := j.flow.Enqueue(j.p, id, 0, o...)
				require.NoError(t, err)
			}
			for _, id := range []string{"rate0", "rate1", "rate2"} {
				put(id, durable.OnQueue("rate"))
			}
			put("soon", durable.Delay(30*time.Minute))
			put("late", durable.Delay(2*time.Hour), durable.OnQueue("other"))
			j.completes("rate0")
			j.looked()
			j.waits("rate1", "rate2", "soon", "late")
			j.jump(jump)
			j.looked()
			if jump > 0 {
				j.completes("soon")
				j.completes("rate1")
				j.waits("rate2")
				if jump == time.Hour {
					j.waits("late")
				}
			} else {
				j.waits("rate1", "rate2", "soon", "late")
				j.until(j.now().Add(61 * time.Second))
				j.completes("rate1")
				j.looked()
				j.waits("rate2", "soon", "late")
			}
			j.until(j.now().Add(61 * time.Second))
			j.completes("rate2")
			if jump < 0 {
				j.jump(-jump) // right again
				j.looked()
				j.waits("soon", "late")
			}
			for _, id := range []string{"soon", "late"} {
				r, _ := j.row(id)
				j.until(r.WakeAt.Time())
				j.completes(id)
				require.False(t, j.began[id].Before(r.WakeAt.Time()), "%s began early", id)
			}
			require.GreaterOrEqual(t, j.began["rate2"].Sub(j.began["rate1"]), time.Minute-100*time.Millisecond)
			j.once()
			require.Len(t, j.bodies, 5)
		})
	}
}
