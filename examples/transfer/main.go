// Transfer moves money between accounts, in the database that also keeps the runs. Each
// step of a transfer is a transaction, in which the money moves and the step is recorded:
// both happen, or neither. The program is killed with SIGKILL at random moments, fifty
// times; after each kill the sum of all accounts is what it was, and in the end each
// transfer was made once.
//
//	go run ./examples/transfer -kills 50
//	go run ./examples/transfer -kills 50 -store postgres
//	go run ./examples/transfer -cuts 200
//
// The last one cuts the connection to PostgreSQL two hundred times when a COMMIT is on
// its way: before the server has got it, while it carries it out, or before its answer
// arrives. Without -dsn, a throw-away PostgreSQL is started for -store postgres and -cuts.
//
// Read transfer.go first: it is the workflow. bank.go has its database, orders.go starts
// a transfer together with its order. The other files are the world around them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

const roleWorker = "worker"

// options are what the flags say.
type options struct {
	store     string
	dsn       string // of PostgreSQL; empty: a throw-away server is started
	kills     int
	cuts      int
	transfers int
	seed      uint64
}

func main() {
	log.SetFlags(0)
	slog.SetLogLoggerLevel(slog.LevelError)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx = demo.UntilParentEnds(ctx)
	var err error
	if demo.Role() == roleWorker {
		err = worker(ctx, os.Args[1:])
	} else {
		err = command(ctx, os.Args[1:])
	}
	if err != nil {
		log.Printf("transfer: %v", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("transfer", flag.ContinueOnError)
	flags.StringVar(&o.store, "store", "sqlite", "the database: sqlite or postgres")
	flags.StringVar(&o.dsn, "dsn", "", "of an empty PostgreSQL `database` to use")
	flags.IntVar(&o.kills, "kills", 50, "how often to kill the worker")
	flags.IntVar(&o.cuts, "cuts", 0, "how often to cut the connection at COMMIT, instead of killing (postgres)")
	flags.IntVar(&o.transfers, "transfers", 300, "how many transfers to make")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "of the moments")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	switch {
	case o.kills < 0 || o.cuts < 0 || o.transfers < 1:
		return errors.New("-kills and -cuts must not be negative, and there must be a transfer")
	case o.store != "sqlite" && o.store != "postgres":
		return fmt.Errorf("-store %q: say sqlite or postgres", o.store)
	case o.cuts > 0 || o.dsn != "":
		o.store = "postgres" // SQLite has no connection that could be cut
	}
	if err := play(ctx, os.Stdout, o); err != nil {
		return fmt.Errorf("seed %d: %w", o.seed, err)
	}
	return nil
}
