package durabletest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/visible"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A History is what a run has done, as it was recorded when HistoryOf looked. Its methods fail the
// test with the whole of it, as `durable show` prints it.
type History struct {
	RunID  string
	Status store.Status
	// Entries are the durable calls of the run, in the order in which they came to their end; those
	// that are not over are the last ones. Branches, items of a Map and compensations are among them.
	Entries []Entry

	t     testing.TB
	eng   *durable.Engine
	story *outline.Outline
}

// An Entry is one durable call of a run.
type Entry struct {
	Key  string // "items[3]/resize"
	Name string // "resize", also of "resize#2"
	// Kind is the word of listings: "step", "timer", "wait", "approval", "request", "child run",
	// "branch", "map", "item", "first", "published", "attributes", "compensation".
	Kind string
	// State is "done", "failed", "timed out", "closed", "waiting", "running", "backoff" or "stopped".
	State    string
	Attempts int           // that are recorded, of a step
	Error    string        // of the failure
	Took     time.Duration // until now, if it is not over

	outcome int64 // event that ended it; 0: none
}

// HistoryOf reads the history of a run, and fails the test if there is none. The engine need not
// be the one that has executed the run.
func HistoryOf(t testing.TB, eng *durable.Engine, runID string) *History {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also in a Cleanup
	have, err := eng.Store().Load(ctx, runID, store.Cursor{All: true})
	if err != nil {
		t.Fatalf("durabletest: the history of run %q: %v", runID, err)
	}
	executing, _ := eng.Executing(runID)
	executors, _ := eng.Store().Executors(ctx) // who is alive makes the story clearer, no more
	o, err := outline.Of(outline.Input{
		Run: have.Run, Branches: have.Branches, Executors: executors, Executing: executing, Now: store.TimeOf(time.Now()),
	}, have.Events)
	if err != nil {
		t.Fatalf("durabletest: the history of run %q: %v", runID, err)
	}
	h := &History{RunID: runID, Status: store.Status(have.Run.Status), t: t, eng: eng, story: o}
	for _, lane := range o.Lanes {
		outline.Each(lane.Rows, func(r *outline.Row) bool {
			h.add(r)
			return true
		})
	}
	sortEntries(h.Entries)
	return h
}

func (h *History) add(r *outline.Row) {
	if r.State == outline.Expected || r.Kind == outline.Undoing {
		return // declared only; the heading of the compensations
	}
	ms, _ := h.story.Took(r)
	name := r.Name
	if _, n, again := strings.Cut(nameAndNumber(r.Key), "#"); again && !strings.Contains(n, "[") { // not of an item
		name = strings.TrimSuffix(name, "#"+n)
	}
	e := Entry{
		Key: r.Key, Name: name, Kind: string(r.Kind), State: string(r.State), Error: r.Error,
		Took: time.Duration(ms) * time.Millisecond, outcome: r.Outcome,
	}
	if r.Kind == outline.Step || r.Kind == outline.Undo {
		e.Attempts = len(r.Attempts)
		for i := range r.Attempts {
			if r.Error == "" && r.Attempts[i].Error != "" && r.State != outline.Done {
				e.Error = r.Attempts[i].Error
			}
		}
	}
	h.Entries = append(h.Entries, e)
}

// String returns the history as `durable show` prints it.
func (h *History) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n%s\n", visible.Line(h.RunID), visible.Line(h.story.Run.Workflow), h.Status, visible.Line(h.story.Verdict.Text()))
	more := h.story.Print(&b, outline.Style{Escape: visible.Line, At: func(t store.Time) string { return t.Time().UTC().Format("15:04:05.000") }})
	if more > 0 {
		fmt.Fprintf(&b, "  and %d more that are done\n", more)
	}
	return b.String()
}

// Wants fails the test unless all of this happened, in this order. Other things may have happened
// before, between and after.
func (h *History) Wants(wants ...Happening) {
	h.t.Helper()
	from := 0
	for i, w := range wants {
		at := h.find(w, from)
		if at >= 0 {
			from = at + 1
			continue
		}
		why := h.whyNot(w)
		if first := h.find(w, 0); first >= 0 {
			why = fmt.Sprintf("it happened, but before %s", wants[i-1])
		}
		h.t.Errorf("durabletest: run %s: wanted %s; %s\n%s", h.RunID, w, why, h)
		return
	}
}

// WantsOnly is Wants, and fails the test as well if anything else happened.
func (h *History) WantsOnly(wants ...Happening) {
	h.t.Helper()
	for i, w := range wants {
		switch {
		case i >= len(h.Entries):
			h.t.Errorf("durabletest: run %s: wanted %s; nothing happened after %s\n%s", h.RunID, w, h.last(), h)
			return
		case w.differs(h, &h.Entries[i]) != "":
			h.t.Errorf("durabletest: run %s: wanted %s as number %d; %s\n%s", h.RunID, w, i+1, w.differs(h, &h.Entries[i]), h)
			return
		}
	}
	if len(h.Entries) > len(wants) {
		h.t.Errorf("durabletest: run %s: %s, and nothing more was wanted\n%s", h.RunID, h.Entries[len(wants)].what(), h)
	}
}

// WantsNone fails the test if there was a call with one of these names, or keys, however it ended.
func (h *History) WantsNone(names ...string) {
	h.t.Helper()
	for _, name := range names {
		for i := range h.Entries {
			if e := &h.Entries[i]; e.is(name) {
				h.t.Errorf("durabletest: run %s: wanted no %q; %s\n%s", h.RunID, name, e.what(), h)
				return
			}
		}
	}
}

// Result returns what the first call with this name, or key, has returned: the result of a step or
// a child run, the value of a signal. It fails the test if the call has not succeeded, or its result is no T.
func Result[T any](h *History, name string) (v T) {
	h.t.Helper()
	at := h.find(Did(name), 0)
	if at < 0 {
		h.t.Fatalf("durabletest: run %s: the result of %q; %s\n%s", h.RunID, name, h.whyNot(Did(name)), h)
	}
	if err := h.decode(&h.Entries[at], &v); err != nil {
		h.t.Fatalf("durabletest: run %s: the result of %q as a %s: %v\n%s", h.RunID, name, reflect.TypeFor[T](), err, h)
	}
	return v
}

// decode reads the value with which a call ended.
func (h *History) decode(e *Entry, v any) error {
	ctx := context.WithoutCancel(h.t.Context())
	for ev, err := range h.eng.History(ctx, h.RunID) {
		if err != nil {
			return err
		}
		if ev.Seq == e.outcome {
			return operate.On(h.eng).Decode(h.RunID, ev, v)
		}
	}
	return fmt.Errorf("event %d is not on the current branch", e.outcome)
}

// find returns the index of the first entry from an index on that fits; -1: there is none.
func (h *History) find(w Happening, from int) int {
	for i := from; i < len(h.Entries); i++ {
		if w.differs(h, &h.Entries[i]) == "" {
			return i
		}
	}
	return -1
}

// whyNot says what happened in place of w.
func (h *History) whyNot(w Happening) string {
	why := ""
	for i := range h.Entries {
		if e := &h.Entries[i]; e.is(w.name) {
			why = w.differs(h, e)
		}
	}
	if why == "" {
		return "there is no such call"
	}
	return why
}

func (h *History) last() string {
	if len(h.Entries) == 0 {
		return "the beginning"
	}
	return fmt.Sprintf("%q", h.Entries[len(h.Entries)-1].Key)
}
