// Step3 tries again when a service fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func onboard(ctx context.Context, email string) (string, error) {
	account, err := durable.Step(ctx, "create account", func(ctx context.Context) (string, error) {
		return createAccount(email, durable.IdempotencyKey(ctx))
	})
	if err != nil {
		return "", err
	}
	policy := durable.Policy{MaxAttempts: 5, Initial: 200 * time.Millisecond}
	return durable.Retry(ctx, "send welcome", policy, func(ctx context.Context) (string, error) {
		return account, sendWelcome(account, durable.Attempt(ctx).Number)
	})
}

// createAccount passes a key to the service. The key is the same whenever this step is
// repeated, so that the service can recognise the repetition.
func createAccount(email, key string) (string, error) {
	if key == "" {
		return "", errors.New("no key")
	}
	fmt.Println("creating an account for", email)
	return "acct-1", nil
}

// sendWelcome plays a mail server that is down for the first two attempts.
func sendWelcome(account string, attempt int) error {
	fmt.Printf("welcoming %s, attempt %d\n", account, attempt)
	if attempt < 3 {
		return errors.New("mail server: 503")
	}
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
	account, err := flow.Run(ctx, "onboard-bob", "bob@example.com")
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
