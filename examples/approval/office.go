package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// deployments names the workflow for processes that do not execute it: they
// start deployments, list them and answer, and need no code of it.
var deployments = durable.Ref[Release, Result]("deploy")

// Office is such a process's view of the store.
type Office struct {
	store *sqlite.Store
	eng   *durable.Engine
}

// openOffice opens the store in dir without any workflow.
func openOffice(ctx context.Context, dir string) (*Office, error) {
	return openStore(ctx, dir, durable.Options{})
}

func openStore(ctx context.Context, dir string, o durable.Options) (*Office, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	st, err := sqlite.Open(filepath.Join(dir, "deployments.db"))
	if err != nil {
		return nil, err
	}
	eng, err := durable.Open(ctx, st, o)
	if err != nil {
		st.Close()
		return nil, err
	}
	return &Office{st, eng}, nil
}

// Close closes the engine, then its store.
func (f *Office) Close() error {
	if err := f.eng.Close(); err != nil {
		f.store.Close()
		return err
	}
	return f.store.Close()
}

// Start asks for a deployment. The request is durable when Start returns, whether or
// not a process serves at the moment.
func (f *Office) Start(ctx context.Context, r Release) (string, error) {
	run, err := deployments.Start(durable.NewContext(ctx, f.eng), r.Service+"-"+r.Version, r)
	if err != nil {
		return "", err
	}
	return run.ID(), nil
}

// Question is a deployment that waits for a person.
type Question struct{ ID, Text string }

// Questions lists what waits for a person.
func (f *Office) Questions(ctx context.Context) ([]Question, error) {
	var all []Question
	filter := store.Filter{
		Workflows:   []string{deployments.Name()},
		Statuses:    []store.Status{store.Waiting},
		Codes:       []string{durable.CodeApproval},
		OldestFirst: true,
	}
	for {
		page, err := f.eng.List(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Runs {
			all = append(all, Question{r.ID, r.Reason})
		}
		if filter.After = page.Next; filter.After == "" {
			return all, nil
		}
	}
}

// Answer answers a question. The first answer counts: all have the same signal id, and
// a run receives each signal id once.
func (f *Office) Answer(ctx context.Context, id string, d Decision) error {
	run, err := f.eng.Get(ctx, id)
	if err != nil {
		return err
	}
	if run.Status.Terminal() {
		return fmt.Errorf("deployment %s has ended (%s): it asks nobody any more", id, run.Status)
	}
	return f.eng.Signal(ctx, id, decision, d, durable.SignalID(decision))
}

// Result waits for the end of a deployment.
func (f *Office) Result(ctx context.Context, id string) (Result, error) {
	run, err := deployments.Handle(durable.NewContext(ctx, f.eng), id)
	if err != nil {
		return Result{}, err
	}
	return run.Wait(ctx)
}
