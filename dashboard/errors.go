package dashboard

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
)

var (
	errNeedsAuthorize  = errors.New("this server was reached beyond loopback and has no dashboard.Options.Authorize: nothing can be changed")
	errNeedsMiddleware = errors.New("this server was reached beyond loopback and has neither dashboard.Options.Authorize nor Middleware: nothing is shown")
)

func errHost(host string) error {
	return web.NewError(http.StatusMisdirectedRequest, "host_not_allowed", fmt.Sprintf("this server does not answer to the host %q", host),
		"add it to dashboard.Options.Hosts if it is a name of this server")
}

func errNoRoute(status int, allow string, r *http.Request) error {
	if status == http.StatusMethodNotAllowed {
		return web.NewError(status, "method_not_allowed", fmt.Sprintf("%s is not possible here", r.Method), "this address takes "+allow)
	}
	return web.NewError(http.StatusNotFound, "no_route", fmt.Sprintf("there is nothing at %s", r.URL.Path), "the list of routes is at /api/openapi.json")
}

// refuse answers with an error in the form of the API.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	h.refuseAs(w, r, err, false)
}

// refuser is refuse as a handler.
func (h *handler) refuser(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.refuse(w, r, err) })
}

// refuseAs answers with an error, as a page or as JSON.
func (h *handler) refuseAs(w http.ResponseWriter, r *http.Request, err error, page bool) {
	if r.Context().Err() != nil {
		// The client is gone and reads nothing, or the server ends: without an answer it
		// would read an empty success.
		err = durable.ErrClosed
	}
	status, p := h.Problem(err)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		h.options.Logger.Error("dashboard: a request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	if page && h.shell.ErrorPage(w, r, status, p) {
		return
	}
	web.WriteJSON(w, status, p)
}
