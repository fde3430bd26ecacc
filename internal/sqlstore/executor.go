package sqlstore

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// ExecutorRow is a row of the executors table as a reader selects it. Lease is
// in microseconds; Presence is the backend's own (empty: none); Serves is JSON.
type ExecutorRow struct {
	ID        string `db:"id"`
	Name      string `db:"name"`
	Host      string `db:"host"`
	Boot      string `db:"boot"`
	PID       int64  `db:"pid"`
	Lease     int64  `db:"lease"`
	Serves    string `db:"serves"`
	StartedAt int64  `db:"started_at"`
	BeatAt    int64  `db:"beat_at"`
	Presence  string `db:"presence"`
}

// Executor returns the record, with Live left false.
func (r *ExecutorRow) Executor() (store.Executor, error) {
	served, err := ParseServed(r.Serves)
	if err != nil {
		return store.Executor{}, fmt.Errorf("sqlstore: executor %s: %w", r.ID, err)
	}
	return store.Executor{
		ID: r.ID, Name: r.Name, Host: r.Host, Boot: r.Boot, PID: int(r.PID), Lease: time.Duration(r.Lease) * time.Microsecond,
		Serves: served, StartedAt: store.Time(r.StartedAt), BeatAt: store.Time(r.BeatAt),
	}, nil
}

// Leased reports whether the lease has not yet expired at now.
func (r *ExecutorRow) Leased(now store.Time) bool { return int64(now) < r.BeatAt+r.Lease }

// Ahead reports whether the last beat lies in the future: it came from another
// clock, or the clock was set back since.
func (r *ExecutorRow) Ahead(now store.Time) bool { return int64(now) < r.BeatAt }

// FormatServed returns served as JSON.
func FormatServed(served []store.Served) (string, error) {
	b, err := json.Marshal(served)
	if err != nil {
		return "", fmt.Errorf("sqlstore: encode served workflows: %w", err)
	}
	return string(b), nil
}

// ParseServed reads what FormatServed wrote.
func ParseServed(text string) ([]store.Served, error) {
	var served []store.Served
	if err := json.Unmarshal([]byte(text), &served); err != nil {
		return nil, fmt.Errorf("decode served workflows: %w: %w", store.ErrCorrupt, err)
	}
	return served, nil
}
