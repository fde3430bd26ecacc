package api

import (
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/operate"
)

// Queues serves GET /api/queues.
func (api *API) Queues(w http.ResponseWriter, r *http.Request) error {
	queues, err := operate.On(api.Engine).Queues(r.Context())
	if err != nil {
		return err
	}
	wire := make([]client.Queue, len(queues))
	for i := range queues {
		wire[i] = api.Wire.Queue(&queues[i])
		wire[i].Partitions = nil // there may be many of many queues
	}
	return web.AnswerJSON(w, map[string]any{"queues": wire})
}

// Queue serves GET /api/queues/{queue}.
func (api *API) Queue(w http.ResponseWriter, r *http.Request) error {
	queues, err := operate.On(api.Engine).Queues(r.Context(), r.PathValue("queue"))
	if err != nil {
		return err
	}
	return web.AnswerJSON(w, api.Wire.Queue(&queues[0]))
}
