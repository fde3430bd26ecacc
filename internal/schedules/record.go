package schedules

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/calendar"
	"github.com/holdfast-dev/holdfast/store"
)

// format is the version of the stored form. A program refuses records of a later one.
const format = 1

// The limits of a record.
const (
	// keptFires is how many of the last fires are kept.
	keptFires = 10
	// maxHeld is how many fires may wait for the run before.
	maxHeld = 100
	// maxLive is how many runs are watched for their end.
	maxLive = 100
	// batch is how many fires are decided in one write.
	batch = 100
	// maxWhy is how much is kept of why a fire was refused, in bytes.
	maxWhy = 1000
)

// A Record is a schedule as it is stored: a declaration, and how far it has got.
type Record struct {
	Format int `json:"format"`
	// By is the executor that has written the record. Two that write the same differ in it:
	// the store must not take the one for a repetition of the other.
	By         string     `json:"by"`
	Definition Definition `json:"definition"`

	// Settled: every fire time up to this one is decided.
	Settled store.Time `json:"settled"`
	Paused  *Pause     `json:"paused,omitempty"`
	// Decided fires are to be started. They are in Live.
	Decided []Decided `json:"decided,omitempty"`
	// Held fires wait for the run before.
	Held []store.Time `json:"held,omitempty"`
	// Live are the ids of runs that were started, or are about to be, and of which it is
	// not known that they have ended.
	Live []string `json:"live,omitempty"`
	// Last are the last fires, oldest first.
	Last []Fire `json:"last,omitempty"`

	// How many fires there were, by outcome.
	Started int64 `json:"started,omitempty"`
	Skipped int64 `json:"skipped,omitempty"`
	Missed  int64 `json:"missed,omitempty"`
	Refused int64 `json:"refused,omitempty"`
}

// Pause says since when a schedule is paused, and why.
type Pause struct {
	At     store.Time `json:"at"`
	Reason string     `json:"reason,omitempty"`
}

// Decided is a fire that is to be started.
type Decided struct {
	At    store.Time `json:"at"`
	RunID string     `json:"run_id"`
}

// Fire is what became of a fire time.
type Fire struct {
	At      store.Time `json:"at"`
	RunID   string     `json:"run_id,omitempty"`
	Outcome Outcome    `json:"outcome"`
	// Why it was skipped or refused, for people.
	Why string `json:"why,omitempty"`
	// Count: of a missed one, how many were missed together; this is the last of them.
	Count int64 `json:"count,omitempty"`
}

// Outcome is what became of a fire.
type Outcome string

// The outcomes.
const (
	Started    Outcome = "started"
	Skipped    Outcome = "skipped" // the run before had not ended
	MissedFire Outcome = "missed"  // nobody looked in time
	Refused    Outcome = "refused" // the run could not be started
)

// RunID returns the id of the run that a schedule starts at a time.
func RunID(name string, at store.Time) string {
	return name + "@" + at.Time().Format(idTime)
}

// idTime is RFC 3339 in UTC, with a fraction only where there is one.
const idTime = "2006-01-02T15:04:05.999999Z07:00"

// TriggerID returns the id of the run that is started by hand under a key.
func TriggerID(name, key string) string { return name + "@now-" + key }

// decode reads a record and computes its times. The error says that this program cannot.
func decode(s *store.Schedule) (*Record, *calendar.Calendar, error) {
	r, err := parse(s)
	if err != nil {
		return nil, nil, err
	}
	c, err := r.Definition.Calendar()
	if err != nil {
		return nil, nil, fmt.Errorf("durable: schedule %s: %w", s.Name, err)
	}
	return r, c, nil
}

// parse reads a record. The error matches store.ErrCorrupt, or store.ErrInvalid for one of a
// newer program.
func parse(s *store.Schedule) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(s.Data, r); err != nil {
		return nil, fmt.Errorf("durable: schedule %s is damaged; delete it and let a program declare it again: %w: %w", s.Name, err, store.ErrCorrupt)
	}
	if r.Format > format {
		return nil, fmt.Errorf("durable: schedule %s has format %d, and this program knows %d: use a newer program: %w", s.Name, r.Format, format, store.ErrInvalid)
	}
	return r, nil
}

