package dashboard

import "net/http"

// pageRoutes are the routes of the pages.
func (h *handler) pageRoutes() []route { return nil }

// pageProblem answers with an error as a page; false: it has not.
func (h *handler) pageProblem(w http.ResponseWriter, r *http.Request, status int, p Problem) bool {
	return false
}

// wantsPage reports whether an address that is both, a page and JSON, was asked
// for by a browser.
func wantsPage(r *http.Request) bool { return false }
