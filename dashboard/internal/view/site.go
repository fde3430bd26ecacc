package view

import (
	"net/url"

	"github.com/holdfast-dev/holdfast/client"
)

// A Site is where the handler is mounted: every address that a page or an answer
// names is made here.
type Site struct{ Prefix string }

// Run is the address of the page of a run.
func (s Site) Run(id string) string { return s.Prefix + "/runs/" + client.EscapeID(id) }

// List is the address of the list of runs with a filter.
func (s Site) List(query string) string {
	if query == "" {
		return s.Prefix + "/"
	}
	return s.Prefix + "/?q=" + url.QueryEscape(query)
}

// Route is the address of an act on a run in the API.
func (s Site) Route(id, act string) string {
	return s.Prefix + "/api/runs/" + client.EscapeID(id) + "/" + act
}

// InRoutes rewrites advice of the engine for users of the API: as routes.
func (s Site) InRoutes(text string) string {
	return called(text, func(method, id string) string {
		switch method {
		case "Resume", "Unpause", "Jump":
			act := map[string]string{"Resume": "resume", "Unpause": "unpause", "Jump": "jump"}[method]
			return "POST " + s.Route(id, act)
		case "History":
			return "GET " + s.Route(id, "events")
		}
		return inCommand(method, id)
	})
}
