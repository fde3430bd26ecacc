package cli

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/internal/termview"
	"github.com/holdfast-dev/holdfast/operate"
)

// planView is a plan as --json prints it.
type planView struct {
	ID       string   `json:"id"`
	Workflow string   `json:"workflow"`
	Status   string   `json:"status"` // in which the run was found
	Step     int      `json:"step"`
	Steps    int      `json:"steps"`
	Key      string   `json:"key,omitempty"`
	Attempt  int      `json:"attempt,omitempty"`
	Attempts int      `json:"max_attempts,omitempty"`
	From     int64    `json:"from"`
	Branch   int32    `json:"branch"`
	New      bool     `json:"new_branch"`
	Skipped  []string `json:"skipped"`
	Again    []string `json:"re_executed"`
	ToRun    []string `json:"to_run"`
	Reset    []string `json:"reset"`
	Warnings []string `json:"warnings"`

	Unchecked string `json:"unchecked,omitempty"` // why it is not known whether the code fits the history
	Ends      string `json:"ends,omitempty"`      // the error with which it ends at once
}

func planOf(s *target.Run, p *operate.Plan) planView {
	v := planView{
		ID: s.ID, Workflow: s.Workflow, Status: string(p.Status), Step: p.Step, Steps: p.Steps, Key: p.Next.Key, Attempt: p.Next.Attempt,
		From: p.From, Branch: p.Branch, New: p.NewBranch,
		Skipped: show.List(p.Skipped), Reset: show.List(p.Reset), Warnings: flags(p.Warnings), Unchecked: p.Unchecked, Ends: p.Ends,
	}
	if s.Key == p.Next.Key {
		v.Attempts = s.Attempts
	}
	again := p.Again
	if p.Next.Key != "" && p.Next.Attempt > 1 && !p.Next.Failed && !slices.Contains(again, p.Next.Key) {
		again = append([]string{p.Next.Key}, again...)
	}
	v.Again = show.List(again)
	v.ToRun = []string{}
	for _, name := range s.Declared {
		if !slices.Contains(p.Skipped, name) && !slices.Contains(again, name) {
			v.ToRun = append(v.ToRun, name)
		}
	}
	return v
}

// flags are warnings of the library with the names that its options have here.
func flags(warnings []string) []string {
	list := make([]string, len(warnings))
	for i, w := range warnings {
		list[i] = show.Flags(w)
	}
	return list
}

// showPlan prints where a run goes on, what is skipped and what runs.
func (c *invocation) showPlan(s *show.Stream, sess *target.Run, at operate.Standing, p *operate.Plan, verbose bool) {
	shown := *p
	shown.Warnings = flags(p.Warnings)
	for _, line := range termview.Resumption(shown, at, s.View()) {
		s.Printf("%s\n", line)
	}
	for _, id := range p.First {
		s.Printf("  first        %s\n", c.self("resume", id))
	}
	if !verbose {
		return
	}
	for _, line := range p.Details() {
		s.Printf("    %s\n", show.Escape(line))
	}
	if sess.Info != nil {
		for _, line := range sess.Info.Differences {
			s.Printf("    %s\n", show.Escape(line))
		}
	}
}

// endDryRun ends what a dry run prints. Whether code fits is only seen by a program that has it.
func endDryRun(c *invocation, s *target.Run) {
	c.out.Printf("Dry run: nothing changed, nothing ran.\n")
	if l, isLocal := c.to.(*target.Local); isLocal && !l.Serves(c.ctx, s.Workflow, s.Version) {
		c.say("This program lacks the code of %s: whether that code fits is seen by one that has it.", show.Escape(s.Workflow))
	}
}

// names lists keys; on a terminal only the first few of many.
func (c *invocation) names(s *show.Stream, keys []string) string {
	const most = 12
	shown := keys
	if s.TTY && len(keys) > most {
		shown = keys[:most]
	}
	line := show.Escape(strings.Join(shown, ", "))
	if len(shown) < len(keys) {
		line += ", and more: --verbose"
	}
	return line
}
