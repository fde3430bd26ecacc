// Approval is a deployment that asks a person: it builds a release, installs it
// on staging, waits for a yes, and goes on to production. The wait may last for
// days and needs no process to be alive.
//
//	go run ./examples/approval
//
// plays the whole story on its own: the process that executes the deployment is
// killed while it waits, the next one shows the question again and is killed
// too, the answer is given while none is alive, and a third one goes on.
//
// By hand, with as many terminals and Ctrl-C or kill -9 as you like:
//
//	go run ./examples/approval serve                    executes deployments
//	go run ./examples/approval start shop 1.4.2         asks for one: shop-1.4.2
//	go run ./examples/approval list                     what waits for a person
//	go run ./examples/approval approve shop-1.4.2
//	go run ./examples/approval reject shop-1.4.2 "not on a Friday"
//
// Before the command, -dir says where everything is kept and -as who you are.
// Read deploy.go first: it is the workflow.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

func main() {
	log.SetFlags(0)
	slog.SetLogLoggerLevel(slog.LevelWarn) // the timeline is talkative enough
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(demo.UntilParentEnds(ctx), os.Stdout, os.Args[1:]); err != nil {
		log.Printf("approval: %v", err)
		os.Exit(1)
	}
}

// commands, with the number of arguments they need.
var commands = map[string]struct {
	args int
	use  string
}{
	"play":    {0, ""},
	"serve":   {0, ""},
	"start":   {2, " SERVICE VERSION"},
	"list":    {0, ""},
	"approve": {1, " DEPLOYMENT"},
	"reject":  {2, " DEPLOYMENT REASON"},
}

func command(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("approval", flag.ContinueOnError)
	dir := flags.String("dir", filepath.Join(os.TempDir(), "holdfast-approval"), "`directory` of the store and of the site that is deployed to")
	as := flags.String("as", cmp.Or(os.Getenv("USER"), "somebody"), "`name` of the person who answers")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	name := "play"
	if args = flags.Args(); len(args) > 0 {
		name, args = args[0], args[1:]
	}
	c, ok := commands[name]
	switch {
	case !ok:
		return fmt.Errorf("there is no command %q; there are serve, start, list, approve and reject", name)
	case len(args) != c.args:
		return fmt.Errorf("use it like this: approval [-dir DIR] [-as NAME] %s%s", name, c.use)
	case name == "play":
		return play(ctx, out)
	case name == "serve":
		return serve(ctx, *dir)
	}
	office, err := openOffice(ctx, *dir)
	if err != nil {
		return err
	}
	defer office.Close()
	switch name {
	case "start":
		return start(ctx, office, Release{Service: args[0], Version: args[1]})
	case "list":
		return list(ctx, out, office)
	case "approve":
		return answer(ctx, office, args[0], Decision{Approved: true, By: *as})
	}
	return answer(ctx, office, args[0], Decision{By: *as, Reason: args[1]})
}

func start(ctx context.Context, office *Office, r Release) error {
	id, err := office.Start(ctx, r)
	if err != nil {
		return err
	}
	log.Printf("deployment %s is recorded", id)
	return nil
}

func list(ctx context.Context, out io.Writer, office *Office) error {
	questions, err := office.Questions(ctx)
	for _, q := range questions {
		fmt.Fprintf(out, "%s: %s\n", q.ID, q.Text)
	}
	if err == nil && len(questions) == 0 {
		log.Print("nothing waits for a person")
	}
	return err
}

func answer(ctx context.Context, office *Office, id string, d Decision) error {
	if err := office.Answer(ctx, id, d); err != nil {
		return err
	}
	if d.Approved {
		log.Printf("%s says yes to %s", d.By, id)
	} else {
		log.Printf("%s says no to %s: %s", d.By, id, d.Reason)
	}
	return nil
}
