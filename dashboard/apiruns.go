package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// getRuns serves GET /api/runs: a page of runs.
func (h *handler) getRuns(w http.ResponseWriter, r *http.Request) error {
	l, err := parseListing(r.URL.Query(), time.Now())
	if err != nil {
		return err
	}
	page, err := h.list(r.Context(), l)
	if err != nil {
		return err
	}
	return answerJSON(w, page)
}

// list reads a page of runs.
func (h *handler) list(ctx context.Context, l *listing) (client.Runs, error) {
	page := client.Runs{Runs: []client.Run{}}
	rows, next, err := h.matching(ctx, l)
	if err != nil {
		return page, err
	}
	room := quota(listBytes)
	for i := range rows {
		run := h.wireRun(&rows[i])
		if !room.take(run) {
			break
		}
		page.Runs = append(page.Runs, run)
	}
	if len(page.Runs) < len(rows) { // the cursor leads behind the page, so the page must end here
		short := *l
		short.filter.Limit = len(page.Runs)
		if rows, next, err = h.matching(ctx, &short); err != nil {
			return page, err
		}
		page.Runs = page.Runs[:0]
		for i := range rows {
			page.Runs = append(page.Runs, h.wireRun(&rows[i]))
		}
	}
	page.Next = l.cursorBehind(next)
	if l.counts {
		all := l.filter
		all.Statuses, all.After = nil, ""
		counts, err := h.eng.Store().Count(ctx, all, store.ByStatus)
		if err != nil {
			return page, err
		}
		page.Counts = counts
	}
	return page, nil
}

