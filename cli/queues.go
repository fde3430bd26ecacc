package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

func queuesCommand(a *app) *cobra.Command {
	g := a.group("queues", "See, pause and resume queues, and retry what failed in them", `queues lists queues: how many of their runs hold a place, are in line and why, come
later, and have failed. pause keeps runs from getting a place, resume lets them. Runs of
a queue that failed are its dead letters: dead lists them, retry lets them get in line
again.`, `  durable queues ls
  durable queues show emails
  durable queues pause emails --reason "the provider is down"
  durable queues retry emails --all`, "queue")
	g.AddCommand(queueListCommand(a), queueShowCommand(a), queuePauseCommand(a), queueResumeCommand(a), deadCommand(a), retryCommand(a))
	return g
}

// queueNames lists the names of the queues, for a shell to offer. On an error it lists
// none.
func queueNames(c *invocation, n int) (names []string) {
	t, err := c.target()
	if err != nil || n > 0 {
		return nil
	}
	list, err := t.Queues(c.ctx)
	if err != nil {
		return nil
	}
	for i := range list {
		if show.Quote(list[i].Name) == list[i].Name { // others the shell would split
			names = append(names, list[i].Name)
		}
	}
	return names
}

func queueListCommand(a *app) *cobra.Command {
	return a.command(spec{
		use: "ls", aliases: []string{"list"}, short: "List queues, and why their runs wait",
		long: `ls lists the queues by name. A run holds a place from its beginning to its end, also
while it waits for something; those in line are due, and need a place.`,
		example: `  durable queues ls
  durable queues ls --json`,
		do: func(c *invocation, _ []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			list, err := t.Queues(c.ctx)
			if err != nil {
				return err
			}
			rows := show.Table{Head: []string{"QUEUE", "RUNNING", "IN LINE", "OLDEST", "LATER", "FAILED", "RATE", "WHY"}, Wide: 7}
			for i := range list {
				q := &list[i]
				if c.flags.json {
					q.Partitions = nil // there may be many of many queues
					if err := c.out.JSON(q); err != nil {
						return err
					}
					continue
				}
				rows.Rows = append(rows.Rows, []string{
					q.Name, places(q), fmt.Sprint(q.InLine), oldest(q), fmt.Sprint(q.Delayed), fmt.Sprint(q.Failed), rateOf(q), whyInLine(q),
				})
				tint := ""
				if q.Paused {
					tint = show.Yellow
				}
				rows.Tint = append(rows.Tint, tint)
			}
			switch {
			case c.flags.json:
			case len(list) == 0:
				c.say("No queues.")
			default:
				c.out.Table(rows)
			}
			return nil
		},
	})
}

// places shows how many runs hold a place: "2 of 5".
func places(q *client.Queue) string {
	if q.Max == 0 {
		return fmt.Sprint(q.Running)
	}
	return fmt.Sprintf("%d of %d", q.Running, q.Max)
}

func oldest(q *client.Queue) string {
	if q.Oldest.IsZero() {
		return ""
	}
	return outline.About(time.Duration(q.AgeMS) * time.Millisecond)
}

func rateOf(q *client.Queue) string {
	return outline.RateText(store.Queue{Rate: q.Rate, Per: time.Duration(q.PerMS) * time.Millisecond})
}

// whyInLine says in a few words why the runs of a queue wait: the most frequent reason.
func whyInLine(q *client.Queue) string {
	if q.Paused && len(q.Waits) == 0 {
		return "the queue is paused" + show.Because(q.Reason)
	}
	most := client.QueueWait{}
	for _, w := range q.Waits {
		if w.Runs > most.Runs {
			most = w
		}
	}
	return most.Text
}

