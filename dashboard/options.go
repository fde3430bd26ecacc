package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
)

// An Action is what a request does, for Authorize.
type Action string

// The actions. Those of the first group change nothing.
const (
	// ActionList shows the rows of all runs: ids, statuses, where they are and why they
	// failed, prompts, counts, health. It does not concern a single run.
	ActionList Action = "list"
	// ActionRead shows one run: its row, history, branches and errors.
	ActionRead Action = "read"
	// ActionPayload shows user data: inputs, results, answers. Without it they are
	// redacted.
	ActionPayload Action = "payload"

	ActionStart   Action = "start" // of a new run
	ActionResume  Action = "resume"
	ActionCancel  Action = "cancel"
	ActionPause   Action = "pause"
	ActionUnpause Action = "unpause"
	ActionSignal  Action = "signal"
	ActionAnswer  Action = "answer" // an approval: approve, reject
	ActionFork    Action = "fork"
	ActionJump    Action = "jump"
	ActionEdit    Action = "edit"
	// ActionQueue pauses and resumes a queue. It concerns no single run.
	ActionQueue Action = "queue"
	// ActionSchedule pauses, resumes, triggers, fills and deletes a schedule. It concerns no
	// single run.
	ActionSchedule Action = "schedule"
)

// Actions returns every action.
func Actions() []Action {
	return []Action{
		ActionList, ActionRead, ActionPayload,
		ActionStart, ActionResume, ActionCancel, ActionPause, ActionUnpause, ActionSignal, ActionAnswer, ActionFork, ActionJump, ActionEdit, ActionQueue, ActionSchedule,
	}
}

// Writes reports whether the action changes anything.
func (a Action) Writes() bool {
	return a != "" && a != ActionList && a != ActionRead && a != ActionPayload
}

// ErrUnauthenticated, returned or wrapped by Authorize, makes the answer 401: the caller
// is not known. Any other error of Authorize makes it 403.
var ErrUnauthenticated = web.ErrUnauthenticated

// Options configure a Handler. The zero value serves only this machine: a request to any
// address but loopback is refused.
type Options struct {
	// Prefix is the path the handler is mounted at, such as "/durable"; empty:
	// the root.
	Prefix string

	// Middleware runs before every route, to find out who the caller is. It may answer
	// itself, or put a user into the request's context for Authorize and User. nil: none.
	Middleware func(http.Handler) http.Handler
	// Authorize returns nil if the caller may do this, to the run if the action concerns
	// one; otherwise an error that says why not, which is shown. It is called for every
	// request, and by the pages for every button, so it should be fast. It may be called
	// concurrently.
	//
	// nil: callers over loopback may do everything, all others may not do anything that
	// writes. Reading beyond loopback then needs a Middleware.
	Authorize func(ctx context.Context, a Action, runID string) error
	// User names the caller, for the history ("edited by"); nil or an empty name: no name
	// is recorded.
	User func(ctx context.Context) string

	// Hosts are the names, without port, under which the handler may be addressed, besides
	// those of loopback and the address of the connection itself. A request for another
	// name is refused: a stranger's page could have made the browser resolve its own name
	// to this machine. "*" allows all names, for a handler behind a proxy that checks
	// them.
	Hosts []string
	// Origins are other origins ("https://ops.example.com") whose pages may send
	// requests that change something.
	Origins []string

	// ShowPayloads shows user data to callers that may ActionPayload; false: to none.
	ShowPayloads bool
	// Redact is applied to every text of user origin that is shown: errors,
	// reasons, prompts, notes, payloads. nil: they are shown as recorded.
	Redact func(text string) string

	// Archive lists the runs that are kept elsewhere, for the history; nil: none.
	Archive Archive

	// MaxBody is how many bytes the body of a request may have; zero: 1 MiB.
	MaxBody int64
	// MaxStreams and MaxStreamsPerClient bound how many streams are open at a time, in all
	// and per address; zero: 1,000 and 250.
	MaxStreams, MaxStreamsPerClient int
	// Heartbeat is how often a silent stream shows that it is alive; zero: 15 s.
	Heartbeat time.Duration
	// Patience is how long an act may wait for a run to stop, such as Jump;
	// zero: 20 s.
	Patience time.Duration

	// Logger for internal errors; nil: slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Prefix = strings.TrimRight(o.Prefix, "/")
	if o.Prefix != "" && !strings.HasPrefix(o.Prefix, "/") {
		o.Prefix = "/" + o.Prefix
	}
	orDefault(&o.MaxBody, 1<<20)
	orDefault(&o.MaxStreams, 1000)
	orDefault(&o.MaxStreamsPerClient, 250)
	orDefault(&o.Heartbeat, 15*time.Second)
	orDefault(&o.Patience, 20*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func orDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
