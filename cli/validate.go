package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func (v *eventView) took() time.Duration { return time.Duration(v.TookMS) * time.Millisecond }

// tally counts the findings that a resume would meet.
func tally(v *operate.Verification) (corrupt, incompatible int) {
	for _, f := range v.Findings {
		switch {
		case f.Behind:
		case f.Kind == operate.FoundCorrupt:
			corrupt++
		case f.Kind == operate.FoundIncompatible:
			incompatible++
		}
	}
	return corrupt, incompatible
}

// finding is one as --json prints it.
type finding struct {
	Run         string `json:"run"`
	ID          int64  `json:"id,omitempty"`
	Step        string `json:"step,omitempty"`
	Kind        string `json:"kind"` // corrupt, incompatible, orphan
	Part        string `json:"part"`
	Text        string `json:"text"`
	Behind      bool   `json:"left_behind,omitempty"`
	NewestValid int64  `json:"newest_valid,omitempty"`
}

func checkpointsValidate(a *app) *cobra.Command {
	return a.command(spec{
		use: "validate [ID]", short: "Check what is recorded of a run, or of all", max: 1, ids: true,
		long: `validate reads a run, or all, and says what is wrong: checkpoints that are not what was
written (corrupt), and such as this program cannot read (incompatible), each with the
newest valid one before it. It changes nothing, and exits with 6 when it finds something.`,
		example: `  durable checkpoints validate order-42
  durable checkpoints validate
  durable checkpoints repair order-42`,
		do: func(c *invocation, args []string) error { return validate(c, args) },
	})
}

func validate(c *invocation, args []string) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	f := store.Filter{IDs: args}
	counts, err := l.Store.Count(c.ctx, f, "")
	if err != nil {
		return err
	}
	if len(args) > 0 && counts[""] == 0 {
		return show.UnknownRun(args[0], c.commands)
	}
	bar := c.bar(counts[""], "reading runs")
	defer bar.End()
	var sound, corrupt, incompatible int
	mend := ""
	for v, err := range operate.On(l.Engine).VerifyAll(c.ctx, f) {
		if err != nil {
			return err
		}
		bar.Add(1)
		bad, foreign := tally(&v)
		if sound += v.Events; len(v.Findings) > 0 {
			bar.End()
			n, err := findings(c, l, &v)
			if err != nil {
				return err
			}
			sound -= min(n, v.Events)
		}
		switch {
		case bad == 0 || mend != "":
		case v.Events == 0:
			mend = c.self("checkpoints", "delete", v.RunID, "--dry-run")
		default:
			mend = c.self("checkpoints", "repair", v.RunID)
		}
		corrupt, incompatible = corrupt+bad, incompatible+foreign
	}
	bar.End()
	if !c.flags.json {
		line := fmt.Sprintf("%d ok, %d corrupt, %d incompatible.", sound, corrupt, incompatible)
		if mend != "" {
			line += " Mend: " + mend
		}
		c.say("%s", line)
	}
	if corrupt+incompatible > 0 {
		return show.Quiet(ExitFound)
	}
	return nil
}

// findings prints what is wrong with one run, and returns how many of its events are
// affected.
func findings(c *invocation, l *target.Local, v *operate.Verification) (events int, err error) {
	list, err := checkpointsOf(c, l, v.RunID, true)
	if err != nil {
		return 0, err
	}
	seen := map[int64]bool{}
	for _, f := range v.Findings {
		if f.Kind != operate.FoundOrphan && f.Part != operate.PartRow && f.Part != operate.PartBranch && f.Part != operate.PartMessage && !seen[f.Seq] {
			seen[f.Seq] = true
			events++
		}
		one := finding{Run: v.RunID, ID: f.Seq, Step: f.Key, Kind: string(f.Kind), Part: string(f.Part), Text: f.Text, Behind: f.Behind, NewestValid: newestValid(list, f.Seq)}
		if c.flags.json {
			if err := c.out.JSON(one); err != nil {
				return 0, err
			}
			continue
		}
		what := one.Part
		for _, p := range list {
			if p.ID == f.Seq && f.Part != operate.PartMessage {
				what = strings.TrimSpace(show.OrElse(p.Step, p.Type) + show.AttemptSuffix(p.Attempt))
			}
		}
		text := fmt.Sprintf("%s: %s", one.Kind, one.Text)
		if f.Kind == operate.FoundCorrupt && one.NewestValid > 0 && !f.Behind {
			text += fmt.Sprintf("; newest valid: %d", one.NewestValid)
		}
		if f.Behind {
			text += " (left behind: no resume reads it)"
		}
		if c.out.TTY {
			c.out.Printf("%s%s  %s  %s\n", ofRun(c, v.RunID), show.OrDash(show.Number(f.Seq)), show.Escape(what), show.Escape(text))
		} else {
			c.out.Printf("%s\t%s\t%s\t%s\n", show.Escape(v.RunID), show.OrDash(show.Number(f.Seq)), show.Escape(what), show.Escape(text))
		}
	}
	if v.More > 0 {
		c.say("%s: and %d more", show.Escape(v.RunID), v.More)
	}
	return events, nil
}