// oneQueue reads one queue.
func oneQueue(c *invocation, name string) (target.Target, *client.Queue, error) {
	t, err := c.target()
	if err != nil {
		return nil, nil, err
	}
	list, err := t.Queues(c.ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return t, &list[0], nil
}

func queueShowCommand(a *app) *cobra.Command {
	return a.command(spec{
		use: "show QUEUE", short: "Show a queue, its limits and its partitions", min: 1, max: 1, values: queueNames,
		long: `show prints a queue: its limits and its rate, why its runs wait, and the partitions with
the most runs in line.`,
		example: `  durable queues show emails
  durable queues show emails --json`,
		do: func(c *invocation, args []string) error {
			_, q, err := oneQueue(c, args[0])
			if err != nil {
				return err
			}
			return c.print(q, func() { showQueue(c, q) })
		},
	})
}

func showQueue(c *invocation, q *client.Queue) {
	out := c.out
	title := out.Paint(show.Bold, show.Escape(q.Name))
	if q.Paused {
		title += "  " + out.Paint(show.Yellow, "paused"+show.Escape(show.Because(q.Reason)))
	}
	out.Printf("%s\n", title)
	limit := ""
	if q.MaxPerPartition > 0 {
		limit = fmt.Sprintf(", %d of each partition at most", q.MaxPerPartition)
	}
	out.Printf("Running     %s%s\n", places(q), limit)
	since := ""
	if !q.Oldest.IsZero() {
		since = ", the oldest since " + out.At(store.TimeOf(q.Oldest))
	}
	out.Printf("In line     %d%s\n", q.InLine, since)
	for _, w := range q.Waits {
		out.Printf("  %-9d %s\n", w.Runs, show.Escape(w.Text))
	}
	out.Printf("Later       %d\n", q.Delayed)
	if q.Rate > 0 {
		next := ""
		if !q.NextAt.IsZero() {
			next = ", the next begins at " + out.At(store.TimeOf(q.NextAt))
		}
		out.Printf("Rate        %s; %d in the last one%s\n", rateOf(q), q.Begun, next)
	}
	dead := ""
	if q.Failed > 0 {
		dead = "  List: " + c.self("queues", "dead", q.Name)
	}
	out.Printf("Failed      %d%s\n", q.Failed, dead)
	if len(q.Partitions) > 1 || len(q.Partitions) == 1 && q.Partitions[0].Name != "" {
		rows := show.Table{Head: []string{"PARTITION", "RUNNING", "IN LINE"}, Wide: 0}
		for _, p := range q.Partitions {
			rows.Rows = append(rows.Rows, []string{p.Name, fmt.Sprint(p.Running), fmt.Sprint(p.InLine)})
		}
		out.Table(rows)
	}
	if q.Paused {
		out.Printf("Let it go on: %s\n", c.self("queues", "resume", q.Name))
	}
}

// queueActed is what an act on a queue prints with --json.
type queueActed struct {
	Queue string `json:"queue"`
	Done  string `json:"done"`
}

func queuePauseCommand(a *app) *cobra.Command {
	var reason string
	cmd := a.command(spec{
		use: "pause QUEUE", short: "Keep runs of a queue from getting a place", min: 1, max: 1, values: queueNames,
		long: `pause keeps runs of a queue from getting a place, in all processes and across restarts,
until resume. Those that hold one go on to their end; new ones get in line.`,
		example: `  durable queues pause emails --reason "the provider is down"
  durable queues resume emails`,
		do: func(c *invocation, args []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			if err := t.PauseQueue(c.ctx, args[0], reason); err != nil {
				return err
			}
			return c.print(queueActed{args[0], "paused"}, func() {
				c.out.Printf("Queue %s paused\n", show.Escape(args[0]))
				c.hint("Let it go on: %s", c.self("queues", "resume", args[0]))
			})
		},
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people who look at the queue")
	return cmd
}

func queueResumeCommand(a *app) *cobra.Command {
	return a.command(spec{
		use: "resume QUEUE", short: "Let runs of a paused queue get places again", min: 1, max: 1, values: queueNames,
		example: `  durable queues resume emails
  durable queues show emails`,
		do: func(c *invocation, args []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			if err := t.ResumeQueue(c.ctx, args[0]); err != nil {
				return err
			}
			return c.print(queueActed{args[0], "resumed"}, func() { c.out.Printf("Queue %s resumed\n", show.Escape(args[0])) })
		},
	})
}

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

// retried is what retry prints with --json, one a line.
type retried struct {
	ID      string `json:"id"`
	Queue   string `json:"queue"`
	Done    bool   `json:"done"` // with dry_run: it would be
	Refused string `json:"refused,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
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
				return show.Usage("name one run, or say --all")
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
	return cmd
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
	plan, err := t.Retry(c.ctx, id, dry)
	if err != nil {
		return err
	}
	return c.print(retried{ID: id, Queue: queue, Done: true, DryRun: dry}, func() {
		if dry {
			at, _ := t.Standing(c.ctx, id)
			c.showPlan(c.out, s, at, &plan, false)
			c.out.Printf("Dry run: nothing changed, nothing ran.\n")
			return
		}
		c.out.Printf("Workflow %s is in line of %s again\n", show.Escape(id), show.Escape(queue))
	})
}

func retryAll(c *invocation, t target.Target, queue string, dry bool) error {
	done, refused := 0, 0
	var failed error
	err := t.RetryAll(c.ctx, queue, dry, func(id string, no error) {
		one := retried{ID: id, Queue: queue, Done: no == nil, DryRun: dry}
		if no != nil {
			refused++
			one.Refused = no.Error()
		} else {
			done++
		}
		switch {
		case c.flags.json:
			if err := c.out.JSON(one); err != nil && failed == nil {
				failed = err
			}
		case no != nil:
			c.say("Left %s: %s", show.Escape(id), show.Escape(strings.TrimPrefix(no.Error(), "durable: ")))
		case dry:
			c.out.Printf("%s\n", show.Escape(id))
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if !c.flags.json {
		rest := ""
		if refused > 0 {
			rest = fmt.Sprintf(", %d refused", refused)
		}
		if dry {
			c.out.Printf("Dry run: nothing changed. %s would get in line of %s again%s.\n", show.Plural(done, "run"), show.Escape(queue), rest)
		} else {
			c.out.Printf("%s in line of %s again%s.\n", show.Plural(done, "run"), show.Escape(queue), rest)
		}
	}
	if refused > 0 {
		return show.Quiet(ExitRefused)
	}
	return nil
}
