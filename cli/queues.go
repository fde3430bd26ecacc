package cli

import (
	"fmt"
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
var queueNames = firstName(
	func(c *invocation, t target.Target) ([]client.Queue, error) { return t.Queues(c.ctx) },
	func(v *client.Queue) string { return v.Name },
)

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
	cmd := actOn(a, spec{
		use: "pause QUEUE", short: "Keep runs of a queue from getting a place", values: queueNames,
		long: `pause keeps runs of a queue from getting a place, in all processes and across restarts,
until resume. Those that hold one go on to their end; new ones get in line.`,
		example: `  durable queues pause emails --reason "the provider is down"
  durable queues resume emails`,
	}, func(c *invocation, t target.Target, name string) (any, func(), error) {
		return queueActed{name, "paused"}, func() {
			c.out.Printf("Queue %s paused\n", show.Escape(name))
			c.hint("Let it go on: %s", c.self("queues", "resume", name))
		}, t.PauseQueue(c.ctx, name, reason)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people who look at the queue")
	return cmd
}

func queueResumeCommand(a *app) *cobra.Command {
	return actOn(a, spec{
		use: "resume QUEUE", short: "Let runs of a paused queue get places again", values: queueNames,
		example: `  durable queues resume emails
  durable queues show emails`,
	}, func(c *invocation, t target.Target, name string) (any, func(), error) {
		return queueActed{name, "resumed"}, func() { c.out.Printf("Queue %s resumed\n", show.Escape(name)) }, t.ResumeQueue(c.ctx, name)
	})
}

// actOn makes a command that does something to one queue or schedule, and prints what it did.
func actOn(a *app, s spec, do func(c *invocation, t target.Target, name string) (did any, say func(), err error)) *cobra.Command {
	s.min, s.max = 1, 1
	s.do = func(c *invocation, args []string) error {
		t, err := c.target()
		if err != nil {
			return err
		}
		did, say, err := do(c, t, args[0])
		if err != nil {
			return err
		}
		return c.print(did, say)
	}
	return a.command(s)
}
