//go:build cgo

package sqlite_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// ahead is a clock that is ahead by d.
func ahead(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

func live(t testing.TB, st store.Store, id string) bool {
	t.Helper()
	all, err := st.Executors(t.Context())
	require.NoError(t, err)
	for i := range all {
		if all[i].ID == id {
			return all[i].Live
		}
	}
	return false
}

func TestAnExecutorWhoseClockWasAheadIsDeadOneLeaseAfterItWasSeen(t *testing.T) {
	path := file(t)
	gone, err := sqlite.OpenOptions(path, sqlite.Options{Clock: ahead(2 * time.Hour), NoPresence: true})
	require.NoError(t, err)
	e := executor("ahead")
	beat(t, gone, e)
	l, c := create("r", func(r *store.Run) { r.Status, r.Owner = store.Running, "ahead" })
	commit(t, gone, c)
	_ = l
	require.NoError(t, gone.Close())

	var later time.Duration
	st := open(t, path, sqlite.Options{NoPresence: true, Clock: func() time.Time { return time.Now().Add(later) }})
	me := executor("me")
	p := beat(t, st, me)
	require.Empty(t, p.Gone, "it may be there, with its clock")
	require.InDelta(t, 2*time.Hour, p.Skew, float64(time.Minute), "and that clocks differ is said")
	later = e.Lease - time.Second
	require.Empty(t, beat(t, st, me).Gone)
	require.True(t, live(t, st, "ahead"))
	later = e.Lease
	require.Equal(t, []string{"ahead"}, beat(t, st, me).Gone)
	require.Len(t, claim(t, st, me, "r"), 1)
}

// One that comes later has not seen the beat stand still. It learns of it all the
// same.
func TestABeatFromTheFutureThatStoodStillIsBelievedByNobodyWhoComesLater(t *testing.T) {
	path := file(t)
	gone := open(t, path, sqlite.Options{Clock: ahead(2 * time.Hour), NoPresence: true})
	e := executor("ahead")
	beat(t, gone, e)
	var later time.Duration
	o := sqlite.Options{NoPresence: true, Clock: func() time.Time { return time.Now().Add(later) }}
	st, me := open(t, path, o), executor("me")
	beat(t, st, me)
	later = e.Lease
	require.True(t, live(t, open(t, path, o), "ahead"))
	beat(t, st, me)
	require.False(t, live(t, open(t, path, o), "ahead"))
	// It beats again: it was there all the time, and hears that it was taken for
	// gone.
	require.True(t, beat(t, gone, e).Late)
	require.True(t, live(t, open(t, path, o), "ahead"))
}

func TestAnExecutorWhoseClockIsAheadStaysLiveAsLongAsItBeats(t *testing.T) {
	path := file(t)
	var later time.Duration
	a := open(t, path, sqlite.Options{NoPresence: true, Clock: func() time.Time { return time.Now().Add(later + 2*time.Hour) }})
	b := open(t, path, sqlite.Options{NoPresence: true, Clock: func() time.Time { return time.Now().Add(later) }})
	e := executor("ahead")
	for range 10 {
		beat(t, a, e)
		require.True(t, live(t, b, "ahead"))
		later += e.Lease * 2 / 3
	}
	later += e.Lease
	require.False(t, live(t, b, "ahead"))
}

// After a suspension of the machine, too, every lease has run out by the clock.
func TestAProcessWhoseClockIsAheadTakesNoRunsOfTheLiving(t *testing.T) {
	path := file(t)
	owner := open(t, path, sqlite.Options{})
	if owner.PresenceKind() == "" {
		t.Skip("no presence here: leases alone decide, by the clocks")
	}
	e := executor("owner")
	beat(t, owner, e)
	_, c := create("r", func(r *store.Run) { r.Status, r.Owner = store.Running, "owner" })
	commit(t, owner, c)

	var later time.Duration
	other := open(t, path, sqlite.Options{Clock: func() time.Time { return time.Now().Add(time.Hour + later) }})
	me := executor("me")
	for range 5 {
		require.Empty(t, beat(t, other, me).Gone)
		require.Empty(t, claim(t, other, me, "r"))
		later += e.Lease * 2 / 3
		beat(t, owner, e)
	}
	// One that is there and says nothing, as a stopped process, is waited for
	// once.
	require.Empty(t, beat(t, other, me).Gone)
	later += e.Lease
	require.Equal(t, []string{"owner"}, beat(t, other, me).Gone)
	require.Len(t, claim(t, other, me, "r"), 1)
}
