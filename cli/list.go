package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

func sessionsCommand(a *app) *cobra.Command {
	g := a.group("sessions", "List, show and clean runs", `sessions lists runs, shows one in full, and removes old ones. A session is a run;
"runs" is the same command.`, `  durable sessions ls --resumable
  durable runs show order-42
  durable resume order-42`, "runs", "session", "run-list")
	g.Aliases = []string{"runs", "session"}
	g.AddCommand(listCommand(a), showCommand(a), cleanCommand(a))
	return g
}

func listCommand(a *app) *cobra.Command {
	var q target.Query
	var statuses []string
	cmd := a.command(spec{
		use: "ls", aliases: []string{"list"}, short: "List runs, newest first", lists: true,
		long: `ls lists runs, newest first. Those that resume would take are marked; --resumable
lists them alone.`,
		example: `  durable sessions ls
  durable sessions ls --resumable
  durable sessions ls --status failed --workflow checkout
  durable resume order-42`,
		do: func(c *invocation, _ []string) error {
			for _, s := range statuses {
				if !store.Status(s).Valid() {
					return show.Usage("there is no status %q; there are: %s", s, statusNames())
				}
				q.Statuses = append(q.Statuses, store.Status(s))
			}
			if q.Limit < 0 {
				return show.Usage("--limit must not be negative")
			}
			return list(c, q)
		},
	})
	fl := cmd.Flags()
	fl.BoolVar(&q.Resumable, "resumable", false, "only runs that resume would take")
	fl.StringSliceVar(&statuses, "status", nil, "only runs in this status: "+statusNames())
	fl.StringSliceVar(&q.Workflows, "workflow", nil, "only runs of this workflow")
	fl.StringSliceVar(&q.Queues, "queue", nil, "only runs of this queue")
	fl.IntVar(&q.Limit, "limit", 100, "how many at most; 0: all")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(strings.Split(statusNames(), ", "), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func statusNames() string {
	var names []string
	for _, s := range store.Statuses() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func list(c *invocation, q target.Query) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	list, total, err := t.Runs(c.ctx, q)
	if err != nil {
		return err
	}
	if c.flags.json {
		for i := range list {
			if err := c.out.JSON(&list[i].Session); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		none := "No sessions."
		if q.Resumable {
			none = "No resumable sessions."
		}
		c.say("%s", none)
		return nil
	}
	c.out.Table(sessionTable(c.out, list))
	marked := len(slices.DeleteFunc(slices.Clone(list), func(s target.Run) bool { return !s.Resumable }))
	if marked > 0 && c.out.TTY {
		c.hint("%d of %d resumable: %s", marked, len(list), c.self("resume", "ID"))
	}
	if int64(len(list)) < total {
		c.say("%d of %d shown; more with --limit", len(list), total)
	}
	return nil
}

// sessionTable is what ls prints. In a pipe every part of the step has its own
// column.
func sessionTable(s *show.Stream, list []target.Run) show.Table {
	t := show.Table{Head: []string{"ID", "WORKFLOW", "STATUS", "STEP", "STARTED", "LAST CHECKPOINT"}, Wide: 0, Mark: []string{}}
	for i := range list {
		one := &list[i]
		place, key, attempt := one.Place()
		step := []string{place, key, attempt}
		if s.TTY {
			step = []string{strings.TrimSpace(fmt.Sprintf("%s %s %s", place, key, attempt))}
		}
		row := append([]string{one.ID, one.Workflow, one.StatusText()}, step...)
		t.Rows = append(t.Rows, append(row, s.At(one.Started), s.At(one.Checkpoint)))
		mark, tint := "", ""
		if one.Resumable {
			mark = "resumable"
		}
		switch store.Status(one.Status) {
		case store.Failed:
			tint = show.Red
		case store.Interrupted:
			tint = show.Yellow
		}
		t.Mark, t.Tint = append(t.Mark, mark), append(t.Tint, tint)
	}
	return t
}

// Session is a run as --json prints it. Fields are only ever added.
type Session = target.Session

// onlyFailed adds to the refusal of a resume without an ID, which takes an interrupted run, that
// runs have failed, which it does not take.
func onlyFailed(c *invocation, t target.Target, err error) error {
	var f *show.Failure
	if !errors.Is(err, durable.ErrNotFound) {
		return err
	}
	_, failed, listed := t.Runs(c.ctx, target.Query{Resumable: true, Statuses: []store.Status{store.Failed}, Limit: 1})
	if listed == nil && failed > 0 && errors.As(err, &f) {
		f.Next = fmt.Sprintf("No run was interrupted; %s failed. Name one: %s", count.Of(int(failed), "run"), c.self("ls", "--status", "failed"))
	}
	return err
}
