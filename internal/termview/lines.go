package termview

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// data is what a view needs from an event's Data besides what the Tracker keeps.
type data struct {
	Error  *struct{ Message string } `json:"error"`
	Max    int                       `json:"max"`
	Status store.Status              `json:"status"`
	Items  int                       `json:"items"`
}

func dataOf(ev *store.Event) (d data) {
	// The Tracker has already refused invalid JSON where it matters.
	_ = json.Unmarshal(ev.Data, &d)
	return d
}

func nested(key string) bool { return strings.ContainsAny(key, "/[") }

// tell returns the lines of an event; before is the Standing before it.
func (v *View) tell(ev *store.Event, before operate.Standing) []string {
	switch ev.Type {
	case store.AttributesSet, store.Published, store.FirstWon:
		return nil
	case store.FailuresReset:
		v.headed = map[string]bool{} // calls that run again get their line again
		return nil
	}
	if ev.Key == "" {
		return nil
	}
	if nested(ev.Key) {
		return v.tellNested(ev)
	}
	line := v.outcome(ev, before)
	var lines []string
	if line != "" || ev.Type == store.StepStarted || ev.Type == store.ProgressSaved || opens(ev.Type) {
		lines = v.header(ev.Key, before)
	}
	if line != "" {
		lines = append(lines, line)
	}
	if over(ev) {
		v.head = ""
		if v.running == ev.Key {
			v.running = ""
		}
	}
	return lines
}

// header returns the line of a call that has none yet. A call that is neither
// declared nor a step has no number.
func (v *View) header(key string, before operate.Standing) []string {
	if v.headed[key] {
		v.head = key
		return nil
	}
	v.headed[key], v.head = true, key
	for i, name := range before.Names {
		if name == key {
			return []string{fmt.Sprintf("Executing step %d/%d: %s", i+1, before.Total, Clean(key))}
		}
	}
	kind := callOf(v.tracker.Standing(), key).Kind
	if kind == "" { // the first event that is shown of it is its last, as of a wait that a resumed run had begun
		kind = callOf(before, key).Kind
	}
	if kind != "" && kind != "step" {
		return []string{strings.ToUpper(kind[:1]) + kind[1:] + ": " + Clean(key)}
	}
	n := before.Steps + 1
	return []string{fmt.Sprintf("Executing step %d/%d: %s", n, max(n, before.Total), Clean(key))}
}

func opens(t store.Type) bool {
	return t == store.WaitRequested || t == store.TimerSet || t == store.ChildStarted
}

// over reports whether an event ends its call.
func over(ev *store.Event) bool {
	switch ev.Type {
	case store.StepStarted, store.ProgressSaved, store.AttemptFailed, store.Patched, store.Compensated:
		return false
	}
	return !opens(ev.Type)
}

// outcome returns the line that an event adds below the header; empty: none.
func (v *View) outcome(ev *store.Event, before operate.Standing) string {
	o := v.screen.o
	d := dataOf(ev)
	switch ev.Type {
	case store.StepCompleted:
		took := Took(ev.Took)
		if ev.Attempt == 0 {
			took = ""
		}
		if ev.Attempt > 1 {
			took = attempt(int(ev.Attempt), maxOf(before, ev.Key)) + ", " + took
		}
		return "  " + strings.TrimRight(o.paint(good, "✓")+" "+took, " ")
	case store.AttemptFailed, store.StepFailed:
		return "  " + v.failed(ev, d)
	case store.WaitRequested:
		return v.asks(callOf(v.tracker.Standing(), ev.Key), "")
	case store.SignalReceived:
		word := "answered"
		if v.words.Answered != nil {
			word = Clean(v.words.Answered(*ev))
		}
		return "  " + o.paint(good, "✓") + " " + word
	case store.WaitTimedOut:
		return "  " + o.paint(bad, "✗") + " no answer in time"
	case store.TimerFired:
		return "  " + o.paint(good, "✓")
	case store.TimerSet:
		if at := callOf(v.tracker.Standing(), ev.Key).Until; at > 0 {
			return "  " + o.paint(faint, "…") + " until " + o.clock(at.Time())
		}
	case store.ChildStarted:
		return "  " + o.paint(faint, "…") + " run " + Clean(callOf(v.tracker.Standing(), ev.Key).Child)
	case store.ChildFinished:
		if d.Status != "" && d.Status != store.Completed {
			return "  " + o.paint(bad, "✗") + " " + string(d.Status)
		}
		return "  " + o.paint(good, "✓")
	}
	return ""
}