// getRun serves GET /api/runs/{id}.
func (h *handler) getRun(w http.ResponseWriter, r *http.Request) error {
	run, err := h.run(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return answerJSON(w, run)
}

// newest reads what the verdict on a run is made of, without its messages.
var newest = store.Cursor{Tail: outline.Newest, AfterMessage: 1<<63 - 1}

// run reads a run with what is known of it beside its row.
func (h *handler) run(ctx context.Context, id string) (client.Run, error) {
	info, err := h.eng.Get(ctx, id)
	if err != nil {
		return client.Run{}, err
	}
	// The row of the same moment as the events that the verdict is made of, and before
	// the executors: one that took the run in between is known.
	hist, err := h.eng.Store().Load(ctx, id, newest)
	if err != nil {
		return client.Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	info.Run = hist.Run
	executors, err := h.executors(ctx)
	if err == nil && hist.Run.Owner != "" && !slices.ContainsFunc(executors, func(x store.Executor) bool { return x.ID == hist.Run.Owner }) {
		executors, err = h.executorsNow(ctx) // it has come since they were listed
	}
	if err != nil {
		return client.Run{}, err
	}
	run := h.wireRun(&info.Run)
	run.Declared, run.Exclusive, run.Differences = info.Declared, info.Exclusive, h.redactList(info.Differences)
	if o, err := h.outlineOf(hist, executors); err == nil {
		run.Verdict = h.redact(o.Verdict.Text())
	} else {
		h.options.Logger.Warn("dashboard: the history of a run cannot be read", "run", id, "error", err)
	}
	run.Nobody = nobody(&info.Run, executors)
	if !info.Run.Status.Terminal() {
		executed := run.Nobody == ""
		run.Executed = &executed
	}
	if !info.Run.Status.Terminal() {
		open, err := h.eng.ApprovalsOf(ctx, id)
		if err != nil {
			h.options.Logger.Warn("dashboard: the approvals of a run cannot be read", "run", id, "error", err)
		}
		room := quota(listBytes)
		for i := range open {
			a := h.wireApproval(&open[i])
			if !room.take(a) {
				break // the others come as these are answered
			}
			run.Approvals = append(run.Approvals, a)
		}
	}
	return run, nil
}

// nobody says why a run that has not ended is executed by nobody, and what to do;
// empty: somebody executes it, will claim it, or it has ended. It is a pure
// function of its arguments.
func nobody(r *store.Run, executors []store.Executor) string {
	if r.Status.Terminal() {
		return ""
	}
	served := servedBy(executors, r.Workflow, r.Version)
	owned := slices.ContainsFunc(executors, func(x store.Executor) bool { return x.Live && x.ID == r.Owner })
	code := "workflow " + r.Workflow
	if r.Version != "" && r.Version != durable.DefaultVersion {
		code += " version " + r.Version
	}
	switch {
	case r.Paused && !r.CancelAsked: // a cancel ends a pause
		return "it is paused: unpause it to let it go on"
	case r.Status == store.Interrupted && r.Code != "" && r.Code != store.CodeNotRegistered && !r.Paused:
		return "it was stopped and waits for a person: resume it"
	case owned:
		return ""
	case !served:
		return "nobody alive serves " + code + ": start a program that does"
	case r.Status == store.Running || r.Status == store.Resuming:
		return "its process is gone: another one that serves it takes it over, or resume it"
	}
	return ""
}

func servedBy(executors []store.Executor, workflow, version string) bool {
	return slices.ContainsFunc(executors, func(x store.Executor) bool { return x.Live && store.Serves(x.Serves, workflow, version) })
}

// executorsFor is how long a list of executors is good for.
const executorsFor = time.Second

// executors lists the processes on the store, as they were a second ago at most.
func (h *handler) executors(ctx context.Context) ([]store.Executor, error) {
	h.mu.Lock()
	list, at := h.known, h.knownAt
	h.mu.Unlock()
	if !at.IsZero() && time.Since(at) < executorsFor {
		return list, nil
	}
	return h.executorsNow(ctx)
}

// executorsNow lists the processes on the store.
func (h *handler) executorsNow(ctx context.Context) ([]store.Executor, error) {
	list, err := h.eng.Store().Executors(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	h.mu.Lock()
	h.known, h.knownAt = list, time.Now()
	h.mu.Unlock()
	return list, nil
}

// getReady serves GET /api/ready, a probe for load balancers: it says nothing of
// any run.
func (h *handler) getReady(w http.ResponseWriter, r *http.Request) error {
	health, err := h.eng.Health(r.Context())
	if err == nil {
		err = health.Ready()
	}
	if err != nil {
		return &requestError{http.StatusServiceUnavailable, "not_ready", messageOf(err), ""}
	}
	return answerJSON(w, map[string]bool{"ready": true})
}

// getHealth serves GET /api/health.
func (h *handler) getHealth(w http.ResponseWriter, r *http.Request) error {
	health, err := h.eng.Health(r.Context())
	if err != nil {
		return err
	}
	executors, err := h.executors(r.Context())
	if err != nil {
		return err
	}
	wire := client.Health{
		Ready: true, Executor: h.eng.ID(), BeatAgeMS: health.BeatAge.Milliseconds(), LeaseMS: health.Lease.Milliseconds(), Recovered: health.Recovered,
		Closing: health.Closing, Executing: health.Executing, Unloaded: health.Unloaded, Backlog: health.Backlog, Stuck: health.Stuck,
		Executors: []client.Executor{}, Streams: h.streams.open(),
		CommitP99MS: float64(health.CommitP99.Microseconds()) / 1000, Commits: health.Commits, TimersLate: health.TimersLate,
	}
	if err := health.Ready(); err != nil {
		wire.Ready, wire.Reason = false, messageOf(err)
	}
	for _, x := range executors {
		e := client.Executor{ID: x.ID, Name: x.Name, Host: x.Host, PID: x.PID, StartedAt: x.StartedAt.Time(), BeatAt: x.BeatAt.Time(), Live: x.Live}
		for _, s := range x.Serves {
			e.Workflows = append(e.Workflows, s.Workflow)
		}
		slices.Sort(e.Workflows)
		wire.Executors = append(wire.Executors, e)
	}
	return answerJSON(w, wire)
}

// getCounts serves GET /api/counts.
func (h *handler) getCounts(w http.ResponseWriter, r *http.Request) error {
	counts, err := h.counts(r.Context())
	if err != nil {
		return err
	}
	return answerJSON(w, counts)
}

func (h *handler) counts(ctx context.Context) (client.Counts, error) {
	var c client.Counts
	var err error
	st := h.eng.Store()
	if c.Status, err = st.Count(ctx, store.Filter{}, store.ByStatus); err != nil {
		return c, unavailable(err)
	}
	if c.Workflow, err = st.Count(ctx, store.Filter{}, store.ByWorkflow); err != nil {
		return c, unavailable(err)
	}
	asking, err := st.Count(ctx, store.Filter{Statuses: []store.Status{store.Waiting}, Codes: []string{durable.CodeApproval}}, "")
	if err != nil {
		return c, unavailable(err)
	}
	c.Approvals = asking[""]
	for _, n := range c.Status {
		c.Total += n
	}
	return c, nil
}

// getWorkflows serves GET /api/workflows: what somebody alive has the code of.
func (h *handler) getWorkflows(w http.ResponseWriter, r *http.Request) error {
	executors, err := h.executors(r.Context())
	if err != nil {
		return err
	}
	byName := map[string]*client.Workflow{}
	for _, x := range executors {
		if !x.Live {
			continue
		}
		for _, s := range x.Serves {
			f := byName[s.Workflow]
			if f == nil {
				f = &client.Workflow{Name: s.Workflow, Versions: []string{}}
				byName[s.Workflow] = f
			}
			f.Executors++
			for _, v := range s.Versions {
				if v != "" && !slices.Contains(f.Versions, v) {
					f.Versions = append(f.Versions, v)
				}
			}
		}
	}
	all := []client.Workflow{}
	for _, f := range byName {
		slices.Sort(f.Versions)
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b client.Workflow) int { return strings.Compare(a.Name, b.Name) })
	return answerJSON(w, map[string]any{"workflows": all})
}

// maxStuck bounds how many stuck runs of a kind are listed.
const maxStuck = 200

// getStuck serves GET /api/stuck.
func (h *handler) getStuck(w http.ResponseWriter, r *http.Request) error {
	stuck, err := h.eng.Stuck(r.Context(), maxStuck)
	if err != nil {
		return err
	}
	wire := make([]client.Stuck, len(stuck))
	for i := range stuck {
		wire[i] = h.wireStuck(&stuck[i])
	}
	return answerJSON(w, map[string]any{"stuck": wire})
}

// getApprovals serves GET /api/approvals: what is asked of people.
func (h *handler) getApprovals(w http.ResponseWriter, r *http.Request) error {
	wire, err := h.approvals(r.Context())
	if err != nil {
		return err
	}
	room := quota(listBytes)
	n := 0
	for n < len(wire) && room.take(wire[n]) {
		n++
	}
	return answerJSON(w, client.Approvals{Approvals: wire[:n], More: len(wire) - n})
}

func (h *handler) approvals(ctx context.Context) ([]client.Approval, error) {
	open, err := h.openApprovals(ctx, 0)
	if err != nil {
		return nil, err
	}
	wire := make([]client.Approval, len(open))
	for i := range open {
		wire[i] = h.wireApproval(&open[i])
	}
	slices.SortStableFunc(wire, func(a, b client.Approval) int { return a.AskedAt.Compare(b.AskedAt) })
	return wire, nil
}

// getHistory serves GET /api/history and /runs/history: what an archive has.
func (h *handler) getHistory(w http.ResponseWriter, r *http.Request) error {
	wire := client.History{Runs: []client.ArchivedRun{}, Source: "git"}
	if a := h.options.Archive; a != nil {
		runs, err := a.Runs(r.Context())
		if err != nil {
			return unavailable(err)
		}
		wire.Source = a.Source()
		from, err := queryInt(r, "after")
		if err != nil {
			return err
		}
		room := quota(listBytes)
		for i := int(min(from, int64(len(runs)))); i < len(runs); i++ {
			run := h.archived(r, runs[i])
			if !room.take(run) {
				wire.Next = strconv.Itoa(i)
				break
			}
			wire.Runs = append(wire.Runs, run)
		}
	}
	return answerJSON(w, wire)
}

// archived is an archived run as it is shown: without user data unless that is
// wanted.
func (h *handler) archived(r *http.Request, run client.ArchivedRun) client.ArchivedRun {
	run.Error, run.Reason, run.Prompt = h.redact(run.Error), h.redact(run.Reason), h.redact(run.Prompt)
	if !h.mayPayload(r, run.RunID) {
		run.Input, run.Output = nil, nil
		return run
	}
	if run.Input != nil {
		run.Input = h.redactJSON(run.Input)
	}
	if run.Output != nil {
		run.Output = h.redactJSON(run.Output)
	}
	return run
}
