package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// shop is one process of the shop, the same in each of its lives.
func shop(ctx context.Context, dir string, life int) (err error) {
	seen, err := setup(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seen.shutdown(context.WithoutCancel(ctx))) }()
	st, err := sqlite.Open(filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	defer st.Close()

	checkout := durable.Define("checkout", (&counter{life: life, seen: seen}).checkout, durable.Steps("reserve", "charge", "parcels", "ship"))
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{checkout}})
	if err != nil {
		return err
	}
	defer eng.Close()
	seen.opened(ctx)
	ctx = durable.NewContext(ctx, eng)
	left, err := resumption(ctx, os.Stdout, eng)
	if err != nil {
		return err
	}
	if _, err := durable.Recover(ctx); err != nil {
		return err
	}
	run, err := checkout.Start(ctx, orderID, []string{"teapot", "cup"})
	if err != nil {
		return err
	}
	shown := follow(ctx, os.Stdout, eng, left)
	_, err = run.Wait(ctx)
	return errors.Join(err, shown())
}

// counter is where orders are taken; it dies in its first two lives.
type counter struct {
	life int
	seen *telemetry
}

func (c *counter) checkout(ctx context.Context, items []string) (int, error) {
	work := func(ctx context.Context, d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := durable.Do(ctx, "reserve", func(ctx context.Context) error { return work(ctx, 20*time.Millisecond) })
	if err != nil {
		return 0, err
	}
	retry := durable.Policy{MaxAttempts: 5, Initial: 100 * time.Millisecond}
	_, err = durable.Retry(ctx, "charge", retry, func(ctx context.Context) (string, error) {
		// A span of the program is a child of the attempt's span.
		ctx, span := otel.Tracer("shop").Start(ctx, "POST /charges")
		defer span.End()
		if err := work(ctx, 30*time.Millisecond); err != nil {
			return "", err
		}
		attempt := durable.Attempt(ctx).Number
		if c.life == 1 && attempt == 2 {
			c.die(ctx) // the second attempt has no outcome and is repeated
		}
		if attempt < 3 {
			return "", errors.New("the bank answered 503")
		}
		return "pay-1", nil
	})
	if err != nil {
		return 0, err
	}
	parcels, err := durable.Map(ctx, "parcels", items, durable.MapOptions{}, func(ctx context.Context, item string) (string, error) {
		return durable.Step(ctx, "pack", func(ctx context.Context) (string, error) { return "box of a " + item, work(ctx, 10*time.Millisecond) })
	})
	if err != nil {
		return 0, err
	}
	err = durable.Do(ctx, "ship", func(ctx context.Context) error {
		if c.life == 2 {
			c.die(ctx)
		}
		return work(ctx, 15*time.Millisecond)
	})
	return len(parcels), err
}

// die ends this process as kill -9 does: no handler runs. It sends the telemetry so far
// first, because the demonstration shows it.
func (c *counter) die(ctx context.Context) {
	c.seen.flush(ctx)
	if p, err := os.FindProcess(os.Getpid()); err != nil || p.Kill() != nil {
		panic(fmt.Sprintf("process %d cannot end itself", os.Getpid()))
	}
	select {}
}
