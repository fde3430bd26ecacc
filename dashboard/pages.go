package dashboard

import (
	"net/http"

	"github.com/holdfast-dev/holdfast/client"
)

// pageRoutes are the routes of the pages.
func (h *handler) pageRoutes() []route { return nil }

// pageRun serves the page of a run; its id is the path value "id".
func (h *handler) pageRun(w http.ResponseWriter, r *http.Request) error { return h.getRun(w, r) }

// pageProblem answers with an error as a page; false: it has not.
func (h *handler) pageProblem(w http.ResponseWriter, r *http.Request, status int, p client.Problem) bool {
	return false
}

// wantsPage reports whether an address that is both, a page and JSON, was asked
// for by a browser.
func wantsPage(r *http.Request) bool { return false }
