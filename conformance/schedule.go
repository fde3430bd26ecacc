package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var scheduleCases = []Case{
	{Name: "a schedule reads back as it was stored", Clauses: "S4, S36", Needs: Schedules, run: scheduleReadsBack},
	{Name: "a schedule is replaced by who knows its revision, and by nobody else", Clauses: "S36", Needs: Schedules, run: scheduleCompares},
	{Name: "of many who replace a revision at once one wins", Clauses: "S36", Needs: Schedules, run: scheduleRaces},
	{Name: "a schedule that is stored again is not changed again", Clauses: "S36", Needs: Schedules, run: scheduleAgain},
	{Name: "a schedule that was deleted is another one afterwards", Clauses: "S36, S37", Needs: Schedules, run: scheduleDeleted},
	{Name: "an invalid schedule is refused and changes nothing", Clauses: "S36", Needs: Schedules, run: scheduleInvalid},
	{Name: "what a caller gave of a schedule, and was given, is the caller's", Clauses: "S17", Needs: Schedules, run: scheduleOwned},
	{Name: "a schedule is due when its time has come by the store's clock", Clauses: "S37", Needs: Schedules, run: scheduleDue},
	{Name: "what is due comes in order, as far as the limit goes", Clauses: "S37", Needs: Schedules, run: scheduleOrder},
	{Name: "a closed store keeps no schedules", Clauses: "S23", Needs: Schedules, run: scheduleClosed},
}

// schedules returns the schedules that s keeps.
func schedules(s store.Store) store.Schedules { return capabilities(s).Schedules }

// put stores a schedule that must be taken.
func (t *T) put(s store.Store, sc store.Schedule) store.Schedule {
	t.Helper()
	got, err := schedules(s).PutSchedule(t.Context(), sc)
	require.NoError(t, err, "S36: storing schedule %q", sc.Name)
	return got
}

// scheduled returns the one schedule of a name.
func (t *T) scheduled(s store.Store, name string) store.Schedule {
	t.Helper()
	list, err := schedules(s).Schedules(t.Context(), name)
	require.NoError(t, err)
	require.Len(t, list, 1, "S36: schedule %q", name)
	return list[0]
}

func scheduleReadsBack(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	far := store.Time(253_402_300_799_999_999) // the last microsecond of the year 9999
	want := []store.Schedule{
		{Name: "Nightly", Due: 1, Data: []byte(`{"cron":"0 0 2 * * *"}`)},
		{Name: "nightly", Due: far, Data: []byte("\x00\xff not JSON")},
		{Name: "paused", Data: bytes.Repeat([]byte("x"), 100_000)},
		{Name: "ünïcode 🚚/#~[]%", Due: 17},
	}
	before := t.beat(s, "a").Now
	for i := range want {
		got := t.put(s, want[i])
		require.Positive(t, got.Revision, "S36: it has a revision")
		require.GreaterOrEqual(t, got.UpdatedAt, before, "by the store's clock")
		want[i].Revision, want[i].UpdatedAt = got.Revision, got.UpdatedAt
		require.Equal(t, want[i], got, "S36: it is returned as it is stored")
	}
	for _, reader := range []store.Store{s, other} {
		got, err := schedules(reader).Schedules(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got, "S4: all, in the order of the bytes of their names")
		got, err = schedules(reader).Schedules(t.Context(), "paused", "nobody", "Nightly")
		require.NoError(t, err)
		require.Equal(t, []store.Schedule{want[0], want[2]}, got, "S4: those that are asked for and exist")
	}
	require.NoError(t, s.Close())
	require.NoError(t, other.Close())
	got, err := schedules(t.handle(d)).Schedules(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got, "S4: it is there when the store is opened again")
}

func scheduleCompares(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	first := t.put(s, store.Schedule{Name: "n", Due: 1, Data: []byte("1")})
	second := first
	second.Due, second.Data = 2, []byte("2")
	second = t.put(other, second)
	require.Greater(t, second.Revision, first.Revision, "S36: the revision grows")
	require.GreaterOrEqual(t, second.UpdatedAt, first.UpdatedAt)
	for what, stale := range map[string]store.Schedule{
		"an old revision":            {Name: "n", Revision: first.Revision, Due: 3, Data: []byte("3")},
		"an old revision, as it was": {Name: "n", Revision: first.Revision, Due: 1, Data: []byte("1")},
		"none is expected":           {Name: "n", Due: 3, Data: []byte("3")},
		"a revision to come":         {Name: "n", Revision: second.Revision + 1, Due: 2, Data: []byte("2")},
		"one that does not exist":    {Name: "nobody", Revision: first.Revision, Due: 3},
	} {
		_, err := schedules(s).PutSchedule(t.Context(), stale)
		require.ErrorIs(t, err, store.ErrRevision, "S36: %s", what)
	}
	require.Equal(t, second, t.scheduled(s, "n"), "S36: what is refused changes nothing")
	_, err := schedules(s).Schedules(t.Context(), "nobody")
	require.NoError(t, err)
}

