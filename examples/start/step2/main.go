// Step2 records what each step has returned.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// onboard is a workflow: it decides, and its steps act.
func onboard(ctx context.Context, email string) (string, error) {
	account, err := durable.Step(ctx, "create account", func(context.Context) (string, error) {
		return createAccount(email)
	})
	if err != nil {
		return "", err
	}
	return account, durable.Do(ctx, "send welcome", func(context.Context) error {
		return sendWelcome(account)
	})
}

func createAccount(email string) (string, error) {
	fmt.Println("creating an account for", email)
	return "acct-1", nil
}

func sendWelcome(account string) error {
	fmt.Println("welcoming", account)
	return nil
}

func run(ctx context.Context) error {
	st, err := sqlite.Open("start.db")
	if err != nil {
		return err
	}
	defer st.Close()

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
	account, err := flow.Run(ctx, "onboard-ada", "ada@example.com")
	if err != nil {
		return err
	}
	fmt.Println(account)
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
