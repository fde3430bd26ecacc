package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

func schedulesCommand(a *app) *cobra.Command {
	g := a.group("schedules", "See, pause, trigger and fill schedules", `schedules lists schedules with their next times, and what became of their last fires.
pause keeps one from firing, trigger starts a run now, backfill starts the runs of a
span that has passed.`, `  durable schedules ls
  durable schedules show nightly
  durable schedules trigger nightly
  durable schedules backfill nightly --from 2026-11-20 --to 2026-11-23 --dry-run`, "schedule")
	g.AddCommand(scheduleListCommand(a), scheduleShowCommand(a), schedulePauseCommand(a), scheduleResumeCommand(a), triggerCommand(a), backfillCommand(a), scheduleRemoveCommand(a))
	return g
}

// scheduleNames lists the names of the schedules, for a shell to offer.
var scheduleNames = firstName(
	func(c *invocation, t target.Target) ([]client.Schedule, error) { return t.Schedules(c.ctx) },
	func(v *client.Schedule) string { return v.Name },
)

func scheduleListCommand(a *app) *cobra.Command {
	return a.command(spec{
		use: "ls", aliases: []string{"list"}, short: "List schedules, their last fires and their next times",
		example: `  durable schedules ls
  durable schedules ls --json`,
		do: func(c *invocation, _ []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			list, err := t.Schedules(c.ctx)
			if err != nil {
				return err
			}
			rows := show.Table{Head: []string{"SCHEDULE", "WORKFLOW", "WHEN", "LAST", "OUTCOME", "NEXT"}, Wide: 2}
			for i := range list {
				s := &list[i]
				if c.flags.json {
					if err := c.out.JSON(s); err != nil {
						return err
					}
					continue
				}
				last, outcome := "", ""
				if len(s.Last) > 0 {
					last, outcome = c.out.At(store.TimeOf(s.Last[0].At)), fireText(&s.Last[0])
				}
				rows.Rows = append(rows.Rows, []string{s.Name, s.Workflow, s.Timetable, last, outcome, nextOf(c, s)})
				tint := ""
				switch {
				case s.Problem != "":
					tint = show.Red
				case s.Paused:
					tint = show.Yellow
				}
				rows.Tint = append(rows.Tint, tint)
			}
			switch {
			case c.flags.json:
			case len(list) == 0:
				c.say("No schedules.")
			default:
				c.out.Table(rows)
			}
			return nil
		},
	})
}

// nextOf says when a schedule fires next. In a list its five times would not fit, so a
// terminal shows the first; a pipe has them all.
func nextOf(c *invocation, s *client.Schedule) string {
	switch {
	case s.Problem != "":
		return "cannot be read"
	case s.Paused:
		return "paused" + show.Because(s.Reason)
	case len(s.Next) == 0:
		return "never"
	case c.out.TTY:
		return c.out.At(store.TimeOf(s.Next[0]))
	}
	var times []string
	for _, at := range s.Next {
		times = append(times, c.out.At(store.TimeOf(at)))
	}
	return strings.Join(times, " ")
}

// fireText says what became of a fire: "completed", "skipped", "3 missed".
func fireText(f *client.ScheduleFire) string {
	switch {
	case f.Status != "":
		return f.Status
	case f.Outcome == "missed" && f.Count > 1:
		return fmt.Sprintf("%d missed", f.Count)
	}
	return f.Outcome
}

func scheduleShowCommand(a *app) *cobra.Command {
	return a.command(spec{
		use: "show SCHEDULE", short: "Show a schedule, its next five times and its last fires", min: 1, max: 1, values: scheduleNames,
		example: `  durable schedules show nightly
  durable schedules show nightly --json`,
		do: func(c *invocation, args []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			list, err := t.Schedules(c.ctx, args[0])
			if err != nil {
				return err
			}
			return c.print(&list[0], func() { showSchedule(c, &list[0]) })
		},
	})
}