func scheduleRaces(t *T) {
	d := t.fresh()
	const clients, each = 4, 10
	handles := make([]store.Store, clients)
	for i := range handles {
		handles[i] = t.handle(d)
	}
	t.put(handles[0], store.Schedule{Name: "n", Due: 1})
	var mu sync.Mutex
	won := make(map[int64]int) // revision to how many stored it
	t.together(clients, func(i int) {
		for n := 0; n < each; {
			list, err := schedules(handles[i]).Schedules(t.Context(), "n")
			if err != nil || len(list) != 1 {
				t.Errorf("S36: reading the schedule: %d of them, %v", len(list), err)
				return
			}
			next := list[0]
			next.Due++
			next.Data = fmt.Appendf(nil, "%d/%d", i, n)
			got, err := schedules(handles[i]).PutSchedule(t.Context(), next)
			switch {
			case errors.Is(err, store.ErrRevision):
				continue
			case err != nil:
				t.Errorf("S36: storing the schedule: %v", err)
				return
			}
			n++
			mu.Lock()
			won[got.Revision]++
			mu.Unlock()
		}
	})
	for revision, n := range won {
		require.Equal(t, 1, n, "S36: revision %d was stored once", revision)
	}
	require.Equal(t, store.Time(1+clients*each), t.scheduled(handles[0], "n").Due, "S36: each replaced what it had read")
}

func scheduleAgain(t *T) {
	s := t.open()
	create := store.Schedule{Name: "n", Due: 7, Data: []byte("a")}
	created := t.put(s, create)
	require.Equal(t, created, t.put(s, create), "S36: a creation that was carried out succeeds again")
	move := created
	move.Due, move.Data = 8, []byte("b")
	moved := t.put(s, move)
	require.Equal(t, moved, t.put(s, move), "S36: a replacement that was carried out succeeds again")
	require.Equal(t, moved, t.scheduled(s, "n"), "S36: and changes nothing")
	third := moved
	third.Data = []byte("c")
	third = t.put(s, third)
	_, err := schedules(s).PutSchedule(t.Context(), move)
	require.ErrorIs(t, err, store.ErrRevision, "S36: another has followed since")
	require.Equal(t, third, t.scheduled(s, "n"))
}

func scheduleDeleted(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	old := t.put(s, store.Schedule{Name: "n", Due: 1, Data: []byte("a")})
	kept := t.put(s, store.Schedule{Name: "kept", Due: 1})
	remove := func() bool {
		existed, err := schedules(other).DeleteSchedule(t.Context(), "n")
		require.NoError(t, err)
		return existed
	}
	require.True(t, remove(), "there was one")
	require.False(t, remove(), "there is none any more")
	for _, name := range []string{"", "a\x00b", "\xff", string(bytes.Repeat([]byte("n"), 10*store.MaxName))} {
		existed, err := schedules(s).DeleteSchedule(t.Context(), name)
		require.NoError(t, err, "S36: there is no schedule %.20q", name)
		require.False(t, existed, "S36: there is no schedule %.20q", name)
	}
	list, err := schedules(s).Schedules(t.Context())
	require.NoError(t, err)
	require.Equal(t, []store.Schedule{kept}, list)
	due, err := schedules(s).DueSchedules(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, []store.Schedule{kept}, due.Due, "S37: what was deleted is not due")
	_, err = schedules(s).PutSchedule(t.Context(), old)
	require.ErrorIs(t, err, store.ErrRevision, "S36: it does not exist any more")
	seen := map[int64]bool{old.Revision: true}
	for range 5 {
		again := t.put(s, store.Schedule{Name: "n", Due: 2, Data: []byte("b")})
		require.False(t, seen[again.Revision], "S36: revision %d is used again", again.Revision)
		seen[again.Revision] = true
		_, err = schedules(s).PutSchedule(t.Context(), store.Schedule{Name: "n", Revision: old.Revision, Due: 3})
		require.ErrorIs(t, err, store.ErrRevision, "S36: it is another schedule")
		require.True(t, remove())
	}
}

func scheduleInvalid(t *T) {
	s := t.open()
	long := string(bytes.Repeat([]byte("n"), store.MaxName+1))
	for what, sc := range map[string]store.Schedule{
		"no name":             {Due: 1},
		"a long name":         {Name: long, Due: 1},
		"a control character": {Name: "a\x00b", Due: 1},
		"a negative revision": {Name: "n", Revision: -1},
		"a negative due":      {Name: "n", Due: -1},
	} {
		_, err := schedules(s).PutSchedule(t.Context(), sc)
		require.ErrorIs(t, err, store.ErrInvalid, "S36: %s", what)
	}
	_, err := schedules(s).PutSchedule(t.Context(), store.Schedule{Name: "n", Data: make([]byte, s.Limits().Payload+1)})
	require.ErrorIs(t, err, store.ErrTooLarge, "S36: data over the limit of a payload")
	list, err := schedules(s).Schedules(t.Context())
	require.NoError(t, err)
	require.Empty(t, list, "S36: what is refused changes nothing")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = schedules(s).PutSchedule(cancelled, store.Schedule{Name: "n", Due: 1})
	require.ErrorIs(t, err, context.Canceled)
}

