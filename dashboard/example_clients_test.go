package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func overTheStore(ctx context.Context, st store.Store) (parcel string, err error) {
	eng, err := durable.Open(ctx, st, durable.Options{}) // without workflows it executes nothing
	if err != nil {
		return "", err
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	ship := durable.Ref[string, string]("ship") // its name, and the types that its code has
	run, err := ship.Enqueue(ctx, "order-1", "a lamp", durable.OnQueue("parcels"), durable.Partition("acme"))
	if err != nil {
		return "", err
	}
	if err := durable.Signal(ctx, run.ID(), "paid", true); err != nil {
		return "", err
	}
	return run.Wait(ctx)
}

func overHTTP(ctx context.Context, server string) (parcel string, err error) {
	c, err := client.New(server, client.Options{})
	if err != nil {
		return "", err
	}
	_, err = c.Start(ctx, "ship", client.StartRequest{ID: "order-2", Input: json.RawMessage(`"a table"`), Queue: "parcels", Partition: "acme"})
	if err != nil {
		return "", err
	}
	if _, err := c.Signal(ctx, "order-2", "paid", json.RawMessage("true"), ""); err != nil {
		return "", err
	}
	out, err := c.Wait(ctx, "order-2") // ErrRunFailed, ErrRunCancelled, …
	if err != nil {
		return "", err
	}
	err = out.Decode(&parcel)
	return parcel, err
}

// Programs that execute nothing: one has the store, the other one the address of a server.
func Example_programsThatExecuteNothing() {
	ctx, st := context.Background(), memory.Open()
	ship := durable.Define("ship", func(ctx context.Context, what string) (string, error) {
		_, err := durable.Await[bool](ctx, "paid")
		return "parcel with " + what, err
	})
	quiet := slog.New(slog.DiscardHandler)
	worker, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{ship}, Queues: []durable.Queue{{Name: "parcels", Max: 5}}, Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	defer worker.Close()
	if _, err := worker.Recover(ctx); err != nil {
		log.Fatal(err)
	}
	srv := httptest.NewServer(dashboard.Handler(worker, dashboard.Options{ShowPayloads: true}))
	defer srv.Close()

	fmt.Println(overTheStore(ctx, st))
	fmt.Println(overHTTP(ctx, srv.URL))
	// Output:
	// parcel with a lamp <nil>
	// parcel with a table <nil>
}
