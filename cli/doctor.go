package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cli/internal/looking"
	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// check is one line of doctor: what was checked, the result, and what to do.
type check struct {
	Name  string `json:"name"`
	State string `json:"state"` // ok, warning, problem
	Text  string `json:"text"`
	Next  string `json:"next,omitempty"`
}

func doctorCommand(a *app) *cobra.Command {
	var quick, all bool
	cmd := a.command(spec{
		use: "doctor", short: "Look for what is wrong with a store",
		long: `doctor looks at the store, its schema, who executes, what is stuck, and whether the
newest runs can be read, or every run with --all. It changes nothing, and exits with 6 when
it finds something, be it a warning.`,
		example: `  durable doctor
  durable doctor --all
  durable stuck`,
		do: func(c *invocation, _ []string) error {
			switch {
			case quick && all:
				return show.Usage("--quick reads no run, and --all reads every one")
			case quick:
				return doctor(c, 0)
			case all:
				return doctor(c, -1)
			}
			return doctor(c, doctorReads)
		},
	})
	cmd.Flags().BoolVar(&quick, "quick", false, "do not read runs")
	cmd.Flags().BoolVar(&all, "all", false, "read every run, which takes a while")
	return cmd
}

const (
	// doctorReads is how many runs are read unless all are.
	doctorReads = 100
	// doctorStuck is how many stuck runs of each kind are looked for.
	doctorStuck = 100
)

// doctor checks a store, and reads that many of its runs; negative: all.
func doctor(c *invocation, reads int64) error {
	var list []check
	add := func(name, state, next, format string, args ...any) {
		list = append(list, check{name, state, fmt.Sprintf(format, args...), next})
	}
	checkSchema(c, add)
	l, err := c.local()
	if err != nil {
		f := c.explain(err)
		if f.Exit == ExitUsage {
			return err
		}
		add("store", "problem", f.Next, "%s", f.Message)
		return unreached(c, list)
	}
	counts, err := l.Store.Count(c.ctx, store.Filter{}, store.ByStatus)
	if err != nil {
		add("store", "problem", "", "%s", err)
		return unreached(c, list)
	}
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	add("store", "ok", "", "%s, %s", storeKind(l.Store), count.Of(total, "run"))
	checkExecutors(c, l, add)
	stuck, err := operate.On(l.Engine).Stuck(c.ctx, doctorStuck)
	switch {
	case err != nil:
		add("stuck", "problem", "", "%s", err)
	case len(stuck) >= doctorStuck:
		add("stuck", "warning", c.self("stuck"), "%s or more cannot go on", count.Of(len(stuck), "run"))
	case len(stuck) > 0:
		add("stuck", "warning", c.self("stuck"), "%s cannot go on", count.Of(len(stuck), "run"))
	default:
		add("stuck", "ok", "", "nothing")
	}
	if reads < 0 {
		reads = total
	}
	if reads > 0 || total == 0 {
		checkIntegrity(c, l, total, reads, add)
	}
	return diagnosis(c, list)
}

type adder func(name, state, next, format string, args ...any)

func checkSchema(c *invocation, add adder) {
	sc, err := openSchema(c)
	if err != nil {
		return // the check of the store says what is wrong, or it has no schema
	}
	p, err := sc.Plan(c.ctx)
	switch {
	case err != nil:
		add("schema", "problem", "", "%s", err)
	case len(p.Steps) > 0:
		add("schema", "warning", c.self("schema", "status"), "version %d; this program needs %d", p.Have, p.Know)
	default:
		add("schema", "ok", "", "%d", p.Have)
	}
}

func checkExecutors(c *invocation, l *target.Local, add adder) {
	executors, err := l.Store.Executors(c.ctx)
	if err != nil {
		add("executors", "problem", "", "%s", err)
		return
	}
	live := 0
	for _, x := range executors {
		if x.Live && x.ID != l.Engine.ID() {
			live++
		}
	}
	left, err := l.Store.Count(c.ctx, store.Filter{Orphaned: true, Statuses: []store.Status{store.Running, store.Resuming}}, "")
	switch {
	case err != nil:
		add("executors", "problem", "", "%s", err)
	case left[""] > 0:
		add("executors", "warning", c.self("sessions", "ls", "--resumable"), "%d live; %s left by a process that is gone", live, count.Of(left[""], "run"))
	default:
		add("executors", "ok", "", "%d live", live)
	}
}

func checkIntegrity(c *invocation, l *target.Local, total, reads int64, add adder) {
	reads = min(reads, total)
	bar := c.bar(reads, "reading runs")
	defer bar.End()
	sound, n := true, int64(0)
	for v, err := range operate.On(l.Engine).VerifyAll(c.ctx, store.Filter{}) {
		if err != nil {
			add("integrity", "problem", "", "%s", err)
			return
		}
		if n++; n > reads && reads < total {
			break
		}
		bar.Add(1)
		corrupt, incompatible := tally(&v)
		switch {
		case corrupt > 0 && v.Events == 0:
			add("integrity", "problem", c.self("checkpoints", "delete", v.RunID, "--dry-run"), "%s: no event is left", v.RunID)
			sound = false
		case corrupt > 0:
			add("integrity", "problem", c.self("checkpoints", "repair", v.RunID), "%s: %d corrupt", v.RunID, corrupt)
			sound = false
		case incompatible > 0:
			add("integrity", "warning", c.self("checkpoints", "validate", v.RunID), "%s: %d cannot be read by this program", v.RunID, incompatible)
			sound = false
		}
	}
	switch {
	case sound && reads < total:
		add("integrity", "ok", c.self("doctor", "--all"), "the newest %d of %s sound", reads, count.Of(total, "run"))
	case sound:
		add("integrity", "ok", "", "%s sound", count.Of(total, "run"))
	}
}

// unreached prints the checks of a store that does not answer.
func unreached(c *invocation, list []check) error {
	err := diagnosis(c, list)
	if f := (*show.Failure)(nil); errors.As(err, &f) && f.Exit == ExitFound {
		return show.Quiet(ExitUnreachable)
	}
	return err
}

// diagnosis prints the checks.
func diagnosis(c *invocation, list []check) error {
	problems, warnings := 0, 0
	for i := range list {
		one := &list[i]
		sign, colour := "✓", show.Green
		switch one.State {
		case "problem":
			sign, colour = "✗", show.Red
			problems++
		case "warning":
			sign, colour = "!", show.Yellow
			warnings++
		}
		if c.flags.json {
			if err := c.out.JSON(one); err != nil {
				return err
			}
			continue
		}
		if !c.out.TTY {
			c.out.Printf("%s\t%s\t%s\t%s\n", one.State, one.Name, show.Escape(one.Text), show.OrDash(one.Next))
			continue
		}
		c.out.Printf("%s %-10s %-30s %s\n", c.out.Paint(colour, sign), one.Name, show.Escape(one.Text), one.Next)
	}
	if problems+warnings == 0 {
		c.hint("Nothing is wrong.")
		return nil
	}
	c.hint("%s, %s", count.Of(problems, "problem"), count.Of(warnings, "warning"))
	return show.Quiet(ExitFound)
}

// storeKind names a store for people.
func storeKind(st store.Store) string {
	kind := looking.Kind(st)
	if p := store.CapabilitiesOf(st).Presence; p != nil && p.PresenceKind() != "" {
		kind += ", presence by " + p.PresenceKind()
	}
	return kind
}