func scheduleOwned(t *T) {
	s := t.open()
	given := []byte("data")
	got := t.put(s, store.Schedule{Name: "n", Due: 1, Data: given})
	copy(given, "XXXX")
	copy(got.Data, "YYYY")
	read := t.scheduled(s, "n")
	require.Equal(t, "data", string(read.Data), "S17: the store keeps no slice of its caller's")
	copy(read.Data, "ZZZZ")
	due, err := schedules(s).DueSchedules(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, due.Due, 1)
	require.Equal(t, "data", string(due.Due[0].Data), "S17: and gives none away")
	copy(due.Due[0].Data, "ZZZZ")
	require.Equal(t, "data", string(t.scheduled(s, "n").Data), "S17: and gives none away")
}

func scheduleDue(t *T) {
	d := t.fresh()
	s := t.handle(d)
	now := t.beat(s, "a").Now
	t.put(s, store.Schedule{Name: "never"})
	soon := t.put(s, store.Schedule{Name: "soon", Due: now.Add(shortLease)})
	far := t.put(s, store.Schedule{Name: "far", Due: now.Add(1000 * time.Hour)})
	t.eventually("S37: a schedule becomes due", func() bool {
		before := t.beat(s, "a").Now
		due, err := schedules(s).DueSchedules(t.Context(), 10)
		require.NoError(t, err)
		after := t.beat(s, "a").Now
		require.True(t, before <= due.Now && due.Now <= after, "S37: Now is the store's clock")
		if len(due.Due) == 0 {
			require.Less(t, due.Now, soon.Due, "S37: its time has come and it is not due")
			require.Equal(t, soon.Due, due.Next, "S37: the next is the earliest")
			if d.Advance != nil {
				d.Advance(shortLease / 5)
			}
			return false
		}
		require.Equal(t, []store.Schedule{soon}, due.Due, "S37: no other one is due")
		require.GreaterOrEqual(t, due.Now, soon.Due, "S37: it is due before its time")
		require.Equal(t, far.Due, due.Next, "S37: then the other is the next")
		return true
	})
	far.Due = 0
	t.put(s, far)
	soon.Due = 0
	t.put(s, soon)
	due, err := schedules(s).DueSchedules(t.Context(), 10)
	require.NoError(t, err)
	require.Empty(t, due.Due, "S37: what has no Due never is")
	require.Zero(t, due.Next)
}

func scheduleOrder(t *T) {
	s := t.open()
	var want []store.Schedule
	for i, name := range []string{"c", "a", "é", "Z", "b"} {
		want = append(want, t.put(s, store.Schedule{Name: name, Due: store.Time(10 - 3*(i/2)), Data: []byte(name)}))
	}
	later := t.put(s, store.Schedule{Name: "later", Due: t.beat(s, "a").Now.Add(1000 * time.Hour)})
	slices.SortFunc(want, func(a, b store.Schedule) int {
		if a.Due != b.Due {
			return int(a.Due - b.Due)
		}
		return bytes.Compare([]byte(a.Name), []byte(b.Name))
	})
	for _, limit := range []int{0, 1, 2, 3, 4, 5, 6, -1, math.MaxInt} {
		due, err := schedules(s).DueSchedules(t.Context(), limit)
		require.NoError(t, err)
		n := min(max(limit, 0), len(want))
		require.Equal(t, want[:n], due.Due[:len(due.Due):len(due.Due)], "S37: the first %d", limit)
		next := later.Due
		if n < len(want) {
			next = want[n].Due
		}
		require.Equal(t, next, due.Next, "S37: the next after %d", limit)
	}
}

func scheduleClosed(t *T) {
	d := t.fresh()
	s, err := d.Open()
	require.NoError(t, err)
	sc := schedules(s)
	require.NoError(t, s.Close())
	_, err = sc.PutSchedule(t.Context(), store.Schedule{Name: "n", Due: 1})
	require.ErrorIs(t, err, store.ErrClosed, "S23")
	_, err = sc.DeleteSchedule(t.Context(), "n")
	require.ErrorIs(t, err, store.ErrClosed, "S23")
	_, err = sc.Schedules(t.Context())
	require.ErrorIs(t, err, store.ErrClosed, "S23")
	_, err = sc.DueSchedules(t.Context(), 1)
	require.ErrorIs(t, err, store.ErrClosed, "S23")
}
