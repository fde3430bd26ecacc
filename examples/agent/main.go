// Agent is a loop around a language model that answers a shop's customers. The model
// says which tools it wants to use: looking an order up is done at once, a refund only
// when a person allows it.
//
//	go run ./examples/agent
//
// plays the whole story on its own: the agent's process is killed with SIGKILL while
// the model thinks, while a person is asked, and while the bank pays. Each time the
// next process goes on in the middle of the conversation. In the end the model's own
// log shows that only the question in which the agent was killed was asked twice, and
// the bank's that the money was paid once.
//
// Read agent.go first: it is the workflow. The model is a small server that comes with
// the example and always gives the same answers.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

const (
	roleModel = "model"
	roleAgent = "agent"
)

func main() {
	log.SetFlags(0)
	slog.SetLogLoggerLevel(slog.LevelError) // the timeline is talkative enough
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx = demo.UntilParentEnds(ctx)
	var err error
	switch demo.Role() {
	case roleModel:
		err = serveModel(ctx, os.Args[1], os.Args[2:])
	case roleAgent:
		err = serveAgent(ctx, os.Args[1], os.Args[2])
	default:
		err = play(ctx, os.Stdout)
	}
	if err != nil {
		log.Printf("agent: %v", err)
		os.Exit(1)
	}
}
