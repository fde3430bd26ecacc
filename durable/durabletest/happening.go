package durabletest

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/outline"
)

// A Happening is something that a History is to show: Did("charge").Attempts(3).
type Happening struct {
	name     string
	states   []outline.State
	attempts int    // 0: any number
	result   *any   // nil: any
	failure  string // a part of the error
}

// Did is a call with this name, or key, that succeeded: a step, a compensation, a child run that is
// done, a sleep that is over, a wait that was answered.
func Did(name string) Happening {
	return Happening{name: name, states: []outline.State{outline.Done}}
}

// Failed is a call that failed, or a wait that nobody answered in time.
func Failed(name string) Happening {
	return Happening{name: name, states: []outline.State{outline.Failed, outline.TimedOut}}
}

// Pending is a call that is not over: a wait for an answer, a sleep, a step under way or between
// two attempts.
func Pending(name string) Happening {
	return Happening{name: name, states: []outline.State{outline.Waiting, outline.Running, outline.Backoff, outline.Stopped}}
}

// Attempts says how many attempts the step took.
func (w Happening) Attempts(n int) Happening {
	w.attempts = n
	return w
}

// Result says what the call returned: the result of a step, the value of a signal. It is compared by
// reflect.DeepEqual with what is recorded, read as the type of v.
func (w Happening) Result(v any) Happening {
	w.result = &v
	return w
}

// Error says what the error contains.
func (w Happening) Error(text string) Happening {
	w.failure = text
	return w
}

func (w Happening) String() string {
	var b strings.Builder
	switch w.states[0] {
	case outline.Done:
		fmt.Fprintf(&b, "%q done", w.name)
	case outline.Failed:
		fmt.Fprintf(&b, "%q failed", w.name)
	default:
		fmt.Fprintf(&b, "%q not over", w.name)
	}
	if w.attempts > 0 {
		fmt.Fprintf(&b, " in attempt %d", w.attempts)
	}
	if w.result != nil {
		fmt.Fprintf(&b, " with %+v", *w.result)
	}
	if w.failure != "" {
		fmt.Fprintf(&b, " with %q", w.failure)
	}
	return b.String()
}

// differs says how e is something else; empty: it is what is wanted.
func (w Happening) differs(h *History, e *Entry) string {
	switch {
	case !e.is(w.name), !slices.Contains(w.states, outline.State(e.State)), w.attempts > 0 && e.Attempts != w.attempts,
		w.failure != "" && !strings.Contains(e.Error, w.failure):
		return e.what()
	case w.result == nil:
		return ""
	}
	typ := reflect.TypeOf(*w.result)
	if typ == nil {
		return e.what() + "; a Result needs a type"
	}
	got := reflect.New(typ)
	if err := h.decode(e, got.Interface()); err != nil {
		return fmt.Sprintf("%s, and its result is no %s: %v", e.what(), typ, err)
	}
	if !reflect.DeepEqual(got.Elem().Interface(), *w.result) {
		return fmt.Sprintf("%s, and its result is %+v", e.what(), got.Elem().Interface())
	}
	return ""
}

func (e *Entry) is(name string) bool { return e.Name == name || e.Key == name }

// what says what happened: `"charge" failed in attempt 3: declined`.
func (e *Entry) what() string {
	s := fmt.Sprintf("%s %q is %s", e.Kind, e.Key, e.State)
	if e.Attempts > 1 {
		s += fmt.Sprintf(" in attempt %d", e.Attempts)
	}
	if e.Error != "" {
		s += ": " + outline.OneLine(e.Error, 200)
	}
	return s
}

// sortEntries puts them in the order of their outcomes, those without one at the end.
func sortEntries(all []Entry) {
	end := func(e Entry) int64 {
		if e.outcome == 0 {
			return math.MaxInt64
		}
		return e.outcome
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(end(a), end(b)) })
}
