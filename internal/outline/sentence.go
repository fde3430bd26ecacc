package outline

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/count"
)

// Took returns how long a row took or has taken so far, 0 if it has not begun.
func (o *Outline) Took(r *Row) (d int64, text string) {
	if r.Begin == 0 {
		return 0, ""
	}
	end := r.End
	if r.open() {
		end = o.End
	}
	t := end.Sub(r.Begin)
	if len(r.Attempts) == 1 && r.Attempts[0].Seq != 0 && !r.open() {
		t = r.Attempts[0].Took // clocks of two machines may differ by more
	}
	t = max(t, 0)
	return t.Milliseconds(), Duration(t)
}

// Label describes a row in a few words, to show beside its key: "3 of 5
// attempts", "map, 3 of 3", "approval"; empty for a step that was done at once.
func (r *Row) Label() string {
	switch r.Kind {
	case Step, Undo:
		n := len(r.Attempts)
		switch {
		case r.Edited != nil:
			return "result edited"
		case r.State == Expected:
			return ""
		case r.open() && n > 0:
			return "attempt " + ofMax(r.next(), r.Max)
		case n > 1:
			return attempts(r.Attempts[n-1].N, r.Max)
		case r.Once:
			return "once"
		}
		return ""
	case Map:
		total := r.ItemsDone + r.ItemsFailed
		s := "map, " + count.Number(r.ItemsDone) + " of " + count.Number(max(r.Items, total))
		if r.open() {
			s = "map, " + count.Number(r.ItemsDone) + " done"
		}
		if r.ItemsFailed > 0 {
			s += ", " + count.Number(r.ItemsFailed) + " failed"
		}
		return s
	case Wait, Request:
		if r.Signal != "" && r.Signal != r.Name {
			return "signal " + r.Signal
		}
		return "signal"
	case Approval:
		return "approval"
	case Item:
		return ""
	}
	return string(r.Kind)
}

// Sentence says what happened to a row, for readers who do not see the chart:
// "Completed in attempt 3 of 5, 49.3 s. Attempts 1 and 2 failed. Attempt 3 may
// have been cut off when web-1 was lost."
func (o *Outline) Sentence(r *Row) string {
	var b strings.Builder
	_, took := o.Took(r)
	switch r.State {
	case Expected:
		return "Not begun."
	case Done:
		b.WriteString("Completed")
		if r.Kind == Map && r.ItemsFailed > 0 {
			b.WriteString(", " + count.Of(r.ItemsFailed, "item") + " failed")
		}
	case Failed:
		b.WriteString("Failed")
	case TimedOut:
		b.WriteString("Timed out")
	case Closed:
		b.WriteString("Closed")
	case Waiting:
		b.WriteString("Waiting")
	case Backoff:
		b.WriteString("Between attempts")
	case Stopped:
		b.WriteString("Begun, without an outcome")
	default:
		b.WriteString("Running")
	}
	if n := len(r.Attempts); n > 1 && !r.open() {
		b.WriteString(" in attempt " + ofMax(r.Attempts[n-1].N, r.Max))
	}
	if took != "" {
		b.WriteString(", " + took)
	}
	b.WriteByte('.')
	var failed []string
	for _, a := range r.Attempts {
		switch {
		case a.State == AttemptFailed && len(r.Attempts) > 1:
			failed = append(failed, fmt.Sprint(a.N))
		case a.State == AttemptCut:
			fmt.Fprintf(&b, " Attempt %d may have been cut off when %s was lost.", a.N, o.Lives[a.Life].Name)
		}
	}
	switch {
	case len(failed) == 1:
		b.WriteString(" Attempt " + failed[0] + " failed.")
	case len(failed) > 1:
		b.WriteString(" Attempts " + strings.Join(failed[:len(failed)-1], ", ") + " and " + failed[len(failed)-1] + " failed.")
	}
	if r.Error != "" {
		b.WriteString(" " + OneLine(r.Error, 200))
	}
	if r.Edited != nil {
		b.WriteString(" Its result was edited")
		if r.Edited.By != "" {
			b.WriteString(" by " + r.Edited.By)
		}
		b.WriteByte('.')
	}
	return b.String()
}
