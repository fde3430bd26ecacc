package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func (a *app) cleanCommand() *cobra.Command {
	var older string
	var all, dryRun, yes bool
	cmd := a.command(spec{
		use: "clean", short: "Remove runs that have ended",
		long: `clean removes runs that ended some time ago (7 days unless --older-than says
otherwise), each as a whole with its history. --all removes every run that is not
executed at the moment, interrupted and waiting ones too. A running one never is.`,
		example: `  durable sessions clean --dry-run
  durable sessions clean --older-than 30d --yes
  durable sessions clean --all
  durable resume order-42`,
		do: func(c *call, _ []string) error {
			age, err := days(older)
			if err != nil {
				return err
			}
			if all && c.cmd.Flags().Changed("older-than") {
				return usage("--all and --older-than exclude each other")
			}
			return c.clean(age, all, dryRun, yes)
		},
	})
	fl := cmd.Flags()
	fl.StringVar(&older, "older-than", "7d", "how long ago they ended: 36h, 7d")
	fl.BoolVar(&all, "all", false, "every run that is not executed at the moment")
	fl.BoolVar(&dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	fl.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// days reads a duration that may be in days.
func days(s string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		if f, err := strconv.ParseFloat(n, 64); err == nil && f >= 0 && f < 36500 {
			return time.Duration(f * 24 * float64(time.Hour)), nil
		}
		return 0, usage("%q is no number of days", s)
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, usage("%q is no age; write 36h or 7d", s)
	}
	return d, nil
}

type cleaned struct {
	Removed int      `json:"removed"`
	IDs     []string `json:"ids,omitempty"`
	DryRun  bool     `json:"dry_run,omitempty"`
}

func (c *call) clean(age time.Duration, all, dryRun, yes bool) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	o := durable.CleanOptions{DryRun: true, All: all}
	if !all {
		o.Retention = &durable.Retention{KeepFor: max(age, time.Microsecond)} // zero would keep all
	}
	would, err := l.eng.Clean(c.ctx, o)
	if err != nil {
		return err
	}
	ids := would.IDs
	if all {
		idle, err := l.idle()
		if err != nil {
			return err
		}
		ids = append(ids, idle...)
	}
	if dryRun {
		return c.print(cleaned{len(ids), ids, true}, func() {
			for _, id := range ids {
				c.out.printf("%s\n", escape(id))
			}
			c.out.printf("Dry run: nothing changed. %s would be removed.\n", plural(len(ids), "session"))
		})
	}
	if len(ids) > 0 {
		if err := c.confirm(yes, "Remove %s for good?", plural(len(ids), "session")); err != nil {
			return err
		}
	}
	n := 0
	for _, id := range ids {
		// Only what was looked at: a run that was started since stays. A live
		// owner keeps its run.
		m, err := l.st.Delete(c.ctx, store.Deletion{RunIDs: []string{id}, Force: all})
		if err != nil {
			c.say("Kept %s: %s", escape(id), escape(err.Error()))
			continue
		}
		n += m
	}
	return c.print(cleaned{Removed: n}, func() {
		c.out.printf("Removed %s.\n", plural(n, "session"))
	})
}

// idle lists the runs that have not ended and that nobody executes.
func (l *local) idle() ([]string, error) {
	ctx := l.call.ctx
	live, err := l.live(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	f := store.Filter{Statuses: []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted}, Limit: 500}
	for {
		p, err := l.eng.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range p.Runs {
			if _, has := live[p.Runs[i].Owner]; !has {
				ids = append(ids, p.Runs[i].ID)
			}
		}
		if f.After = p.Next; p.Next == "" {
			return ids, nil
		}
	}
}

// confirm asks before what cannot be taken back: on a terminal; elsewhere --yes
// is needed.
func (c *call) confirm(yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	if !c.interactive() {
		return &failure{code: "confirm", exit: ExitUsage, message: question + " It was not confirmed.", next: "Look first with --dry-run; then say --yes."}
	}
	c.err.printf("%s [y/N] ", escape(question))
	line, err := readLine(c.cmd.InOrStdin())
	switch answer := strings.ToLower(strings.TrimSpace(line)); {
	case err == nil && (answer == "y" || answer == "yes"):
		return nil
	}
	return &failure{code: "declined", exit: ExitUsage, message: "Nothing was changed."}
}
