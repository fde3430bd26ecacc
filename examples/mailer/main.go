// Mailer sends the mails of several tenants through one queue, to a mail server that takes
// only so many at a time. One tenant floods the queue with a newsletter, while the others send
// a mail now and then, and a schedule sends a digest to all of them each night. Two workers share the queue, and are killed with SIGKILL in the middle
// of deliveries. In the end the mail server's own book shows that each mail was delivered
// once, that no limit was ever exceeded, and that nobody waited for the newsletter.
//
//	go run ./examples/mailer
//	go run ./examples/mailer -flood 300 -kills 20
//
// Read mail.go first: it has the queue and the workflow. digest.go has the schedule, worker.go
// declares both, office.go puts mails in line. The other files are the world around them.
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
	_ "time/tzdata" // where the system has no time zones

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

const roleWorker = "worker"

// options are what the flags say.
type options struct {
	flood int
	kills int
	seed  uint64
}

func main() {
	log.SetFlags(0)
	slog.SetLogLoggerLevel(slog.LevelError) // the timeline is talkative enough
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx = demo.UntilParentEnds(ctx)
	var err error
	if demo.Role() == roleWorker {
		err = worker(ctx, os.Args[1], os.Args[2])
	} else {
		err = command(ctx, os.Args[1:])
	}
	if err != nil {
		log.Printf("mailer: %v", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("mailer", flag.ContinueOnError)
	flags.IntVar(&o.flood, "flood", 150, "how many `mails` the newsletter is")
	flags.IntVar(&o.kills, "kills", 6, "how often to kill a worker")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "of the moments and of the mail server's moods")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if o.flood < 1 || o.kills < 0 {
		return errors.New("-flood must be at least 1, and -kills not negative")
	}
	if err := play(ctx, os.Stdout, o); err != nil {
		return fmt.Errorf("seed %d: %w", o.seed, err)
	}
	return nil
}
