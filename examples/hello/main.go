// Hello is the program of README.md.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func onboard(ctx context.Context, email string) (string, error) {
	account, err := durable.Step(ctx, "create account", func(context.Context) (string, error) {
		return "account of " + email, nil // call a service; the result is recorded
	})
	if err != nil {
		return "", err
	}
	return account, durable.Do(ctx, "send welcome", func(context.Context) error {
		fmt.Println("welcome,", email)
		return nil
	})
}

func main() {
	ctx := context.Background()
	st, err := sqlite.Open("app.db") // or postgres.Open
	check(err)
	flow := durable.Define("onboard", onboard)
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{flow}})
	check(err)
	defer eng.Close()
	durable.SetDefault(eng)
	_, err = durable.Recover(ctx) // continues what a crash has left
	check(err)
	result, err := flow.Run(ctx, "onboard-ada", "ada@example.com") // one ID is one run
	check(err)
	fmt.Println(result)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
