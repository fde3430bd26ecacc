package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// tickets names the workflow for processes that do not execute it.
var tickets = durable.Ref[Ticket, Result]("answer a ticket")

// Desk is a process's view of the store.
type Desk struct {
	store *sqlite.Store
	*durable.Engine
}

func openDesk(ctx context.Context, dir string, defs ...durable.Definition) (*Desk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	st, err := sqlite.Open(filepath.Join(dir, "tickets.db"))
	if err != nil {
		return nil, err
	}
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: defs})
	if err != nil {
		st.Close()
		return nil, err
	}
	return &Desk{st, eng}, nil
}

// Close closes the engine, then its store.
func (d *Desk) Close() error {
	if err := d.Engine.Close(); err != nil {
		d.store.Close()
		return err
	}
	return d.store.Close()
}

// serving is the line by which the agent says that it is up.
const serving = "serving"

// serveAgent answers tickets until it is stopped, or killed.
func serveAgent(ctx context.Context, dir, model string) error {
	agent := &Agent{Model: &Model{URL: model}, Tools: (&Shop{Dir: dir}).Tools()}
	desk, err := openDesk(ctx, dir, durable.Define(tickets.Name(), agent.Answer))
	if err != nil {
		return err
	}
	defer desk.Close()
	report, err := desk.Recover(ctx)
	if err != nil {
		return err
	}
	for _, id := range report.Resumed {
		fmt.Printf("durable.Recover goes on with %s in mid-conversation\n", id)
	}
	for _, a := range report.Approvals {
		fmt.Printf("durable.Recover asks again: %s\n", a.Prompt)
	}
	fmt.Println(serving)
	<-ctx.Done()
	return nil
}
