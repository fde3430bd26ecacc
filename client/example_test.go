package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A client starts a run on a server, answers what it asks, and waits for its result.
func Example() {
	ctx := context.Background()
	server, done := refunds(ctx)
	defer done()

	c, err := client.New(server.URL, client.Options{})
	if err != nil {
		panic(err)
	}
	if _, err = c.Start(ctx, "refund", client.StartRequest{ID: "refund-1", Input: json.RawMessage("30")}); err != nil {
		panic(err)
	}
	if _, err = c.Signal(ctx, "refund-1", "approved", json.RawMessage("true"), ""); err != nil {
		panic(err)
	}
	out, err := c.Wait(ctx, "refund-1")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(out.Output.Value))

	_, err = c.Resume(ctx, "refund-1", client.ResumeOptions{})
	fmt.Println(errors.Is(err, client.ErrConflict), err)
	// Output:
	// "refunded 30"
	// true Session refund-1 is not resumable (status: completed)
}

// refunds serves a workflow that waits for an approval.
func refunds(ctx context.Context) (server *httptest.Server, done func()) {
	refund := durable.Define("refund", func(ctx context.Context, amount int) (string, error) {
		if ok, err := durable.Await[bool](ctx, "approved"); err != nil || !ok {
			return "kept", err
		}
		return fmt.Sprint("refunded ", amount), nil
	})
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{refund}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	server = httptest.NewServer(dashboard.Handler(eng, dashboard.Options{ShowPayloads: true}))
	return server, func() {
		server.Close()
		if err := eng.Close(); err != nil {
			panic(err)
		}
	}
}