func showSchedule(c *invocation, s *client.Schedule) {
	out := c.out
	title := out.Paint(show.Bold, show.Escape(s.Name+"  "+s.Workflow))
	if s.Paused {
		title += "  " + out.Paint(show.Yellow, "paused"+show.Escape(show.Because(s.Reason)))
	}
	out.Printf("%s\n", title)
	if s.Problem != "" {
		out.Printf("%s\n", show.Escape(s.Problem))
		return
	}
	out.Printf("When        %s\n", show.Escape(s.Timetable))
	out.Printf("Policies    overlap %s, missed fires %s\n", show.Escape(s.Overlap), show.Escape(s.Missed))
	out.Printf("Fires       %d started, %d skipped, %d missed, %d refused\n", s.Started, s.Skipped, s.Misses, s.Refused)
	for i, at := range s.Next {
		head := "Next"
		switch {
		case i > 0:
			head = ""
		case s.Paused:
			head = "Would fire"
		}
		out.Printf("%-12s%s\n", head, out.At(store.TimeOf(at)))
	}
	for _, at := range s.Held {
		out.Printf("Waits       %s, for the run before to end\n", out.At(store.TimeOf(at)))
	}
	if len(s.Last) > 0 {
		rows := show.Table{Head: []string{"FIRED", "OUTCOME", "RUN", "WHY"}, Wide: 3}
		for i := range s.Last {
			f := &s.Last[i]
			rows.Rows = append(rows.Rows, []string{out.At(store.TimeOf(f.At)), fireText(f), f.RunID, f.Reason})
		}
		out.Table(rows)
	}
	if s.Paused {
		out.Printf("Let it fire again: %s\n", c.self("schedules", "resume", s.Name))
	}
}

// scheduleActed is what an act on a schedule prints with --json.
type scheduleActed struct {
	Schedule string `json:"schedule"`
	Done     string `json:"done"`
	RunID    string `json:"run_id,omitempty"`
}

// actOnSchedule makes a command that does something to one schedule.
func actOnSchedule(a *app, name, short, long, example string, do func(c *invocation, t target.Target, schedule string) (scheduleActed, string, error)) *cobra.Command {
	s := spec{use: name + " SCHEDULE", short: short, long: long, example: example, values: scheduleNames}
	return actOn(a, s, func(c *invocation, t target.Target, schedule string) (any, func(), error) {
		did, line, err := do(c, t, schedule)
		return did, func() { c.out.Printf("%s\n", line) }, err
	})
}

