package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func cleanCommand(a *app) *cobra.Command {
	var older string
	var keep int
	var workflows []string
	var all, only, keepFailed, force, dryRun, yes bool
	cmd := a.command(spec{
		use: "clean", short: "Remove runs that have ended",
		long: `clean removes runs that ended some time ago (7 days unless --older-than says
otherwise), each as a whole with its history. --keep 100 removes by number instead: of
each workflow the hundred that were started last stay; with --older-than as well, what
is older goes too. --all removes every run that is not executed at the moment,
interrupted and waiting ones too. A running one never is, nor a child whose parent
stays. Where the program has an archive, or with --only-archived, what is not archived
stays, unless --force: an archive has what has ended, and what waits.`,
		example: `  durable sessions clean --dry-run
  durable sessions clean --older-than 30d --yes
  durable sessions clean --keep 100 --keep-failed --workflow checkout
  durable sessions clean --all
  durable resume order-42`,
		do: func(c *invocation, _ []string) error {
			age, err := days(older)
			if err != nil {
				return err
			}
			set := c.cmd.Flags().Changed
			for _, other := range []string{"older-than", "keep", "keep-failed"} {
				if all && set(other) {
					return show.Usage("--all and --%s exclude each other", other)
				}
			}
			if set("keep") && keep < 1 {
				return show.Usage("--keep %d: keep at least one; --all removes them all", keep)
			}
			if set("keep") && !set("older-than") {
				age = 0 // age does not count
			} else {
				age = max(age, time.Microsecond) // zero would keep everything
			}
			if only && force {
				return show.Usage("--only-archived and --force exclude each other")
			}
			o := operate.CleanOptions{DryRun: true, All: all, Idle: all, Force: force, Workflows: workflows}
			if !all || only {
				o.Retention = &durable.Retention{KeepFor: age, KeepCount: keep, KeepFailed: keepFailed, OnlyArchived: only}
			}
			return clean(c, o, dryRun, yes)
		},
	})
	fl := cmd.Flags()
	fl.StringVar(&older, "older-than", "7d", "how long ago they ended: 36h, 7d")
	fl.IntVar(&keep, "keep", 0, "how many runs of each workflow stay, those started last")
	fl.BoolVar(&keepFailed, "keep-failed", false, "failed runs stay, and are not counted")
	fl.StringArrayVar(&workflows, "workflow", nil, "runs of this workflow alone; may be given several times")
	fl.BoolVar(&all, "all", false, "every run that is not executed at the moment")
	fl.BoolVar(&only, "only-archived", false, "keep what no archive has, also where this program has none")
	fl.BoolVar(&force, "force", false, "also what the archive does not have yet")
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
		return 0, show.Usage("%q is not a number of days", s)
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, show.Usage("%q is not an age; write 36h or 7d", s)
	}
	return d, nil
}

type cleaned struct {
	Removed    int      `json:"removed"`
	Unarchived int      `json:"kept_unarchived,omitempty"` // how many of those that would otherwise be removed
	IDs        []string `json:"ids,omitempty"`
	DryRun     bool     `json:"dry_run,omitempty"`
}

func clean(c *invocation, o operate.CleanOptions, dryRun, yes bool) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	would, err := operate.On(l.Engine).Clean(c.ctx, o)
	if err != nil {
		return err
	}
	seen := store.Deletion{RunIDs: would.IDs, Epochs: would.Epochs, Force: o.Idle}
	ids := seen.RunIDs
	if n := would.Unarchived; n > 0 {
		c.say("Kept: %s that the archive does not have yet, or would bring back. With --force they are removed all the same.", count.Of(n, "session"))
	}
	if n := would.Kept - would.Unarchived; o.All && n > 0 {
		c.say("Kept: %s executed at the moment, or whose parent stays.", count.Of(n, "session"))
	}
	if dryRun {
		return c.print(cleaned{len(ids), would.Unarchived, ids, true}, func() {
			for _, id := range ids {
				c.out.Printf("%s\n", show.Escape(id))
			}
			c.out.Printf("Dry run: nothing changed. %s would be removed.\n", count.Of(len(ids), "session"))
		})
	}
	if len(ids) > 0 {
		if err := confirm(c, yes, "Remove %s for good?", count.Of(len(ids), "session")); err != nil {
			return err
		}
	}
	n, failed := removeSeen(c, l.Store, seen)
	err = c.print(cleaned{Removed: n, Unarchived: would.Unarchived}, func() {
		c.out.Printf("Removed %s.\n", count.Of(n, "session"))
	})
	if failed != nil {
		return failed
	}
	return err
}

// removeSeen deletes runs one by one, each only if it has not changed since it was
// listed: a run that went on, or a new one under its id, stays, and so do its children, which
// are listed after it. A live owner keeps its run. failed says that runs stay for no reason of
// their own; without the store nothing more is tried.
func removeSeen(c *invocation, st store.Store, seen store.Deletion) (n int, failed error) {
	kept := map[string]bool{}
	for i, id := range seen.RunIDs {
		parent, err := "", error(nil)
		if len(kept) > 0 {
			parent, err = parentOf(c.ctx, st, id)
		}
		if err == nil && kept[parent] {
			kept[id] = true
			c.say("Kept %s: its parent %s stays.", show.Escape(id), show.Escape(parent))
			continue
		}
		m := 0
		if err == nil {
			m, err = st.Delete(c.ctx, store.Deletion{RunIDs: []string{id}, Epochs: seen.Epochs[i : i+1], Force: seen.Force})
		}
		if n += m; err == nil {
			continue
		}
		kept[id] = true
		switch {
		case errors.Is(err, store.ErrFenced):
			c.say("Kept %s: it was started again or has gone on since it was listed.", show.Escape(id))
			continue
		case errors.Is(err, store.ErrOwned):
			c.say("Kept %s: it is executed.", show.Escape(id))
			continue
		}
		err = fmt.Errorf("deleting run %s: %w", id, commit.StoreError(err))
		if failed == nil {
			failed = err
		}
		if c.ctx.Err() != nil || errors.Is(err, durable.ErrUnavailable) {
			return n, failed
		}
		c.say("Kept %s: %s", show.Escape(id), show.Escape(err.Error()))
	}
	return n, failed
}

// parentOf returns the parent of a run; empty: it has none, or is not there.
func parentOf(ctx context.Context, st store.Store, id string) (string, error) {
	h, err := st.Load(ctx, id, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	return h.Run.Parent, nil
}

// confirm asks before something that cannot be undone. Where there is no terminal,
// --yes is needed.
func confirm(c *invocation, yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	if !c.interactive() {
		next := "Say --yes."
		if c.cmd.Flags().Lookup("dry-run") != nil {
			next = "Look first with --dry-run; then say --yes."
		}
		return &show.Failure{Code: "confirm", Exit: ExitUsage, Message: question + " It was not confirmed.", Next: next}
	}
	c.err.Printf("%s [y/N] ", show.Escape(question))
	line, err := readLine(c.cmd.InOrStdin())
	switch answer := strings.ToLower(strings.TrimSpace(line)); {
	case err == nil && (answer == "y" || answer == "yes"):
		return nil
	}
	return &show.Failure{Code: "declined", Exit: ExitUsage, Message: "Nothing was changed."}
}
