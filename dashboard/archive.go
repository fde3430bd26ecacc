package dashboard

import (
	"context"
	"encoding/json"
	"time"
)

// Archive has runs that were kept outside of the store. Its methods may be called
// concurrently.
type Archive interface {
	// Source names the kind of archive, "git" say.
	Source() string
	// Runs lists what is kept, the runs that ended last first. One run that
	// cannot be read does not keep the others.
	Runs(ctx context.Context) ([]ArchivedRun, error)
}

// ArchivedRun is a run as an archive lists it.
type ArchivedRun struct {
	RunID     string          `json:"run_id"`
	Workflow  string          `json:"workflow"`
	Status    string          `json:"status"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`
	Duration  int64           `json:"duration_ms"` // in milliseconds
	Error     string          `json:"error,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"` // absent unless it completed
}
