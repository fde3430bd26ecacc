package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// Release is the input of a deployment.
type Release struct {
	Service string
	Version string
}

// Decision is what a person answers.
type Decision struct {
	Approved bool
	By       string
	Reason   string
}

// Result is the outcome of a release.
type Result struct {
	Image    string
	Deployed bool
	Decision Decision
}

// Pipeline is what a deployment needs from the outside world.
type Pipeline struct{ Site *Site }

// decision is the name of the wait, and of the signal that answers it.
const decision = "decision"

// Deploy is the workflow: it builds a release, puts it on staging, asks a person, and
// goes on as the person says, however many processes come and go in the meantime.
func (p *Pipeline) Deploy(ctx context.Context, r Release) (Result, error) {
	image, err := durable.Step(ctx, "build", func(context.Context) (string, error) {
		return p.Site.Build(r)
	})
	if err != nil {
		return Result{}, err
	}
	err = durable.Do(ctx, "staging", func(context.Context) error {
		return p.Site.Install("staging", r.Service, image)
	})
	if err != nil {
		return Result{}, err
	}

	// The wait does not need this process: it may end here, and another one goes on
	// from this line when the answer arrives.
	answer, err := durable.Await[Decision](ctx, decision,
		durable.Prompt(fmt.Sprintf("%s runs on staging. Deploy it to production?", image)),
		durable.Timeout(7*24*time.Hour))
	if errors.Is(err, durable.ErrTimeout) {
		answer, err = Decision{By: "nobody", Reason: "no answer within a week"}, nil
	}
	if err != nil {
		return Result{}, err
	}

	if !answer.Approved {
		err := durable.Do(ctx, "clear staging", func(context.Context) error {
			return p.Site.Remove("staging", r.Service)
		})
		return Result{Image: image, Decision: answer}, err
	}
	err = durable.Do(ctx, "production", func(context.Context) error {
		return p.Site.Install("production", r.Service, image)
	})
	return Result{Image: image, Deployed: err == nil, Decision: answer}, err
}
