package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func deadCommand(a *app) *cobra.Command {
	q := target.Query{Statuses: []store.Status{store.Failed}, Oldest: true}
	cmd := a.command(spec{
		use: "dead QUEUE", short: "List the failed runs of a queue, oldest first", min: 1, max: 1, values: queueNames,
		example: `  durable queues dead emails
  durable queues retry emails order-42`,
		do: func(c *invocation, args []string) error {
			t, _, err := oneQueue(c, args[0])
			if err != nil {
				return err
			}
			if q.Limit < 0 {
				return show.Usage("--limit must not be negative")
			}
			q.Queues = args[:1]
			list, total, err := t.Runs(c.ctx, q)
			if err != nil {
				return err
			}
			rows := show.Table{Head: []string{"ID", "WORKFLOW", "PARTITION", "STARTED", "ERROR"}, Wide: 4}
			for i := range list {
				one := &list[i]
				if c.flags.json {
					if err := c.out.JSON(&one.Session); err != nil {
						return err
					}
					continue
				}
				rows.Rows = append(rows.Rows, []string{one.ID, one.Workflow, one.Partition, c.out.At(one.Started), outline.OneLine(cmp.Or(one.Reason, one.Code), 200)})
			}
			switch {
			case c.flags.json:
				return nil
			case len(list) == 0:
				c.say("No run of %s has failed.", show.Escape(args[0]))
				return nil
			}
			c.out.Table(rows)
			if int64(len(list)) < total {
				c.say("%d of %d shown; more with --limit", len(list), total)
			}
			c.hint("Retry one: %s, all: %s", c.self("queues", "retry", args[0], list[0].ID), c.self("queues", "retry", args[0], "--all"))
			return nil
		},
	})
	cmd.Flags().IntVar(&q.Limit, "limit", 100, "how many at most; 0: all")
	return cmd
}

func retryCommand(a *app) *cobra.Command {
	var all, dryRun bool
	cmd := a.command(spec{
		use: "retry QUEUE [ID]", short: "Let failed runs of a queue get in line again", min: 1, max: 2, values: queueNames,
		long: `retry lets one failed run of a queue get in line again, or with --all every one, the
oldest first. A run goes on from the failure that ended it, with the attempts of that
step again; steps that are done are not repeated. One in which nothing was recorded
begins again from its input.`,
		example: `  durable queues retry emails order-42
  durable queues retry emails --all --dry-run
  durable queues retry emails --all`,
		do: func(c *invocation, args []string) error {
			if all == (len(args) == 2) {
				f := show.Usage("retry needs the queue, and one of its runs or --all")
				f.Next = "List: " + c.self("queues", "dead", args[0])
				if s, err := runNamed(c, args[0]); err == nil && s.Queue != "" {
					f.Next = "Did you mean: " + c.self("queues", "retry", s.Queue, s.ID)
				}
				return f
			}
			t, _, err := oneQueue(c, args[0])
			if err != nil {
				return err
			}
			if all {
				return retryAll(c, t, args[0], dryRun)
			}
			return retryOne(c, t, args[0], args[1], dryRun)
		},
	})
	fl := cmd.Flags()
	fl.BoolVar(&all, "all", false, "every failed run of the queue")
	fl.BoolVar(&dryRun, "dry-run", false, "say what would be done, and change nothing")
	asksNothing(cmd)
	return cmd
}

// runNamed returns a run whose ID was given where a queue is expected.
func runNamed(c *invocation, id string) (*target.Run, error) {
	t, err := c.target()
	if err != nil {
		return nil, err
	}
	return t.Run(c.ctx, id)
}

func retryOne(c *invocation, t target.Target, queue, id string, dry bool) error {
	s, err := t.Run(c.ctx, id)
	if err != nil {
		return err
	}
	if s.Queue != queue {
		at := "on no queue"
		if s.Queue != "" {
			at = "on the queue " + s.Queue
		}
		return show.Refused("other_queue", "Show it: "+c.self("sessions", "show", id), "%s is not on the queue %s: it is %s", id, queue, at)
	}
	plan, err := retry(c, t, id, dry)
	if err != nil {
		return err
	}
	return c.print(handled{ID: id, Queue: queue, Done: true, DryRun: dry}, func() {
		if dry {
			at, _ := t.Standing(c.ctx, id)
			c.showPlan(c.out, s, at, &plan, false)
			endDryRun(c, s)
			return
		}
		c.out.Printf("Workflow %s is in line of %s again\n", show.Escape(id), show.Escape(queue))
		sayUntaken(c, untaken(c, t, id))
	})
}

// retry lets a failed run get in line again. This program does not execute it, for it would stop
// in the middle when the command ends.
func retry(c *invocation, t target.Target, id string, dry bool) (operate.Plan, error) {
	l, isLocal := t.(*target.Local)
	if !isLocal || dry {
		return t.Retry(c.ctx, id, dry)
	}
	if plan, err := l.Retry(c.ctx, id, true); err != nil {
		return plan, err // tried with the code that is here: the engine that hands it over has none
	}
	to, err := c.handsOff(l)
	if err != nil {
		return operate.Plan{}, err
	}
	return to.Retry(c.ctx, id, false)
}

func retryAll(c *invocation, t target.Target, queue string, dry bool) error {
	in := show.Escape(strings.ReplaceAll(queue, "%", "%%"))
	m := &many{c: c, queue: queue, dry: dry, says: "%s in line of " + in + " again%s.\n", would: "%s would get in line of " + in + " again%s.\n"}
	l, isLocal := t.(*target.Local)
	if !isLocal || dry {
		return m.end(t.RetryAll(c.ctx, queue, dry, m.one))
	}
	return handOver(c, l, m,
		func(each func(id string, refused error)) error { return l.RetryAll(c.ctx, queue, true, each) },
		func(to *target.Local, id string) error { _, err := to.Retry(c.ctx, id, false); return err })
}

// handOver does something to many runs that lets a program which serves them execute them. Each
// run is tried with the code that is here first, since the engine that hands them over has none.
func handOver(c *invocation, l *target.Local, m *many, try func(each func(id string, refused error)) error, do func(to *target.Local, id string) error) error {
	var fit []string
	err := try(func(id string, refused error) {
		if refused == nil {
			fit = append(fit, id)
			return
		}
		m.one(id, refused)
	})
	if err != nil {
		return err
	}
	to, err := c.handsOff(l)
	if err != nil {
		return err
	}
	var unserved []string
	for _, id := range fit {
		err := do(to, id)
		if c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		m.one(id, err)
		if workflow := untaken(c, l, id); err == nil && workflow != "" && !slices.Contains(unserved, workflow) {
			unserved = append(unserved, workflow)
		}
	}
	err = m.end(nil)
	sayUntaken(c, unserved...)
	return err
}
