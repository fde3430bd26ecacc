package operate

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Plan says what a resume, a jump, an edit or a fork does, or with DryRun would do.
type Plan struct {
	RunID    string // for a fork: that of the source
	Workflow string
	Status   store.Status // in which the run was found

	// From is the last event of the history that is kept; with Scope, only what is in
	// that branch or item is left behind.
	From  int64
	Scope string
	// Branch is the one the run goes on; a new one if NewBranch.
	Branch    int32
	NewBranch bool

	// Skipped lists the steps that do not run again, because their outcomes are in the
	// kept history, in the order in which they were done.
	Skipped []string
	// Again lists the steps that have an outcome now and run again, and the calls of
	// ended children that are replaced by new ones.
	Again []string
	// Edited lists the calls whose outcome is replaced, by Edit or by a Fork with
	// Edits.
	Edited []string
	// Reset lists the calls whose failures no longer count: the steps among them have
	// all their attempts again.
	Reset []string
	// Next is where execution goes on.
	Next ResumePoint

	// Step is the number of the step that runs next, from 1, and Steps how many
	// there are. If the workflow declares its names with Steps, Declared is true and
	// Steps is their number. Otherwise Steps is the highest known count: of this run's
	// recorded steps, of the one to run, and of the steps of the last completed run of
	// the same workflow and version.
	Step, Steps int
	Declared    bool

	// Left is what is in progress now and is left behind.
	Left []LeftBehind
	// Unchecked says why it is unknown whether the code fits the history that the run
	// goes on with, for example because this program lacks the code; empty: it fits.
	// Only Resume checks.
	Unchecked string
	// Ends is the error with which the run ends at once, because nothing is left to
	// run; empty: something is left, or that is unknown.
	Ends string
	// First lists the failed child runs that made this run fail: it fails again at once
	// unless they are resumed before it.
	First []string
	// Warnings say what a person should know before acting.
	Warnings []string
}

// LeftBehind is a child, timer or wait that a new branch leaves behind.
type LeftBehind struct {
	Kind  string // "child run", "sleep" or "wait"
	Key   string // of the call
	Child string // run id of a child
	// Kept: the child goes on, because it was started with Abandon, or because the
	// workflow chose its id and will find it again under that id.
	Kept bool
}

// String returns the line that is shown when a run is resumed: "Resuming from
// step 3 of 7".
func (p Plan) String() string {
	if p.Step == 0 {
		return "Resuming"
	}
	return fmt.Sprintf("Resuming from step %d of %d", p.Step, p.Steps)
}

// Details returns what else a person should know, beyond the first line: one line for
// each call that is skipped, run again, reset or left behind, and for each warning.
func (p Plan) Details() []string {
	var lines []string
	if p.NewBranch {
		where := ""
		if p.Scope != "" {
			where = " in " + p.Scope
		}
		lines = append(lines, fmt.Sprintf("branch %d is made behind event %d%s", p.Branch, p.From, where))
	}
	add := func(what string, keys []string) {
		for _, k := range keys {
			lines = append(lines, what+" "+k)
		}
	}
	add("skip", p.Skipped)
	add("run again", p.Again)
	add("take another result of", p.Edited)
	add("reset", p.Reset)
	for _, l := range p.Left {
		line := "leave behind " + l.Kind + " " + l.Key
		if l.Child != "" {
			line += " (run " + l.Child + ")"
		}
		if l.Kept {
			line += ", which goes on"
		}
		lines = append(lines, line)
	}
	if at := p.Next.String(); at != "" {
		lines = append(lines, "go on "+at)
	}
	add("warning:", p.Warnings)
	if p.Unchecked != "" {
		lines = append(lines, "not checked whether the code fits: "+p.Unchecked)
	}
	return lines
}

// ResumePoint is where the execution of a run goes on.
type ResumePoint struct {
	// Key of the durable call; empty when no call is in progress and the name of the
	// next one is unknown, because the workflow declares no Steps.
	Key string
	// Kind of the call: "step", "sleep", "wait", "child run", "branch", "map"; empty
	// for a call that has not begun.
	Kind string
	// Attempt to be made, from 1; 0 for anything but a step.
	Attempt int
	// After is the key of the call whose outcome was recorded last; empty: none.
	After string
	// Failed: the call has failed for good. Its error is returned again, unless
	// its failures are reset.
	Failed bool
}

// String describes the point for a person: "at charge, attempt 3".
func (p ResumePoint) String() string {
	var b strings.Builder
	switch {
	case p.Key != "":
		b.WriteString("at " + p.Key)
		if p.Attempt > 0 {
			fmt.Fprintf(&b, ", attempt %d", p.Attempt)
		}
		if p.Failed {
			b.WriteString(", which has failed for good")
		}
	case p.After != "":
		b.WriteString("behind " + p.After)
	default:
		b.WriteString("at the beginning")
	}
	return b.String()
}

// pointOf finds the resume point of a history; declared holds the names given to Steps.
func pointOf(p *history.Past, declared []string) ResumePoint {
	at, open := openIn(p, "")
	var latest int64
	for _, calls := range p.Scopes {
		for _, rec := range calls {
			if rec.Outcome.Seq > latest {
				latest, at.After = rec.Outcome.Seq, rec.Key
			}
		}
	}
	for _, items := range p.Items {
		for _, ev := range items {
			if ev.Seq > latest {
				latest, at.After = ev.Seq, ev.Key
			}
		}
	}
	if open {
		return at
	}
	if calls := p.Scopes[""]; len(calls) > 0 {
		if rec := calls[len(calls)-1]; rec.Kind == history.CallStep && rec.Outcome.Type == store.StepFailed {
			at.Key, at.Kind, at.Attempt, at.Failed = rec.Key, string(rec.Kind), int(rec.Outcome.Attempt), true
			return at
		}
	}
	for _, name := range declared {
		if p.Call(history.EscapeName(name)) == nil {
			at.Key, at.Attempt = history.EscapeName(name), 1
			break
		}
	}
	return at
}

// openIn returns the first call of a scope that has begun and not ended, or what
// is in progress inside that call.
func openIn(p *history.Past, path string) (ResumePoint, bool) {
	for _, rec := range p.Scopes[path] {
		if rec.Outcome.Seq != 0 {
			continue
		}
		at := ResumePoint{Key: rec.Key, Kind: string(rec.Kind)}
		switch rec.Kind {
		case history.CallStep:
			at.Attempt = len(rec.Failures) + 1
		case history.CallGo:
			if inner, ok := openIn(p, rec.Key); ok {
				return inner, true
			}
		case history.CallMap:
			for n := range p.MostScopes(rec.Key) {
				if p.Items[rec.Key][n] != nil {
					continue
				}
				if inner, ok := openIn(p, history.ItemKey(rec.Key, n)); ok {
					return inner, true
				}
			}
		}
		return at, true
	}
	return ResumePoint{}, false
}

// count fills in the numbers of the plan; known is the highest step count known from
// elsewhere.
func (pl *Plan) count(p *history.Past, declared []string, done, known int) {
	if len(declared) == 0 {
		pl.Step = done + 1
		pl.Steps = max(pl.Step, known)
		return
	}
	pl.Declared, pl.Steps = true, len(declared)
	pl.Step = len(declared)
	for i, name := range declared {
		if rec := p.Call(history.EscapeName(name)); rec == nil || rec.Outcome.Seq == 0 {
			pl.Step = i + 1
			break
		}
	}
}