// ofRun names the run before its findings, where several runs are checked.
func ofRun(c *invocation, id string) string {
	if c.cmd.Flags().NArg() > 0 {
		return ""
	}
	return show.Escape(id) + "  "
}

// newestValid returns the last sound checkpoint before a number.
func newestValid(list []checkpoint, before int64) int64 {
	newest := int64(0)
	for _, p := range list {
		if p.ID < before && p.Status == "ok" && !target.Bookkeeping(store.Type(p.Type)) {
			newest = p.ID
		}
	}
	return newest
}

func checkpointsRepair(a *app) *cobra.Command {
	var dryRun, force bool
	cmd := a.command(spec{
		use: "repair ID", short: "Set a damaged tail aside, and continue before it", min: 1, max: 1, ids: true,
		long: `repair sets aside what cannot be believed: a new branch begins after the last stable
checkpoint before the damage. Nothing is deleted. Steps whose outcomes were set aside run
again, with the same idempotency keys.`,
		example: `  durable checkpoints repair order-42 --dry-run
  durable checkpoints repair order-42
  durable resume order-42`,
		do: func(c *invocation, args []string) error {
			return repair(c, args[0], operate.RepairOptions{DryRun: dryRun, Force: force})
		},
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and do nothing")
	asksNothing(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also when an effect that must happen once may happen again")
	return cmd
}

// repaired is what repair prints with --json.
type repaired struct {
	Run    string   `json:"run"`
	DryRun bool     `json:"dry_run,omitempty"`
	Branch int32    `json:"branch"`
	Cutoff int64    `json:"cutoff"`
	Again  []string `json:"runs_again"`
	Did    []string `json:"did"`
}

func repair(c *invocation, id string, o operate.RepairOptions) error {
	l, err := c.local()
	if err != nil {
		return err
	}
	before, err := l.Run(c.ctx, id)
	if err != nil {
		return err
	}
	if before.RowOnly {
		return show.NoHistory(id, c.commands)
	}
	r, err := operate.On(l.Engine).Repair(c.ctx, id, o)
	if err != nil {
		f := c.explain(l.Lost(id, err))
		if no := (*operate.UnrepairableError)(nil); errors.As(err, &no) && no.Forceable {
			f.Message = fmt.Sprintf("run %s cannot be repaired without --force: %s", no.RunID, no.Reason)
			f.Next = "See what that would do: " + c.self("checkpoints", "repair", id, "--force", "--dry-run")
		}
		return f
	}
	apply := []string{"checkpoints", "repair", id}
	if o.Force {
		apply = append(apply, "--force")
	}
	return c.print(repaired{id, r.DryRun, r.Branch, r.Cutoff, show.List(r.Again), show.List(r.Did)}, func() {
		switch {
		case len(r.Did) == 0:
			c.out.Printf("%s is sound; there was nothing to do.\n", show.Escape(id))
		case r.DryRun:
			for _, line := range r.Did {
				c.out.Printf("%s\n", show.Escape(line))
			}
			c.out.Printf("Runs again: %s.\nDry run: nothing changed. Apply: %s\n", c.names(c.out, show.OrNothing(r.Again)), c.self(apply...))
		case r.Cutoff > 0 || r.Branch != int32(before.Branch):
			c.out.Printf("Recovered workflow %s: %s. Created branch %d from event %d\n", show.Escape(id), show.Escape(causeOf(&r)), r.Branch, r.Cutoff)
			afterRepair(c, l, id, before, &r)
		default:
			for _, line := range r.Did {
				c.out.Printf("%s\n", show.Escape(line))
			}
		}
	})
}

// causeOf says what was wrong, in a few words.
func causeOf(r *operate.Repaired) string {
	for _, f := range r.Before.Findings {
		if f.Kind == operate.FoundCorrupt && !f.Behind && f.Seq > 0 {
			return fmt.Sprintf("corrupt checkpoint %d", f.Seq)
		}
	}
	return strings.Join(r.Did, "; ")
}

// afterRepair says what a repair left behind, and where the run goes on.
func afterRepair(c *invocation, l *target.Local, id string, before *target.Run, r *operate.Repaired) {
	var left []string
	if list, err := checkpointsOf(c, l, id, true); err == nil {
		for _, p := range list {
			if p.ID > r.Cutoff && p.Branch == before.Branch {
				left = append(left, show.Number(p.ID))
			}
		}
	}
	line := ""
	if len(left) > 0 {
		line = fmt.Sprintf("Left on branch %d: %s. ", before.Branch, c.names(c.out, left))
	}
	switch at, goesOn, err := operate.On(l.Engine).ResumePoint(c.ctx, id); {
	case err != nil || !goesOn:
	case at.Key != "":
		line += "Next: " + show.Escape(at.Key)
		if at.Attempt > 1 {
			of := 0
			if s, err := l.Run(c.ctx, id); err == nil && s.Key == at.Key {
				of = s.Attempts
			}
			line += ", " + show.AttemptOf(at.Attempt, of)
		}
		line += "."
	case at.After != "":
		line += "It goes on after " + show.Escape(at.After) + "."
	}
	if line != "" {
		c.out.Printf("%s\n", line)
	}
}
