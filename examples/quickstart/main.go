// Quickstart shows what durable execution is for. A shop's program takes an
// order and charges it at a payment service that is having a bad day. In the
// third attempt of five the program is killed with SIGKILL. It is started again
// and goes on at the third attempt, knowing how the first two failed; and the
// payment service's own ledger shows that the customer paid once.
//
//	go run ./examples/quickstart
//
// Read checkout.go first: it is the workflow, and all that a user of the
// library writes besides app.go. The other files are the world around it.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
)

// roleVariable says which part a process of this program plays; the process
// that the user starts has none and directs the others.
const roleVariable = "HOLDFAST_QUICKSTART_ROLE"

const (
	roleShop = "shop"
	roleBank = "bank"
)

const orderID = "order-42"

func main() {
	log.SetFlags(0)
	slog.SetLogLoggerLevel(slog.LevelWarn) // the timeline is talkative enough
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch role := os.Getenv(roleVariable); role {
	case "":
		err = demo(ctx, os.Stdout)
	case roleShop:
		go exitWithParent()
		err = app(ctx, os.Args[1], os.Args[2])
	case roleBank:
		go exitWithParent()
		err = servePayments()
	default:
		err = fmt.Errorf("%s=%q: there is no such role", roleVariable, role)
	}
	if err != nil {
		log.Printf("quickstart: %v", err)
		os.Exit(1)
	}
}
