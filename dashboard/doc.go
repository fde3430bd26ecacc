// Package dashboard serves the runs of an engine over HTTP: a JSON API, streams
// of what happens (SSE), and pages for a browser. It is one http.Handler:
//
//	mux.Handle("/durable/", dashboard.Handler(eng, dashboard.Options{
//		Prefix:    "/durable",
//		Authorize: authorize,
//	}))
//
// or a separate server, with timeouts, that refuses to listen beyond loopback
// without Options.Authorize:
//
//	err := dashboard.ListenAndServe(ctx, "127.0.0.1:8233", eng, dashboard.Options{})
//
// docs/http-api.md lists the routes, /api/openapi.json describes them for
// programs, and package client calls them from Go.
//
// # How it is built
//
// This package is the front. A route (routes.go) names its action; handler.go puts
// the same checks before each: security headers, the check of Host and origin
// (security.go), the user's Middleware, then Authorize. A route returns an error
// instead of writing one, and errors.go answers with it.
//
// The routes are implemented in the packages under internal, each of which may
// import those listed before it: view (what is shown of a run), web (requests,
// answers, the one table of errors), read (runs of the store), stream (server-sent
// events), act (what changes something), api (questions, in JSON), pages.
package dashboard
