package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
)

// Ready serves GET /api/ready, a probe for load balancers: it says nothing about any run.
func (api *API) Ready(w http.ResponseWriter, r *http.Request) error {
	health, err := api.Engine.Health(r.Context())
	if err == nil {
		err = health.Ready()
	}
	if err != nil {
		return web.NewError(http.StatusServiceUnavailable, "not_ready", view.Message(err), "")
	}
	return web.AnswerJSON(w, map[string]bool{"ready": true})
}

// Health serves GET /api/health.
func (api *API) Health(w http.ResponseWriter, r *http.Request) error {
	health, err := api.Engine.Health(r.Context())
	if err != nil {
		return err
	}
	executors, err := api.read.Executors(r.Context())
	if err != nil {
		return err
	}
	wire := client.Health{
		Ready: true, Executor: api.Engine.ID(), Release: durable.Release(), BeatAgeMS: health.BeatAge.Milliseconds(), LeaseMS: health.Lease.Milliseconds(), Recovered: health.Recovered,
		Closing: health.Closing, Executing: health.Executing, Unloaded: health.Unloaded, Backlog: health.Backlog, Stuck: health.Stuck,
		Executors: []client.Executor{}, Streams: api.streams(),
		CommitP99MS: float64(health.CommitP99.Microseconds()) / 1000, Commits: health.Commits, TimersLate: health.TimersLate,
	}
	if err := health.Ready(); err != nil {
		wire.Ready, wire.Reason = false, view.Message(err)
	}
	for _, x := range executors {
		e := client.Executor{ID: x.ID, Name: x.Name, Host: x.Host, PID: x.PID, StartedAt: x.StartedAt.Time(), BeatAt: x.BeatAt.Time(), Live: x.Live}
		for _, s := range x.Serves {
			e.Workflows = append(e.Workflows, s.Workflow)
			e.Queues = s.Queues // the same for all workflows of an engine
		}
		slices.Sort(e.Workflows)
		wire.Executors = append(wire.Executors, e)
	}
	return web.AnswerJSON(w, wire)
}

// Counts serves GET /api/counts.
func (api *API) Counts(w http.ResponseWriter, r *http.Request) error {
	counts, err := api.read.Counts(r.Context())
	if err != nil {
		return err
	}
	return web.AnswerJSON(w, counts)
}

// Workflows serves GET /api/workflows: the workflows that a live process has the code of.
func (api *API) Workflows(w http.ResponseWriter, r *http.Request) error {
	executors, err := api.read.Executors(r.Context())
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
	return web.AnswerJSON(w, map[string]any{"workflows": all})
}