// encode returns the schedule to store for a record.
func (r *Record) encode(by, name string, revision int64, due store.Time) store.Schedule {
	r.Format, r.By = format, by
	b, err := json.Marshal(r)
	if err != nil {
		panic("schedules: " + err.Error()) // its Options are JSON, and nothing else can fail
	}
	return store.Schedule{Name: name, Revision: revision, Due: due, Data: b}
}

// largest returns the size of the stored form of a record of this definition when all its
// lists are full of what is longest, in bytes; 0 if that is less than most anyway.
func (d *Definition) largest(by, name string, most int) int {
	if len(d.Input)/2*3+len(d.Options) < most-1<<20 { // less than a MiB is added
		return 0
	}
	at := store.TimeOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC))
	long := strings.Repeat("<", store.MaxName) // JSON escapes it
	r := &Record{Definition: *d, Settled: at, Paused: &Pause{At: at, Reason: strings.Repeat("<", MaxReason)}}
	r.Started, r.Skipped, r.Missed, r.Refused = math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64
	for range batch + 1 {
		r.Decided = append(r.Decided, Decided{At: at, RunID: RunID(name, at)})
		r.Held = append(r.Held, at)
		r.Live = append(r.Live, TriggerID(name, long))
	}
	for range keptFires {
		r.Last = append(r.Last, Fire{At: at, RunID: TriggerID(name, long), Outcome: MissedFire, Why: strings.Repeat("<", 2*maxWhy), Count: math.MaxInt64})
	}
	s := r.encode(by, name, 1, at)
	return len(s.Data)
}

// dueAt returns when a fire time is due: the jitter later.
func (d *Definition) dueAt(name string, c *calendar.Calendar, at time.Time) store.Time {
	return store.TimeOf(at.Add(c.Jitter(name, at, d.jitter())))
}

// due returns when a record is to be looked at; 0: never. poll is how long a fire that is
// held waits for the next look.
func (r *Record) due(name string, c *calendar.Calendar, now store.Time, poll time.Duration) store.Time {
	if len(r.Decided) > 0 {
		return max(now, 1)
	}
	if r.Paused != nil {
		return 0
	}
	var due store.Time
	if next := c.Next(r.Settled.Time()); !next.IsZero() {
		due = r.Definition.dueAt(name, c, next)
	}
	if len(r.Held) > 0 {
		if again := now.Add(poll); due == 0 || again < due {
			due = again
		}
	}
	return due
}

// passed returns up to when a record is settled whose pause ends now.
func (r *Record) passed(name string, c *calendar.Calendar, now store.Time) store.Time {
	late := c.Last(1, max(r.Settled, now.Add(-r.Definition.jitter())).Time(), now.Time()) // the next comes after its jitter
	if len(late) == 1 && store.TimeOf(late[0]) <= r.Paused.At && r.Definition.dueAt(name, c, late[0]) > now {
		return store.TimeOf(late[0]) - 1
	}
	return now
}

// remember adds what became of a fire.
func (r *Record) remember(f Fire) {
	switch f.Outcome {
	case Started:
		r.Started++
	case Skipped:
		r.Skipped++
	case MissedFire:
		r.Missed += f.Count
	case Refused:
		r.Refused++
	}
	r.Last = append(r.Last, f)
	if n := len(r.Last) - keptFires; n > 0 {
		r.Last = slices.Delete(r.Last, 0, n)
	}
}

// watch adds a run whose end later fires ask for. Of very many the oldest are forgotten: first those that were
// triggered, then those of fires, of which only OverlapAllow can have so many under way.
func (r *Record) watch(name, id string) {
	if r.watches(id) {
		return
	}
	r.Live = append(r.Live, id)
	for len(r.Live) > maxLive {
		triggered := func(id string) bool { return strings.HasPrefix(id, TriggerID(name, "")) }
		i := max(slices.IndexFunc(r.Live[:maxLive], triggered), 0)
		r.Live = slices.Delete(r.Live, i, i+1)
	}
}

// watches reports whether a run is watched.
func (r *Record) watches(id string) bool { return slices.Contains(r.Live, id) }

// unwatch removes runs.
func (r *Record) unwatch(gone func(id string) bool) { r.Live = slices.DeleteFunc(r.Live, gone) }
