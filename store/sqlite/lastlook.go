//go:build cgo

package sqlite

import (
	"maps"
	"slices"

	"github.com/mattn/go-sqlite3"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// lastLook is what the last beat of this handle found. The next beat of the same executor
// repeats it, in one statement, if nobody has written to the database in between and no time
// has come that the answer depends on. SQLite itself says whether somebody has: data_version
// counts the commits of other connections, total_changes the rows that this one has changed.
// A beat has the database for itself while it compares them, so nothing is overlooked.
type lastLook struct {
	raw              *sqlite3.SQLiteConn // the counts are those of a connection
	version, changes int64
	said             sqlstore.ExecutorRow // what the executor said
	at               store.Time
	until            store.Time // the earliest time that a run waits for; 0: none
	known            []sqlstore.ExecutorRow
	live             map[string]bool
	pulse            store.Pulse
}

// sightings are what a handle has seen of executors.
type sightings struct {
	sqlstore.Sightings
	// last is what the last beat has found; nil: the next one looks itself. Only the holder
	// of the writer touches it.
	last *lastLook
}

// soon notes that what a beat finds may change at this time.
func (t *tx) soon(at store.Time) {
	if at > t.now && (t.until == 0 || at < t.until) {
		t.until = at
	}
}

// beatAgain beats and repeats the answer of the last look, if it still holds.
func (t *tx) beatAgain(said sqlstore.ExecutorRow, p *store.Pulse) (bool, error) {
	l := t.s.sightings.last
	t.s.sightings.last = nil // until this beat is committed
	c, ok := t.db.(*conn)
	if l == nil || !ok || l.raw != c.raw || l.said != said || t.now < l.at || l.until != 0 && t.now >= l.until {
		return false, nil
	}
	live := make(map[string]bool, len(l.known))
	for i := range l.known {
		k := &l.known[i]
		if expired, gone := t.mourns(k); expired || gone {
			return false, nil
		}
		live[k.ID] = t.s.isLive(k, t.clock)
	}
	own := slices.IndexFunc(l.known, func(k sqlstore.ExecutorRow) bool { return k.ID == said.ID })
	if own < 0 || !maps.Equal(live, l.live) {
		return false, nil
	}
	beaten, _, err := t.exec(t.s.q.executorBeatAgain, said.ID, int64(t.now), l.known[own].BeatAt, l.changes, l.version)
	if err != nil || beaten == 0 {
		return false, err
	}
	*p = l.pulse
	p.Now, p.Mail, p.Gone = t.now, slices.Clone(p.Mail), slices.Clone(p.Gone)
	t.known, t.loaded = l.known, true
	p.Skew = t.skew(said.ID)
	p.Late = late(&l.known[own], t.now)
	l.known[own].BeatAt = int64(t.now)
	l.at, l.changes = t.now, l.changes+beaten
	t.looked = l
	return true, nil
}

// remember keeps what this beat has found for the next one.
func (t *tx) remember(said sqlstore.ExecutorRow, p *store.Pulse) error {
	c, ok := t.db.(*conn)
	if !ok {
		return nil
	}
	live, err := t.liveSet()
	if err != nil {
		return err
	}
	l := &lastLook{raw: c.raw, said: said, at: t.now, until: t.until, known: t.known, live: live, pulse: *p}
	l.pulse.Mail, l.pulse.Gone = slices.Clone(p.Mail), slices.Clone(p.Gone)
	t.looked = l
	return t.query(t.s.q.written, func(c *cells) error {
		l.version, l.changes = c.int(), c.int()
		return nil
	})
}
