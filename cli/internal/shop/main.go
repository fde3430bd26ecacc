// Shop is the program that the tests of the terminal run: it mounts the commands,
// as "shop durable", beside a checkout that fails twice, asks a person, and ships.
// The environment controls what happens, so that a test can run it like any
// program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func main() { os.Exit(run()) }

// Order is the input of a checkout.
type Order struct {
	ID    string `json:"id"`
	Total int    `json:"total"`
}

// Receipt is its result.
type Receipt struct {
	Tracking string `json:"tracking"`
}

// Decision is the answer to whether an order is shipped.
type Decision struct {
	Approved bool   `json:"approved"`
	Reason   string `json:"reason"`
}

func run() int {
	ctx := context.Background()
	path := env("SHOP_DB", "shop.db")
	st, schema, err := open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{
		Workflows: workflows(),
		Logger:    slog.New(slog.DiscardHandler),
		Capture:   durable.Capture{Env: []string{"BANK_KEY"}},
		Grace:     grace(),
		Queues:    queues(),
		// The queues from which the shop takes runs; empty: all.
		ServeQueues: strings.Fields(os.Getenv("SHOP_SERVES")),
		Schedules:   schedules(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer eng.Close()
	root := &cobra.Command{Use: "shop", Short: "A shop with durable checkouts"}
	root.AddCommand(
		cli.Command(eng, cli.EngineSchema(schema)),
		&cobra.Command{Use: "many N [ID]", Short: "Start many runs that nobody here executes", RunE: func(_ *cobra.Command, args []string) error {
			return many(ctx, st, args)
		}},
		&cobra.Command{Use: "enqueue ID [PARTITION]", Short: "Put a mail in line", RunE: func(_ *cobra.Command, args []string) error {
			return enqueue(durable.NewContext(ctx, eng), args)
		}},
		&cobra.Command{Use: "boot", Short: "Declare the queues and schedules, and end", RunE: func(*cobra.Command, []string) error {
			_, err := eng.Recover(ctx)
			return err
		}},
		&cobra.Command{Use: "forge", Short: "Start a run with a header that pretends", RunE: func(*cobra.Command, []string) error {
			_, err := operate.On(eng).StartJSON(ctx, "count", "forged", json.RawMessage("0"), durable.Header("holdfast.command", os.Getenv("SHOP_HEADER")))
			return err
		}},
		&cobra.Command{Use: "serve", Short: "Execute what is there, and serve the pages, until it is killed", RunE: func(*cobra.Command, []string) error {
			return serve(ctx, eng)
		}},
	)
	return cli.ExitCode(root.Execute())
}

// open opens the store: a file, or a database.
func open(dsn string) (store.Store, func() (cli.Schema, error), error) {
	if strings.HasPrefix(dsn, "postgres") {
		st, err := postgres.Open(dsn)
		return st, func() (cli.Schema, error) { return postgres.OpenSchema(dsn, postgres.Options{}) }, err
	}
	st, err := sqlite.Open(dsn)
	return st, func() (cli.Schema, error) { return sqlite.OpenSchema(dsn, sqlite.Options{}) }, err
}

// many starts runs of a workflow that no program has.
func many(ctx context.Context, st store.Store, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	eng, err := durable.Open(ctx, st, durable.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer eng.Close()
	got, err := durable.Ref[int, int]("elsewhere").StartAll(durable.NewContext(ctx, eng), func(yield func(string, int) bool) {
		for i := range n {
			id := fmt.Sprintf("run-%06d", i)
			if len(args) > 1 {
				id = args[1]
			}
			if !yield(id, i) {
				return
			}
		}
	})
	fmt.Println(got.Started)
	return err
}

// serve is a program in production: it recovers, and shows its runs over HTTP.
func serve(ctx context.Context, eng *durable.Engine) error {
	if _, err := eng.Recover(ctx); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("serving http://%s\n", l.Addr())
	return http.Serve(l, dashboard.Handler(eng, dashboard.Options{ShowPayloads: true}))
}

// queues are what the shop declares where a test is about queues.
func queues() []durable.Queue {
	if os.Getenv("SHOP_QUEUE") == "" {
		return nil
	}
	return []durable.Queue{{Name: "emails", Max: 2, MaxPerPartition: 1, Rate: 100, Per: time.Minute}}
}

// schedules are what the shop declares where a test is about schedules.
func schedules() []durable.Schedule {
	if os.Getenv("SHOP_SCHEDULE") == "" {
		return nil
	}
	return []durable.Schedule{durable.Define("count", count).Schedule("yearly", durable.Cron("0 2 1 1 *"), 0)}
}

// enqueue puts a mail in line, for whoever serves.
func enqueue(ctx context.Context, args []string) error {
	o := []durable.StartOption{durable.OnQueue("emails")}
	if len(args) > 1 {
		o = append(o, durable.Partition(args[1]))
	}
	_, err := durable.Ref[string, string]("mail").Enqueue(ctx, args[0], args[0], o...)
	return err
}

// mail renders and sends.
func mail(ctx context.Context, id string) (string, error) {
	if err := durable.Do(ctx, "render", body("render", Order{ID: id})); err != nil {
		return "", err
	}
	return "sent", durable.Do(ctx, "send", body("send", Order{ID: id}))
}

func workflows() []durable.Definition {
	names := []string{"reserve", "charge", "approve", "ship"}
	if os.Getenv("SHOP_FRAUD") != "" {
		names = []string{"reserve", "check-fraud", "charge", "approve", "ship"}
	}
	return []durable.Definition{
		durable.Define("checkout", checkout, durable.Steps(names...)),
		durable.Define("count", count),
		durable.Define("hostile", hostile),
		durable.Define("mail", mail),
		durable.Define("two", two),
		durable.Define("opens", func(ctx context.Context, _ struct{}) (string, error) {
			_, err := durable.Await[struct{}](ctx, "open")
			return "open", err
		}),
		durable.Define("parent", func(ctx context.Context, n int) (int, error) {
			return durable.Ref[int, int]("count").Run(ctx, durable.AutoID, n)
		}),
		durable.Define("broken", func(context.Context, struct{}) (string, error) {
			if os.Getenv("SHOP_MENDED") != "" {
				return "mended", nil
			}
			return "", errors.New("out of order")
		}),
	}
}

// checkout reserves, charges in up to five attempts of which the first two fail,
// asks whether to ship, and ships.
func checkout(ctx context.Context, o Order) (Receipt, error) {
	if err := durable.Do(ctx, "reserve", body("reserve", o)); err != nil {
		return Receipt{}, err
	}
	if os.Getenv("SHOP_FRAUD") != "" {
		if err := durable.Do(ctx, "check-fraud", body("check-fraud", o)); err != nil {
			return Receipt{}, err
		}
	}
	pause := 20 * time.Millisecond
	if d, err := time.ParseDuration(os.Getenv("SHOP_PAUSE")); err == nil {
		pause = d
	}
	if os.Getenv("SHOP_RETYPED") != "" {
		if _, err := durable.Step(ctx, "charge", func(context.Context) ([]int, error) { return nil, nil }); err != nil {
			return Receipt{}, err
		}
	}
	_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 5, Initial: pause, Jitter: -1}, func(ctx context.Context) (string, error) {
		switch a := durable.Attempt(ctx); {
		case os.Getenv("SHOP_BANK") == "down":
			return "", durable.Permanent(errors.New("bank: closed"))
		case a.Number == 1:
			return "", errors.New("bank: 503")
		case a.Number == 2:
			return "", errors.New("bank: timeout")
		}
		return "paid", body("charge", o)(ctx)
	})
	if err != nil {
		return Receipt{}, err
	}
	d, err := durable.Await[Decision](ctx, "approve", durable.Prompt("Ship "+o.ID+"?"))
	if err != nil {
		return Receipt{}, err
	}
	if !d.Approved {
		return Receipt{}, durable.Permanent(fmt.Errorf("not shipped: %s", d.Reason))
	}
	return durable.Step(ctx, "ship", func(ctx context.Context) (Receipt, error) {
		return Receipt{Tracking: "H-7"}, body("ship", o)(ctx)
	})
}

// count makes n steps and declares no names.
func count(ctx context.Context, n int) (int, error) {
	sum := 0
	for i := range n {
		v, err := durable.Step(ctx, "add", func(ctx context.Context) (int, error) { return i, body("add", Order{ID: strconv.Itoa(i)})(ctx) })
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// two asks two people at once, of which one names a price, and waits for a signal.
func two(ctx context.Context, _ struct{}) (string, error) {
	yes := durable.Go(ctx, "left", func(ctx context.Context) (bool, error) {
		return durable.Await[bool](ctx, "agree", durable.Prompt("Agree?"))
	})
	price := durable.Go(ctx, "right", func(ctx context.Context) (int, error) {
		return durable.Await[int](ctx, "price", durable.Prompt("At what price?"))
	})
	ok, err := yes.Wait(ctx)
	if err != nil {
		return "", err
	}
	n, err := price.Wait(ctx)
	if err != nil {
		return "", err
	}
	word, err := durable.Await[string](ctx, "word")
	return fmt.Sprintf("%v %d %s", ok, n, word), err
}

// hostile fails with an error that would act on a terminal.
func hostile(ctx context.Context, _ struct{}) (string, error) {
	err := durable.Do(ctx, "take\u202eover", func(context.Context) error {
		return durable.Permanent(errors.New("\x1b[2J\x1b]0;owned\x07gone\r\nWorkflow order-42 completed"))
	})
	return "", err
}

// body is the body of a step: it records that it ran, and pauses where configured,
// until it is stopped or the named file appears.
func body(step string, o Order) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if file := os.Getenv("SHOP_JOURNAL"); file != "" {
			if err := note(file, step+" "+o.ID); err != nil {
				return err
			}
		}
		if os.Getenv("SHOP_PANIC") == step {
			panic(step + " has no till")
		}
		if os.Getenv("SHOP_FAIL") == step {
			return durable.Permanent(errors.New(step + " is out of order"))
		}
		hold, until, _ := strings.Cut(os.Getenv("SHOP_HOLD"), "=")
		for hold == step {
			if _, err := os.Stat(until); err == nil && until != "" {
				return nil
			}
			select {
			case <-ctx.Done():
				if os.Getenv("SHOP_STUBBORN") == "" {
					return context.Cause(ctx)
				}
			case <-time.After(10 * time.Millisecond):
			}
		}
		return nil
	}
}

func note(file, line string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, line)
	return err
}

func grace() time.Duration {
	d, err := time.ParseDuration(env("SHOP_GRACE", "100ms"))
	if err != nil {
		return durable.DefaultGrace
	}
	return d
}

func env(name, other string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return other
}