func schedulePauseCommand(a *app) *cobra.Command {
	var reason string
	cmd := actOnSchedule(a, "pause", "Keep a schedule from firing",
		`pause keeps a schedule from firing, in all processes and across restarts, until resume.
Runs that it has started go on.`, `  durable schedules pause nightly --reason stocktaking
  durable schedules resume nightly`,
		func(c *invocation, t target.Target, name string) (scheduleActed, string, error) {
			return scheduleActed{Schedule: name, Done: "paused"}, fmt.Sprintf("Schedule %s paused", show.Escape(name)), t.PauseSchedule(c.ctx, name, reason)
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people who look at the schedule")
	return cmd
}

func scheduleResumeCommand(a *app) *cobra.Command {
	return actOnSchedule(a, "resume", "Let a paused schedule fire again",
		`resume lets a paused schedule fire again. Times that have passed meanwhile do not fire:
backfill makes up for them.`, `  durable schedules resume nightly
  durable schedules show nightly`,
		func(c *invocation, t target.Target, name string) (scheduleActed, string, error) {
			return scheduleActed{Schedule: name, Done: "resumed"}, fmt.Sprintf("Schedule %s resumed", show.Escape(name)), t.ResumeSchedule(c.ctx, name)
		})
}

func triggerCommand(a *app) *cobra.Command {
	var key string
	cmd := actOnSchedule(a, "trigger", "Start a run of a schedule now",
		`trigger starts a run of a schedule now, whatever its times, pause and policies say. With
--key it can be sent again: the same key is the same run.`, `  durable schedules trigger nightly
  durable schedules trigger nightly --key after-the-outage`,
		func(c *invocation, t target.Target, name string) (scheduleActed, string, error) {
			id, err := t.TriggerSchedule(c.ctx, name, key)
			if err == nil {
				c.hint("Follow it: %s", c.self("watch", id))
				sayUntaken(c, untaken(c, t, id))
			}
			return scheduleActed{Schedule: name, Done: "triggered", RunID: id}, "Started " + show.Escape(id), err
		})
	cmd.Flags().StringVar(&key, "key", "", "makes it idempotent: the same key is the same run")
	return cmd
}

func scheduleRemoveCommand(a *app) *cobra.Command {
	var yes, dryRun bool
	cmd := a.command(spec{
		use: "rm SCHEDULE", short: "Remove a schedule; its runs stay", min: 1, max: 1, values: scheduleNames,
		long: `rm removes a schedule for good. Its runs stay. A program that declares it stores it again
when it opens: take it out of the program first.`,
		example: `  durable schedules rm nightly --dry-run
  durable schedules rm nightly --yes`,
		do: func(c *invocation, args []string) error {
			t, err := c.target()
			if err != nil {
				return err
			}
			list, err := t.Schedules(c.ctx, args[0])
			if err != nil {
				return err
			}
			if dryRun {
				return c.print(scheduleActed{Schedule: args[0], Done: "nothing"}, func() {
					c.out.Printf("%s  %s\nDry run: nothing changed. The schedule would be removed.\n", show.Escape(list[0].Name), show.Escape(list[0].Timetable))
				})
			}
			if err := confirm(c, yes, "Remove schedule %s for good?", args[0]); err != nil {
				return err
			}
			if err := t.DeleteSchedule(c.ctx, args[0]); err != nil {
				return err
			}
			return c.print(scheduleActed{Schedule: args[0], Done: "removed"}, func() { c.out.Printf("Schedule %s removed\n", show.Escape(args[0])) })
		},
	})
	fl := cmd.Flags()
	fl.BoolVar(&yes, "yes", false, "do not ask")
	fl.BoolVar(&dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	return cmd
}

func backfillCommand(a *app) *cobra.Command {
	var from, to string
	var dryRun bool
	cmd := a.command(spec{
		use: "backfill SCHEDULE", short: "Start the runs of a span that has passed", min: 1, max: 1, values: scheduleNames,
		long: `backfill starts a run for each fire time from --from up to --to, without that moment:
those that were missed or skipped, or that lie before the schedule existed. A time whose
run exists is left alone, so it can be done again.`,
		example: `  durable schedules backfill nightly --from 2026-11-20 --to 2026-11-23 --dry-run
  durable schedules backfill nightly --from 2026-11-20T00:00:00Z --to 2026-11-23T00:00:00Z`,
		do: func(c *invocation, args []string) error {
			begin, err := momentOf("from", from)
			if err != nil {
				return err
			}
			end, err := momentOf("to", to)
			if err != nil {
				return err
			}
			t, err := c.target()
			if err != nil {
				return err
			}
			did, err := t.BackfillSchedule(c.ctx, args[0], begin, end, dryRun)
			if err != nil {
				return err
			}
			if err := c.print(did, func() { showBackfill(c, args[0], &did) }); err != nil {
				return err
			}
			if !dryRun && did.Started > 0 {
				sayUntaken(c, untaken(c, t, did.Last))
			}
			if len(did.Refused) > 0 {
				return show.Quiet(ExitRefused)
			}
			return nil
		},
	})
	fl := cmd.Flags()
	fl.StringVar(&from, "from", "", "the beginning of the span: 2026-11-20, or 2026-11-20T02:00:00Z")
	fl.StringVar(&to, "to", "", "its end, which is not in it")
	fl.BoolVar(&dryRun, "dry-run", false, "say what would be started, and start nothing")
	asksNothing(cmd)
	return cmd
}

// momentOf reads a moment that a flag gives.
func momentOf(flag, s string) (time.Time, error) {
	for _, form := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(form, s, time.Local); err == nil {
			return t, nil
		}
	}
	if s == "" {
		return time.Time{}, show.Usage("--%s is missing; write --%s 2026-11-20, or 2026-11-20T02:00:00Z", flag, flag)
	}
	return time.Time{}, show.Usage("--%s %q is not a time; write 2026-11-20, or 2026-11-20T02:00:00Z", flag, s)
}

func showBackfill(c *invocation, name string, did *client.Backfill) {
	for _, id := range slices.Sorted(maps.Keys(did.Refused)) {
		c.say("Refused %s: %s", show.Escape(id), show.Escape(did.Refused[id]))
	}
	there := ""
	if did.Existing > 0 {
		there = fmt.Sprintf(", %d there already", did.Existing)
	}
	if !did.DryRun {
		c.out.Printf("Started %s of %s%s\n", count.Of(did.Started, "run"), show.Escape(name), there)
		return
	}
	switch {
	case did.Started == 1:
		c.out.Printf("%s\n", show.Escape(did.First))
	case did.Started > 1:
		c.out.Printf("%s to %s\n", show.Escape(did.First), show.Escape(did.Last))
	}
	c.out.Printf("Dry run: nothing changed. %s would be started%s.\n", count.Of(did.Started, "run"), there)
}
