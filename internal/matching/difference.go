package matching

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A Difference is the first durable call at which the code and the history differ. The
// fields are those of durable.DefinitionChangedError.
type Difference struct {
	RunID    string
	Workflow string
	Scope    string
	Recorded []string
	Ordinal  int
	Call     string
	Source   string
	Detail   string
	Change   string

	RecordedBy Recorder
	Version    string // of the workflow, in the code that is here
}

// String shows both sides around the difference, and says what to do about it.
func (d *Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Definition changed: %s (%s) stopped at call %d, still resumable.\n", d.RunID, d.Workflow, d.Ordinal)
	if d.Scope != "" {
		fmt.Fprintf(&b, "In scope %s:\n", d.Scope)
	}
	width := len("recorded")
	from := max(0, d.Ordinal-3)
	to := min(len(d.Recorded), d.Ordinal+1)
	for _, k := range d.Recorded[min(from, to):to] {
		width = max(width, len(k))
	}
	fmt.Fprintf(&b, "    %-*s   code now\n", width, "recorded")
	for i := from; i < max(to, d.Ordinal); i++ {
		recorded, code, mark := "-", "", " "
		if i < len(d.Recorded) {
			recorded = d.Recorded[i]
		}
		switch {
		case i < d.Ordinal-1:
			code = recorded
		case i == d.Ordinal-1:
			mark = ">"
			code = d.Call
			if code == "" {
				code = "(returned)"
			}
			if d.Source != "" {
				code += "   " + d.Source
			}
		}
		fmt.Fprintf(&b, "%s %d %-*s   %s\n", mark, i+1, width, recorded, code)
	}
	b.WriteString(d.advice())
	return b.String()
}

// sentence says what was edited at the first difference.
func (d *Difference) sentence(recorded string) string {
	what := ""
	switch d.Change {
	case ChangeInserted:
		what = ": it was inserted"
	case ChangeRenamed:
		what = fmt.Sprintf(": %s was renamed", recorded)
	case ChangeInsertedOrRenamed:
		what = fmt.Sprintf(": it was inserted, or %s was renamed", recorded)
		if d.Ordinal == len(d.Recorded) {
			what += " or removed" // the calls after it may not be recorded yet
		}
	case ChangeRemoved:
		what = fmt.Sprintf(": %s was removed", recorded)
	case ChangeReordered:
		what = ": the order was changed"
	case ChangeRemovedOrReordered:
		what = fmt.Sprintf(": %s was removed, or the order was changed", recorded)
	}
	return fmt.Sprintf("%s stands where %s was recorded%s.", d.Call, recorded, what)
}

// advice says what was edited and what to do about it. If the code is the one that recorded the
// call, most likely nothing was edited.
func (d *Difference) advice() string {
	if d.RecordedBy.Same {
		return "The build that recorded this replays it now. So its code decides by something that is not recorded, such as time.Now, math/rand or the order of a map: " +
			"take it from durable.Now, durable.Rand or a step. Or the code was changed, and its build has kept its name:\n" + d.edited()
	}
	return d.edited()
}

// edited says what was edited and what to do about it. Following it heals the run:
// Patched is false for a run that has recorded a call here without its marker,
// whatever was edited.
func (d *Difference) edited() string {
	recorded := ""
	if d.Ordinal-1 < len(d.Recorded) {
		recorded = d.Recorded[d.Ordinal-1]
	}
	goBack := d.goBack()
	// What was inserted has the recorded call after it, which must not be made twice.
	patched := func(change string) string {
		either := fmt.Sprintf("\n  if durable.Patched(ctx, %q) { … as it is now } else { … as it was recorded: %s }", change, recorded)
		inserted := fmt.Sprintf("\n  if durable.Patched(ctx, %q) { … %s }, and %s after it", change, baseOf(d.Call), recorded)
		switch d.Change {
		case ChangeInserted:
			return "Make it legal:" + inserted
		case ChangeInsertedOrRenamed:
			return "Make it legal. If it was inserted:" + inserted + "\nIf not:" + either
		}
		return "Make it legal:" + either
	}
	switch {
	case d.Detail != "":
		return d.Detail + "\n" + goBack
	case d.Call == "":
		return fmt.Sprintf("%s is recorded and the code no longer calls it. Make it legal:\n  if !durable.Patched(ctx, %q) { … as it was recorded: %s }\n%s", recorded, "without-"+baseOf(recorded), recorded, goBack)
	case recorded == "":
		return fmt.Sprintf("%s is not in the history.", d.Call)
	}
	said := d.sentence(recorded)
	if d.Change == ChangeRemoved || d.Change == ChangeReordered || d.Change == ChangeRemovedOrReordered {
		return fmt.Sprintf("%s %s\n%s", said, patched("without-"+baseOf(recorded)), goBack)
	}
	return fmt.Sprintf("%s %s\n%s", said, patched(baseOf(d.Call)), goBack)
}

// goBack says which other code the run fits. If both sides name the same version, and nothing
// else tells them apart, that version would name the code that does not fit as well.
func (d *Difference) goBack() string {
	by := d.RecordedBy
	if by.Version == "" || by.Version != d.Version || by.Build != "" {
		return fmt.Sprintf("Or run this with %s.", by)
	}
	by.Version = ""
	return fmt.Sprintf("Or run this with %s. The code that is here says version %s, too: name changed code durable.Version(…), and keep the old function beside it for the runs that began with it.", by, d.Version)
}

// A Recorder is the code and the executor that recorded a call; the fields are those
// of durable.Recorder.
type Recorder struct {
	Version  string
	Build    string
	Executor string
	At       store.Time
	First    bool
	Same     bool
}

// String names the code: "the code it was started with", or its version and build and
// the executor that had it.
func (r Recorder) String() string {
	var parts []string
	if r.Version != "" {
		parts = append(parts, "version "+r.Version)
	}
	if r.Build != "" {
		parts = append(parts, "build "+r.Build)
	}
	if r.First {
		return strings.Join(append([]string{"the code it was started with"}, parts...), ", ")
	}
	if r.Executor != "" {
		parts = append(parts, fmt.Sprintf("of executor %s, which took the run at %s", r.Executor, r.At.Time().UTC().Format(time.DateTime)))
	}
	if len(parts) == 0 {
		return "the code that recorded it"
	}
	return "the code that recorded it: " + strings.Join(parts, ", ")
}

// recorder returns who had the run when event seq was recorded.
func (r *Run) recorder(seq int64) Recorder {
	c, first := r.Past.HolderAt(seq)
	if c == nil {
		return Recorder{}
	}
	return Recorder{Version: cmp.Or(c.Version, r.Version), Build: c.Build, Executor: c.Name, At: c.At, First: first, Same: c.IsCode(r.Build, r.Executor)}
}
