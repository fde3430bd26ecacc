package dashboard

import (
	"net/http"
)

// A route is one pattern of the mux and what goes before it. There is no other
// way to a handler: what is authorized, checked and documented is read from here.
type route struct {
	method  string
	pattern string // below Options.Prefix, in the form of http.ServeMux
	action  Action // "": public, such as a style sheet; nothing of a run
	// run is the name of the path value that holds the run's id, or, as "wait",
	// that of one of its waits; empty: the action concerns no run.
	run string
	// query are the parameters that an act takes beside its body; others are refused.
	query []string
	// page: its errors are pages, and its body may be a form.
	page bool
	// serve answers, or returns an error and has written nothing.
	serve func(w http.ResponseWriter, r *http.Request) error
}

// routes returns all routes.
func (h *handler) routes() []route {
	return append(h.apiRoutes(), h.pageRoutes()...)
}