// failed returns "✗ attempt 1 of 5: bank: 503 (next in 1s)".
func (v *View) failed(ev *store.Event, d data) string {
	var b strings.Builder
	b.WriteString(v.screen.o.paint(bad, "✗"))
	if ev.Attempt > 0 && (d.Max != 1 || ev.Type == store.AttemptFailed) {
		b.WriteString(" " + attempt(int(ev.Attempt), d.Max) + ":")
	}
	if d.Error != nil {
		b.WriteString(" " + Clean(d.Error.Message))
	}
	if ev.Type == store.AttemptFailed {
		if c := callOf(v.tracker.Standing(), ev.Key); c.NextAt > ev.At {
			b.WriteString(" (next in " + pause(c.NextAt.Sub(ev.At)) + ")")
		}
	}
	return b.String()
}

// asks returns the line of a wait; of names its scope, if it is not shown below
// its header.
func (v *View) asks(c operate.Call, of string) string {
	if c.Prompt == "" {
		return ""
	}
	line := "  " + v.screen.o.paint(asking, "?") + " " + of + Clean(c.Prompt)
	if v.words.Answer != nil {
		if cmd := v.words.Answer(c); cmd != "" {
			line += "  Answer: " + Clean(cmd)
		}
	}
	return line
}

// tellNested returns the lines of an event in a branch or item.
func (v *View) tellNested(ev *store.Event) []string {
	name := Clean(ev.Key) + " "
	switch ev.Type {
	case store.ItemCompleted, store.ItemFailed:
		return v.item(ev)
	case store.AttemptFailed, store.StepFailed:
		f := v.failed(ev, dataOf(ev))
		mark, rest, _ := strings.Cut(f, " ")
		return []string{"  " + mark + " " + name + rest}
	case store.WaitRequested:
		if line := v.asks(callOf(v.tracker.Standing(), ev.Key), name); line != "" {
			return []string{line}
		}
	}
	return nil
}

// callOf finds an open call.
func callOf(s operate.Standing, key string) operate.Call {
	for _, c := range s.Open {
		if c.Key == key {
			return c
		}
	}
	return operate.Call{Key: key}
}

func maxOf(s operate.Standing, key string) int { return callOf(s, key).Max }

// clock formats a time of day: on a terminal in its user's zone, otherwise in UTC.
func (o Options) clock(t time.Time) string {
	if o.Redraw || o.Color {
		return t.Local().Format(time.TimeOnly)
	}
	return t.UTC().Format(time.RFC3339)
}

// item returns the line of an item of a Map when it is over: "Processing input
// 3/12: thumbnails[2]". If there are many items, about a hundred get a line.
func (v *View) item(ev *store.Event) []string {
	d := dataOf(ev)
	i := int(ev.Ordinal)
	every := max(d.Items/100, 1)
	if i%every != 0 && i != d.Items && ev.Type == store.ItemCompleted {
		return nil
	}
	of := fmt.Sprint(i)
	if d.Items > 0 { // otherwise they arrive one by one and their number is unknown
		of += fmt.Sprintf("/%d", d.Items)
	}
	line := fmt.Sprintf("Processing input %s: %s", of, Clean(ev.Key))
	if ev.Type == store.ItemFailed {
		line += " " + v.screen.o.paint(bad, "✗")
		if d.Error != nil {
			line += " " + Clean(d.Error.Message)
		}
	}
	return []string{line}
}
