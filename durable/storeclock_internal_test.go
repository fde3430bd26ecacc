package durable

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// clockRig is a store clock with the two clocks that it stands between.
type clockRig struct {
	storeClock
	t *testing.T
	// ahead is how far the store's clock is ahead of ours.
	ahead time.Duration
	now   time.Time
	last  store.Time
}

func newClockRig(t *testing.T, ahead time.Duration) *clockRig {
	r := &clockRig{t: t, ahead: ahead, now: time.Now().Truncate(time.Second)}
	r.start(r.now)
	return r
}

// beat is one that reaches the store after there, and is answered after back.
func (r *clockRig) beat(there, back time.Duration) time.Duration {
	before := r.now
	r.now = r.now.Add(there)
	said := r.truth()
	r.now = r.now.Add(back)
	set := r.observe(before, r.now, said)
	r.look()
	return set
}

func (r *clockRig) truth() store.Time { return store.TimeOf(r.now.Add(r.ahead)) }

// pass lets time pass, and looks at the clock all the while.
func (r *clockRig) pass(d time.Duration) {
	for range 10 {
		r.now = r.now.Add(d / 10)
		r.look()
	}
}

func (r *clockRig) look() {
	at := r.at(r.now)
	require.GreaterOrEqual(r.t, at, r.last, "it goes back")
	require.LessOrEqual(r.t, r.surely(r.now), at)
	r.last = at
}

func (r *clockRig) off() time.Duration { return r.at(r.now).Sub(r.truth()) }

const ms = time.Millisecond

func TestOneSlowBeatDoesNotMoveTheClock(t *testing.T) {
	for _, way := range []struct{ there, back time.Duration }{{0, 4 * time.Second}, {4 * time.Second, 0}, {2 * time.Second, 2 * time.Second}} {
		r := newClockRig(t, time.Hour)
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
	r := newClockRig(t, time.Hour)
	r.beat(0, 4*time.Second) // the estimate is behind
	require.LessOrEqual(t, r.surely(r.now), r.truth())
	r.beat(ms, ms)
	require.LessOrEqual(t, r.off().Abs(), 2*ms)

	r = newClockRig(t, time.Hour)
	r.beat(4*time.Second, 0) // ahead
	require.LessOrEqual(t, r.surely(r.now), r.truth())
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
		r := newClockRig(t, time.Duration(rng.Int64N(int64(time.Hour)))-30*time.Minute)
		for range 50 {
			r.beat(time.Duration(rng.ExpFloat64()*float64(5*ms)), time.Duration(rng.ExpFloat64()*float64(50*ms)))
			r.pass(time.Duration(rng.Int64N(int64(10 * time.Second))))
			require.LessOrEqual(t, r.surely(r.now), r.truth(), "seed %d", seed)
		}
		require.LessOrEqual(t, r.off().Abs(), 200*ms)
	}
}

func TestAStoreWhoseClockWasSetIsFollowed(t *testing.T) {
	r := newClockRig(t, 0)
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
	r := newClockRig(t, 0)
	for range 5 {
		r.beat(ms, ms)
		r.pass(10 * time.Second)
		r.ahead -= time.Second // the store's clock runs slower by a tenth
		r.last = 0
	}
	r.beat(ms, ms)
	r.now = r.now.Add(5 * time.Second)
	r.ahead -= 500 * ms
	require.True(t, r.doubtful(r.now))
	require.LessOrEqual(t, r.surely(r.now), r.truth())
}
