package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// Ticket is the input of the agent: what a customer wrote.
type Ticket struct {
	Customer string
	Text     string
}

// Message is one turn of the conversation between the agent and the model. A model that
// wants to use a tool names it in Tool; the next turn is what the tool returned.
type Message struct {
	Role string // "customer", "model" or "tool"
	Text string
	Tool string            `json:",omitempty"`
	Args map[string]string `json:",omitempty"`
}

// Result is the answer to the customer, and how the agent got there.
type Result struct {
	Answer string
	Talk   []Message
}

// Verdict is a person's decision about a tool that needs permission.
type Verdict struct {
	Allowed bool
	By      string
	Reason  string
}

// ErrTooLong says that the model found no answer in time.
var ErrTooLong = errors.New("the conversation has too many turns")

const (
	maxTurns = 20
	// verdict is the name of the wait, and of the signal that answers it.
	verdict = "verdict"
)

// Agent is what the workflow needs from the outside world.
type Agent struct {
	Model *Model
	Tools map[string]Tool
}

// Answer is the workflow: it talks with the model until the model has an answer for the
// customer, and uses the tools that the model asks for.
//
// The steps record what was said. A process that resumes the conversation calls the
// function from the top, gets every recorded turn without asking the model or a tool,
// and goes on in the middle.
func (a *Agent) Answer(ctx context.Context, t Ticket) (Result, error) {
	talk := []Message{{Role: "customer", Text: t.Customer + ": " + t.Text}}
	for range maxTurns {
		// A model is slow, expensive, and sometimes overloaded.
		patience := durable.Policy{MaxAttempts: 5, Initial: 100 * time.Millisecond, Timeout: time.Minute}
		said, err := durable.Retry(ctx, "model", patience, func(ctx context.Context) (Message, error) {
			return a.Model.Next(ctx, talk)
		})
		if err != nil {
			return Result{}, err
		}
		talk = append(talk, said)
		if said.Tool == "" {
			return Result{Answer: said.Text, Talk: talk}, nil
		}
		result, err := a.use(ctx, said)
		if err != nil {
			return Result{}, err
		}
		talk = append(talk, Message{Role: "tool", Tool: said.Tool, Text: result})
	}
	return Result{}, durable.Permanent(ErrTooLong)
}

// use uses a tool and returns what the model gets: its result, that it failed, or that
// a person did not allow it. An error fails the run.
func (a *Agent) use(ctx context.Context, said Message) (string, error) {
	tool, ok := a.Tools[said.Tool]
	if !ok {
		return fmt.Sprintf("there is no tool %q", said.Tool), nil
	}
	if tool.Question != nil {
		// Days may pass here, with no process alive.
		v, err := durable.Await[Verdict](ctx, verdict, durable.Prompt(tool.Question(said.Args)))
		if err != nil {
			return "", err
		}
		if !v.Allowed {
			return fmt.Sprintf("%s declines: %s", v.By, v.Reason), nil
		}
	}
	// The step may run again if the process dies in it; the idempotency key shows the
	// tool that it is the same use.
	result, err := durable.Retry(ctx, said.Tool, durable.Policy{MaxAttempts: 3}, func(ctx context.Context) (string, error) {
		return tool.Use(ctx, said.Args, durable.IdempotencyKey(ctx))
	})
	var failed *durable.StepError
	if errors.As(err, &failed) {
		return "it failed: " + failed.Err.Error(), nil
	}
	return result, err
}
