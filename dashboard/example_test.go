package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

type userKey struct{}

// A program mounts the handler in its own server, and says who may do what.
func ExampleHandler() {
	ctx := context.Background()
	greet := durable.Define("greet", func(_ context.Context, name string) (string, error) { return "hello " + name, nil })
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{greet}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()

	mux := http.NewServeMux()
	mux.Handle("/durable/", dashboard.Handler(eng, dashboard.Options{
		Prefix: "/durable",
		Middleware: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user, _, _ := r.BasicAuth() // a real one checks the password
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
			})
		},
		Authorize: func(ctx context.Context, a dashboard.Action, runID string) error {
			switch user := ctx.Value(userKey{}); {
			case user == "":
				return dashboard.ErrUnauthenticated
			case user != "mara" && a.Writes():
				return errors.New("ask mara")
			}
			return nil
		},
	}))
	srv := httptest.NewServer(mux)
	defer srv.Close()

	send := func(user, method, path string) {
		r, _ := http.NewRequest(method, srv.URL+"/durable"+path, nil)
		if user != "" {
			r.SetBasicAuth(user, "")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		fmt.Println(user, method, path, resp.StatusCode)
	}
	send("", "GET", "/api/runs")
	send("ada", "GET", "/api/runs")
	send("ada", "POST", "/api/workflows/greet/runs")
	send("mara", "POST", "/api/workflows/greet/runs")
	// Output:
	//  GET /api/runs 401
	// ada GET /api/runs 200
	// ada POST /api/workflows/greet/runs 403
	// mara POST /api/workflows/greet/runs 201
}

// The client starts a run, watches it, and answers what it asks.
func Example_client() {
	ctx := context.Background()
	ship := durable.Define("ship", func(ctx context.Context, order string) (string, error) {
		ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship "+order+"?"))
		return map[bool]string{true: "shipped", false: "kept"}[ok], err
	})
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{ship}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	srv := httptest.NewServer(dashboard.Handler(eng, dashboard.Options{}))
	defer srv.Close()

	c, err := client.New(srv.URL, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	started, err := c.Start(ctx, "ship", client.StartRequest{ID: "order-42", Input: json.RawMessage(`"order-42"`)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(started.Message)
	for u, err := range c.Watch(ctx, "order-42", 0) {
		if err != nil {
			log.Fatal(err)
		}
		if u.Event == nil {
			continue
		}
		fmt.Println(u.Event.Text)
		if u.Event.Type == "wait_requested" {
			done, err := c.Approve(ctx, "order-42", "", "looks right")
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(done.Message)
		}
	}
	_, err = c.Resume(ctx, "order-42", client.ResumeOptions{})
	fmt.Println(errors.Is(err, client.ErrConflict), err)
	// Output:
	// Workflow order-42 started
	// workflow_created
	// workflow_started
	// wait_requested approve
	// Approved order-42: Ship order-42?
	// signal_received approve
	// workflow_completed
	// true Session order-42 is not resumable (status: completed)
}
