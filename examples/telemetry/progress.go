package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/termview"
	"github.com/holdfast-dev/holdfast/operate"
)

// resumption prints where an order goes on that an earlier process left, and returns
// the number of its last event; 0 if there is none yet.
func resumption(ctx context.Context, out io.Writer, eng *durable.Engine) (int64, error) {
	before, err := operate.On(eng).Standing(ctx, orderID)
	if errors.Is(err, durable.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	plan, err := operate.On(eng).Resume(ctx, orderID, operate.ResumeOptions{DryRun: true})
	for _, line := range termview.Resumption(plan, before, termview.Options{}) {
		fmt.Fprintln(out, line)
	}
	return before.Seq, err
}

// follow shows what this process does with the order, from that event on. The returned
// function waits for the last line.
func follow(ctx context.Context, out io.Writer, eng *durable.Engine, after int64) (wait func() error) {
	view := termview.New(out, termview.Options{}, termview.Words{})
	shown := make(chan error, 1)
	go func() { shown <- view.Follow(ctx, eng, orderID, after, nil) }()
	return func() error { return <-shown }
}
