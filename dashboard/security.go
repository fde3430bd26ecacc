package dashboard

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
)

// The defences of the handler, each against one threat:
//
//   - Host allow-list: a stranger's page whose name was rebound to this machine (DNS
//     rebinding)
//   - cross-origin protection: a stranger's page that sends us a form (CSRF)
//   - the type of the body: the same from browsers too old to say where they are
//   - no change by GET: links and images
//   - Authorize, and loopback only without it: any client that can reach the port
//   - the headers below: content that was smuggled into a run

// secure sets the headers that every answer has.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// hostAllowed reports whether a request used a name that may be ours.
func (h *handler) hostAllowed(r *http.Request) bool {
	host := hostOf(r.Host)
	if _, socket := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); socket {
		return true // no name leads to it
	}
	if isLoopbackName(host) || slices.Contains(h.options.Hosts, "*") {
		return true
	}
	if slices.ContainsFunc(h.options.Hosts, func(a string) bool { return strings.EqualFold(strings.TrimSuffix(a, "."), host) }) {
		return true
	}
	// An address cannot be rebound: a page at an address came from it.
	ip := net.ParseIP(host)
	local := localIP(r)
	return ip != nil && local != nil && ip.Equal(local)
}

// hostOf cuts the port off the value of a Host header.
func hostOf(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isLoopbackName(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true // RFC 6761: never resolved elsewhere
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// localIP returns the address at which the connection of r came in, nil if that
// is not known.
func localIP(r *http.Request) net.IP {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if a, ok := addr.(*net.TCPAddr); ok {
		return a.IP
	}
	return nil
}

// fromHere reports whether a request was made on this machine, for this machine: it came
// in over loopback or a local socket, and nothing in it says that a proxy passed it on.
// Through a proxy the whole world would come from here; see proxied.
func (h *handler) fromHere(r *http.Request) bool {
	if proxied(r) || h.foreignPage(r) {
		return false
	}
	switch a := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback() && isLoopbackName(hostOf(r.Host))
	case *net.UnixAddr:
		return true
	}
	return false
}

// proxied reports whether a request shows that it was passed on:
//
//   - a header that proxies add, of those that are known;
//   - HTTP/1.0, which no current browser or client uses, but nginx does by default (by
//     default it also adds no header).
//
// A proxy that speaks HTTP/1.1, puts a loopback name into Host and adds nothing cannot be
// distinguished from a program on this machine. To run one, set Authorize.
func proxied(r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) {
		return true
	}
	for name := range r.Header {
		if forwarding[name] || strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Envoy-") {
			return true
		}
	}
	return false
}

// foreignPage reports whether a request that changes something comes from a page that this
// machine has not served: it came through a proxy, since pages of strangers were refused
// before.
func (h *handler) foreignPage(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	for _, name := range []string{"Origin", "Referer"} {
		from := r.Header.Get(name)
		if from == "" || from == "null" {
			continue
		}
		u, err := url.Parse(from)
		if err != nil || !isLoopbackName(hostOf(u.Host)) && !slices.Contains(h.options.Origins, u.Scheme+"://"+u.Host) {
			return true
		}
	}
	return false
}

// forwarding are headers, besides X-Forwarded-*, that only proxies add.
var forwarding = map[string]bool{
	"Forwarded": true, "Via": true, "X-Real-Ip": true, "X-Client-Ip": true, "X-Cluster-Client-Ip": true, "X-Original-Forwarded-For": true,
	"X-Original-Host": true, "X-Original-Url": true, "True-Client-Ip": true, "Cf-Connecting-Ip": true, "Cf-Ray": true, "Fastly-Client-Ip": true,
	"X-Amzn-Trace-Id": true, "X-Appengine-User-Ip": true, "Proxy-Connection": true,
}

// may returns nil if the sender of r may do this. runID is empty for an action that
// concerns no run. The pages call it for every button.
func (h *handler) may(r *http.Request, a Action, runID string) error {
	if h.options.Authorize != nil {
		if err := h.options.Authorize(r.Context(), a, runID); err != nil {
			return &web.DeniedError{Action: string(a), RunID: runID, Err: err}
		}
		return nil
	}
	switch {
	case h.fromHere(r):
		return nil
	case a.Writes():
		return &web.DeniedError{Action: string(a), RunID: runID, Err: errNeedsAuthorize}
	case h.options.Middleware == nil:
		return &web.DeniedError{Action: string(a), RunID: runID, Err: errNeedsMiddleware}
	}
	return nil
}

// checkContentType refuses a body that a form on a stranger's page could have sent. form
// allows the forms of our own pages, which the origin check protects.
func checkContentType(r *http.Request, form bool) error {
	header := r.Header.Get("Content-Type")
	if header == "" && r.ContentLength == 0 {
		return nil
	}
	t, _, err := mime.ParseMediaType(header)
	switch {
	case err == nil && t == "application/json":
		return nil
	case err == nil && form && t == "application/x-www-form-urlencoded":
		return nil
	}
	return web.NewError(http.StatusUnsupportedMediaType, "unsupported_media_type", fmt.Sprintf("the body is of type %q", header), "send it as application/json")
}
