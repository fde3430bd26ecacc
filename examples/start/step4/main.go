// Step4 waits for a person, for up to a week.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func onboard(ctx context.Context, email string) (string, error) {
	err := durable.Do(ctx, "ask", func(context.Context) error {
		fmt.Println("mail to", email+": is this you?")
		return nil
	})
	if err != nil {
		return "", err
	}
	yes, err := durable.Await[bool](ctx, "confirmed", durable.Timeout(7*24*time.Hour))
	if err != nil {
		return "", err
	}
	if !yes {
		return "", durable.Permanent(errors.New("it was somebody else"))
	}
	return durable.Step(ctx, "create account", func(context.Context) (string, error) {
		fmt.Println("creating an account for", email)
		return "acct-1", nil
	})
}

func run(ctx context.Context, args []string) error {
	st, err := sqlite.Open("start.db")
	if err != nil {
		return err
	}
	defer st.Close()

	if len(args) == 1 && args[0] == "confirm" {
		return confirm(ctx, st)
	}

	flow := durable.Define("onboard", onboard)
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{flow}})
	if err != nil {
		return err
	}
	defer eng.Close()
	durable.SetDefault(eng)

	if _, err := durable.Recover(ctx); err != nil {
		return err
	}
	account, err := flow.Run(ctx, "onboard-eve", "eve@example.com")
	if err != nil {
		return err
	}
	fmt.Println(account)
	return nil
}

// confirm is another process. An engine without workflows executes nothing, but it can
// send a value to a run.
func confirm(ctx context.Context, st *sqlite.Store) error {
	eng, err := durable.Open(ctx, st, durable.Options{})
	if err != nil {
		return err
	}
	defer eng.Close()
	return eng.Signal(ctx, "onboard-eve", "confirmed", true)
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
