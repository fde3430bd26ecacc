package web

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Env is what every package of the dashboard gets: the engine, the log, and the rules
// for what a caller may do and see.
type Env struct {
	Engine *durable.Engine
	Log    *slog.Logger
	Redact view.Redact
	Site   view.Site
	Wire   *view.Wire
	// May returns nil if the sender of r may do this. runID is empty for an action that
	// concerns no run.
	May func(r *http.Request, action, runID string) error
	// User names the caller; nil: it is not known.
	User func(context.Context) string
	// ShowPayloads shows user data to callers that may see it; false: to none.
	ShowPayloads bool
}

// NewEnv returns an Env for an engine. The caller sets May, User and ShowPayloads.
func NewEnv(eng *durable.Engine, log *slog.Logger, site view.Site, redact view.Redact) *Env {
	// The engine may be nil where only the routes are asked for.
	open := func(id string, ev store.Event) (operate.Payload, error) { return operate.On(eng).Payload(id, ev) }
	return &Env{Engine: eng, Log: log, Redact: redact, Site: site, Wire: &view.Wire{Redact: redact, Site: site, Open: open}}
}

// The actions that are passed to May, as package dashboard names them.
const (
	ActionList    = "list"
	ActionRead    = "read"
	ActionPayload = "payload"
	ActionStart   = "start"
	ActionResume  = "resume"
	ActionCancel  = "cancel"
	ActionPause   = "pause"
	ActionUnpause = "unpause"
	ActionSignal  = "signal"
	ActionAnswer  = "answer"
	ActionFork    = "fork"
	ActionJump    = "jump"
	ActionEdit    = "edit"
	ActionQueue   = "queue"

	ActionSchedule = "schedule"
)

// MayPayload reports whether user data of a run is shown to the sender of r.
func (e *Env) MayPayload(r *http.Request, runID string) bool {
	return e.ShowPayloads && e.May(r, ActionPayload, runID) == nil
}

// Who names the sender of r, for the history.
func (e *Env) Who(r *http.Request) string {
	if e.User == nil {
		return ""
	}
	return e.User(r.Context())
}
