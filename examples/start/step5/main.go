// Step5 is killed in its third attempt, and continues with the third attempt.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func onboard(ctx context.Context, email string) (string, error) {
	account, err := durable.Step(ctx, "create account", func(context.Context) (string, error) {
		fmt.Println("creating an account for", email)
		return "acct-1", nil
	})
	if err != nil {
		return "", err
	}
	policy := durable.Policy{MaxAttempts: 5, Initial: 200 * time.Millisecond}
	return durable.Retry(ctx, "send welcome", policy, func(ctx context.Context) (string, error) {
		return account, sendWelcome(account, durable.Attempt(ctx))
	})
}

func sendWelcome(account string, attempt durable.AttemptInfo) error {
	fmt.Printf("welcoming %s, attempt %d of %d\n", account, attempt.Number, attempt.Max)
	for _, f := range attempt.Failures {
		fmt.Printf("  attempt %d: %s\n", f.Attempt, f.Err)
	}
	if attempt.Number < 3 {
		return errors.New("mail server: 503")
	}
	if os.Getenv("CRASH") != "" {
		return kill()
	}
	return nil
}

// kill ends this process at once, as kill -9 does.
func kill() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
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
	defer eng.Close() // lets the step in progress finish, for up to Options.Grace
	durable.SetDefault(eng)

	if _, err := durable.Recover(ctx); err != nil { // continues what the last process has left
		return err
	}
	account, err := flow.Run(ctx, "onboard-joe", "joe@example.com")
	if err != nil {
		return err
	}
	fmt.Println(account)
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}
