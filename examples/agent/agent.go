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

// Message is one turn of the conversation between the agent and the model. A
// model that wants a tool used says so in Tool; the turn after it is what the
// tool said.
type Message struct {
	Role string // "customer", "model" or "tool"
	Text string
	Tool string            `json:",omitempty"`
	Args map[string]string `json:",omitempty"`
}

// Result is what the customer is told, and how it came about.
type Result struct {
	Answer string
	Talk   []Message
}

// Verdict is what a person says about a tool that may not be used without one.
type Verdict struct {
	Allowed bool
	By      string
	Reason  string
}

// ErrTooLong says that the model came to no end.
var ErrTooLong = errors.New("the conversation has too many turns")

const (
	maxTurns = 20
	// verdict is the name of the wait, and of the signal that answers it.
	verdict = "verdict"
)

// Agent is what the workflow needs from the world outside.
type Agent struct {
	Model *Model
	Tools map[string]Tool
}

// Answer is the workflow: it talks with the model until that has an answer for
// the customer, and uses the tools it asks for.
//
// What was said is kept by the steps that said it. A process that takes the
// conversation up again calls the function from the top, gets every turn that is
// on record without asking the model or a tool, and goes on in the middle.
func (a *Agent) Answer(ctx context.Context, t Ticket) (Result, error) {
	talk := []Message{{Role: "customer", Text: t.Customer + ": " + t.Text}}
	for range maxTurns {
		// A model is slow, dear, and overloaded now and then.
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

// use uses a tool and returns what the model is told of it: also that a tool
// failed, or that a person would not have it used. An error is one of the run.
func (a *Agent) use(ctx context.Context, said Message) (string, error) {
	tool, ok := a.Tools[said.Tool]
	if !ok {
		return fmt.Sprintf("there is no tool %q", said.Tool), nil
	}
	if tool.Question != nil {
		// Days may go by here, without a process.
		v, err := durable.Await[Verdict](ctx, verdict, durable.Prompt(tool.Question(said.Args)))
		if err != nil {
			return "", err
		}
		if !v.Allowed {
			return fmt.Sprintf("%s declines: %s", v.By, v.Reason), nil
		}
	}
	// The step may run again if the process dies in it: the key tells the tool
	// that it is the same use.
	result, err := durable.Retry(ctx, said.Tool, durable.Policy{MaxAttempts: 3}, func(ctx context.Context) (string, error) {
		return tool.Use(ctx, said.Args, durable.IdempotencyKey(ctx))
	})
	var failed *durable.StepError
	if errors.As(err, &failed) {
		return "it failed: " + failed.Err.Error(), nil
	}
	return result, err
}
