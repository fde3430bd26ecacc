package api

import (
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
)

// Schedules serves GET /api/schedules.
func (api *API) Schedules(w http.ResponseWriter, r *http.Request) error {
	states, err := api.read.Schedules(r.Context())
	if err != nil {
		return err
	}
	wire := make([]client.Schedule, 0, len(states))
	room := web.Quota(web.ListBytes)
	for i := range states {
		s := api.Wire.Schedule(&states[i])
		if !room.Take(s) {
			break
		}
		wire = append(wire, s)
	}
	return web.AnswerJSON(w, map[string]any{"schedules": wire, "more": len(states) - len(wire)})
}

// Schedule serves GET /api/schedules/{schedule}.
func (api *API) Schedule(w http.ResponseWriter, r *http.Request) error {
	s, err := api.read.Schedule(r.Context(), r.PathValue("schedule"))
	if err != nil {
		return err
	}
	return web.AnswerJSON(w, api.Wire.Schedule(s))
}
