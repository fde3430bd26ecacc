package outline

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A cause is the call, or the run, that an error of the engine concerns.
type cause struct {
	Key   string `json:"key"`
	RunID string `json:"run_id"`
}

// causeOf only reads errors it knows: the fields of other errors belong to the user.
func causeOf(f *history.Error) (c cause) {
	_ = json.Unmarshal(f.Value, &c)
	return c
}

// endedGoroutine reports whether the function ended its goroutine instead of returning.
func endedGoroutine(f *history.Error) bool {
	for depth := 0; f != nil && depth < 4; depth++ {
		if f.Sentinel == "durable.ErrGoexit" {
			return true
		}
		if len(f.Causes) == 0 {
			return false
		}
		f = f.Causes[0]
	}
	return false
}

// causesOf returns the calls that an error concerns, the outermost first: if a Map failed because
// a step of an item failed, the Map, the item and the step.
func causesOf(f *history.Error) []cause {
	if f == nil {
		return nil
	}
	var list []cause
	switch f.Type {
	case "durable.StepError", "durable.MapError", "durable.ItemError":
		list = append(list, cause{Key: causeOf(f).Key})
	case "durable.RunError": // from a child
		list = append(list, cause{RunID: causeOf(f).RunID})
	}
	for _, c := range f.Causes {
		if len(list) < 16 {
			list = append(list, causesOf(c)...)
		}
	}
	return list
}

// decode reads what an event says. Unreadable data counts as empty: operate.Operator.Verify
// reports damage. Over HTTP the hashes of edits are replaced by a word that only says that there
// is one, which makes only that field unreadable.
func decode(e *store.Event) any {
	if e.Type == store.ItemCompleted {
		return &history.ItemEnd{} // a hash, which nobody reads here
	}
	said, _ := history.Decode(e)
	return said
}

// actOf returns which executor recorded what was done to the run, for whom and why, as far as an
// event says so, and which calls that has reopened.
func actOf(said any) (executor, by, reason string, reset []string) {
	switch d := said.(type) {
	case *history.End:
		return d.Executor, "", d.Reason, nil
	case *history.Stop:
		return d.Executor, "", d.Reason, d.Reset
	case *history.Act:
		return d.Executor, d.By, d.Reason, d.Reset
	case *history.Recovery:
		return d.Executor, "", d.Reason, d.Reset
	case *history.Cancelling:
		return "", "", d.Reason, nil
	}
	return "", "", "", nil
}

func messageOf(f *history.Error) string {
	if f == nil {
		return ""
	}
	return f.Message
}

func notesOf(recorded map[string]json.RawMessage) []Note {
	if len(recorded) == 0 {
		return nil
	}
	notes := make([]Note, 0, len(recorded))
	for k, v := range recorded {
		notes = append(notes, Note{k, string(v)})
	}
	slices.SortFunc(notes, func(a, b Note) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return notes
}

// kindOf returns the kind of call an event belongs to.
func kindOf(said any) Kind {
	switch d := said.(type) {
	case *history.Timer:
		return Timer
	case *history.WaitBegun:
		if d.Prompt != "" {
			return Approval
		}
		return waitOf(d.Kind)
	case *history.WaitEnd:
		return waitOf(d.Kind)
	case *history.ChildBegun, *history.ChildEnd:
		return Child
	case *history.ItemEnd:
		return Item
	case *history.Won:
		return First
	case *history.Publication:
		return Publish
	case *history.AttributeSet:
		return Attrs
	case *history.Begun:
		return stepOf(d.Kind)
	case *history.StepEnd:
		return stepOf(d.Kind)
	}
	return Step
}

// waitOf returns the kind of a wait, by the kind of call that its events name.
func waitOf(named history.CallKind) Kind {
	if named != "" {
		return Request
	}
	return Wait
}

// stepOf returns the kind of a call that begins and ends as a step does.
func stepOf(named history.CallKind) Kind {
	switch named {
	case history.CallMap:
		return Map
	case history.CallGo:
		return Branch
	case history.CallChild:
		return Child
	}
	return Step
}
