package storeclock

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// rig is a store clock with the two clocks that it stands between.
type rig struct {
	Clock
	t *testing.T
	// ahead is how far the store's clock is ahead of ours.
	ahead time.Duration
	now   time.Time
	last  store.Time
}

func newRig(t *testing.T, ahead time.Duration) *rig {
	r := &rig{t: t, ahead: ahead, now: time.Now().Truncate(time.Second)}
	r.Start(r.now)
	return r
}

// beat is one that reaches the store after there, and is answered after back.
func (r *rig) beat(there, back time.Duration) time.Duration {
	before := r.now
	r.now = r.now.Add(there)
	said := r.truth()
	r.now = r.now.Add(back)
	set := r.Observe(before, r.now, said)
	r.look()
	return set
}

func (r *rig) truth() store.Time { return store.TimeOf(r.now.Add(r.ahead)) }

// pass lets time pass, and looks at the clock all the while.
func (r *rig) pass(d time.Duration) {
	for range 10 {
		r.now = r.now.Add(d / 10)
		r.look()
	}
}

func (r *rig) look() {
	at := r.At(r.now)
	require.GreaterOrEqual(r.t, at, r.last, "it goes back")
	require.LessOrEqual(r.t, r.Surely(r.now), at)
	r.last = at
}

func (r *rig) off() time.Duration { return r.At(r.now).Sub(r.truth()) }

const ms = time.Millisecond

func TestOneSlowBeatDoesNotMoveTheClock(t *testing.T) {
	for _, way := range []struct{ there, back time.Duration }{{0, 4 * time.Second}, {4 * time.Second, 0}, {2 * time.Second, 2 * time.Second}} {
		r := newRig(t, time.Hour)
		r.beat(ms, ms)
		require.LessOrEqual(t, r.off().Abs(), ms)
		r.pass(time.Second)
		r.beat(way.there, way.back)
		require.LessOrEqual(t, r.off().Abs(), ms, "%v", way)
	}
}

// A first beat that was slow says little. The next one puts that right, without
// the time going back.
func TestAfterASlowFirstBeatTheClockIsPutRight(t *testing.T) {
	r := newRig(t, time.Hour)
	r.beat(0, 4*time.Second) // the estimate is behind
	require.LessOrEqual(t, r.Surely(r.now), r.truth())
	r.beat(ms, ms)
	require.LessOrEqual(t, r.off().Abs(), 2*ms)

	r = newRig(t, time.Hour)
	r.beat(4*time.Second, 0) // ahead
	require.LessOrEqual(t, r.Surely(r.now), r.truth())
	r.beat(ms, ms)
	for range 100 {
		r.pass(100 * ms)
	}
	require.LessOrEqual(t, r.off().Abs(), 2*ms)
}

// The store's own time is never overestimated, whatever the beats are like, as
// long as both clocks run alike.
func TestWhatTheStoresClockHasSurelyReachedItHasReached(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, time.Duration(rng.Int64N(int64(time.Hour)))-30*time.Minute)
		for range 50 {
			r.beat(time.Duration(rng.ExpFloat64()*float64(5*ms)), time.Duration(rng.ExpFloat64()*float64(50*ms)))
			r.pass(time.Duration(rng.Int64N(int64(10 * time.Second))))
			require.LessOrEqual(t, r.Surely(r.now), r.truth(), "seed %d", seed)
		}
		require.LessOrEqual(t, r.off().Abs(), 200*ms)
	}
}

func TestAStoreWhoseClockWasSetIsFollowed(t *testing.T) {
	r := newRig(t, 0)
	for range 5 {
		r.beat(ms, ms)
		r.pass(time.Second)
	}
	r.ahead = time.Hour
	require.InDelta(t, float64(time.Hour), float64(r.beat(ms, ms)), float64(10*ms), "forward at once")
	require.LessOrEqual(t, r.off().Abs(), 2*ms)
	r.ahead -= 2 * time.Second
	require.Zero(t, r.beat(ms, ms), "back a little, without a step")
	require.Greater(t, r.off(), time.Second)
	r.pass(5 * time.Second)
	require.LessOrEqual(t, r.off().Abs(), 2*ms)
	r.ahead = 0
	r.last = 0 // that far back it steps, and says so
	require.InDelta(t, float64(-time.Hour), float64(r.beat(ms, ms)), float64(3*time.Second))
	require.LessOrEqual(t, r.off().Abs(), 2*ms)
}

// Clocks that run apart are noticed, and the store is asked before it is said
// that a time has come.
func TestClocksThatRunApartAreNotBelievedForLong(t *testing.T) {
	r := newRig(t, 0)
	for range 5 {
		r.beat(ms, ms)
		r.pass(10 * time.Second)
		r.ahead -= time.Second // the store's clock runs slower by a tenth
		r.last = 0
	}
	r.beat(ms, ms)
	r.now = r.now.Add(5 * time.Second)
	r.ahead -= 500 * ms
	require.True(t, r.Doubtful(r.now))
	require.LessOrEqual(t, r.Surely(r.now), r.truth())
}

// A reading that was asked for before a suspend and answered after it is as old as the suspend is long.
func TestAClockIsOutdatedFromASuspendUntilTheNextWholeReading(t *testing.T) {
	r := newRig(t, time.Hour)
	began := r.now
	var slept, from time.Duration
	r.Skew = func(t time.Time) (monotonic, wall time.Duration) {
		if t.Sub(began) < from {
			return 0, 0
		}
		return -slept, 0
	}
	require.False(t, r.Outdated(r.now), "there is no reading that could become old")
	r.Observe(r.now, r.now.Add(ms), r.truth())
	r.now = r.now.Add(10 * time.Second)
	require.False(t, r.Outdated(r.now))

	before, said := r.now, r.truth()
	slept, from = time.Minute, r.now.Add(ms).Sub(began)
	r.now = r.now.Add(slept + 2*ms)
	require.True(t, r.Outdated(r.now))
	r.Observe(before, r.now, said)
	require.True(t, r.Outdated(r.now), "the answer was on its way")
	r.Observe(r.now, r.now.Add(ms), r.truth())
	r.now = r.now.Add(ms)
	require.False(t, r.Outdated(r.now))
	require.LessOrEqual(t, r.off().Abs(), 2*ms)
}

// People set the wall clock. What time has passed since a beat says the monotonic one.
func TestAWallClockThatIsSetBetweenTwoBeatsMovesNothing(t *testing.T) {
	for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		r := newRig(t, time.Hour)
		set := r.now.Add(time.Second)
		r.Skew = func(t time.Time) (monotonic, wall time.Duration) {
			if t.After(set) {
				wall = by
			}
			return 0, wall
		}
		r.beat(ms, ms)
		r.pass(20 * time.Second)
		require.LessOrEqual(t, r.off().Abs(), ms, "%v", by)
	}
}
