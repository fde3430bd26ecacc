package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/store"
)

func (a *app) sessionsCommand() *cobra.Command {
	g := a.group("sessions", "List, show and clean runs", `sessions lists runs, shows one in full, and removes old ones. A session is a run;
"runs" is the same command.`, `  durable sessions ls --resumable
  durable runs show order-42
  durable resume order-42`, "runs", "session", "run-list")
	g.Aliases = []string{"runs", "session"}
	g.AddCommand(a.listCommand(), a.showCommand(), a.cleanCommand())
	return g
}

func (a *app) listCommand() *cobra.Command {
	var q query
	var statuses []string
	cmd := a.command(spec{
		use: "ls", aliases: []string{"list"}, short: "List runs, newest first",
		long: `ls lists runs, newest first. Those that resume would take are marked; --resumable
lists them alone.`,
		example: `  durable sessions ls
  durable sessions ls --resumable
  durable sessions ls --status failed --workflow checkout
  durable resume order-42`,
		do: func(c *call, _ []string) error {
			for _, s := range statuses {
				if !store.Status(s).Valid() {
					return usage("there is no status %q; there are: %s", s, statusNames())
				}
				q.statuses = append(q.statuses, store.Status(s))
			}
			if q.limit < 0 {
				return usage("--limit must not be negative")
			}
			return c.list(q)
		},
	})
	fl := cmd.Flags()
	fl.BoolVar(&q.resumable, "resumable", false, "only runs that resume would take")
	fl.StringSliceVar(&statuses, "status", nil, "only runs in this status: "+statusNames())
	fl.StringSliceVar(&q.workflows, "workflow", nil, "only runs of this workflow")
	fl.IntVar(&q.limit, "limit", 100, "how many at most; 0: all")
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

func (c *call) list(q query) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	list, total, err := t.sessions(c.ctx, q)
	if err != nil {
		return err
	}
	if c.flags.json {
		for i := range list {
			if err := c.out.json(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		none := "No sessions."
		if q.resumable {
			none = "No resumable sessions."
		}
		c.say("%s", none)
		return nil
	}
	c.out.table(c.out.sessionTable(list))
	marked := len(slices.DeleteFunc(slices.Clone(list), func(s Session) bool { return !s.Resumable }))
	if marked > 0 && c.out.tty {
		c.hint("%d of %d resumable: %s", marked, len(list), c.selfWith("resume", "ID"))
	}
	if int64(len(list)) < total {
		c.say("%d of %d shown; more with --limit", len(list), total)
	}
	return nil
}

// selfWith is self for a command in which a person puts in a word.
func (c *call) selfWith(args ...string) string { return c.self(args...) }

// sessionTable is what ls prints. In a pipe every part of the step has a column
// of its own.
func (s *stream) sessionTable(list []Session) table {
	t := table{head: []string{"ID", "WORKFLOW", "STATUS", "STEP", "STARTED", "LAST CHECKPOINT"}, wide: 0, mark: []string{}}
	for i := range list {
		one := &list[i]
		place, key, attempt := one.step()
		step := []string{place, key, attempt}
		if s.tty {
			step = []string{strings.TrimSpace(fmt.Sprintf("%s %s %s", place, key, attempt))}
		}
		row := append([]string{one.ID, one.Workflow, one.status()}, step...)
		t.rows = append(t.rows, append(row, s.at(one.started), s.at(one.checkpoint)))
		mark, tint := "", ""
		if one.Resumable {
			mark = "resumable"
		}
		switch store.Status(one.Status) {
		case store.Failed:
			tint = red
		case store.Interrupted:
			tint = yellow
		}
		t.mark, t.tint = append(t.mark, mark), append(t.tint, tint)
	}
	return t
}

// status is the status as a listing shows it: of a run that cannot be read, that,
// and of one whose cancel nobody has carried out yet.
func (s *Session) status() string {
	switch {
	case s.Corrupt, s.Code == "damaged":
		return s.Status + " (corrupt)"
	case s.CancelAsked:
		return s.Status + " (cancelling)"
	case s.Paused:
		return s.Status + " (paused)"
	}
	return s.Status
}
