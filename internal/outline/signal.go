package outline

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
)

// Listening returns the waits that a signal of this name is for, oldest first, and the names of
// the signals that the run waits for now, in order.
func (o *Outline) Listening(name string) (open []*Row, names []string) {
	for _, r := range o.Waits {
		if r.Kind != Wait && r.Kind != Approval {
			continue
		}
		if !slices.Contains(names, r.Signal) {
			names = append(names, r.Signal)
		}
		if r.Signal == name || history.WaitKey(r.Key, o.Run.Branch) == name {
			open = append(open, r)
		}
	}
	slices.Sort(names)
	return open, names
}

// TakesNothing reports whether a wait is known to take a signal without a value: one for a
// struct without fields.
func (r *Row) TakesNothing() bool { return string(r.Sample) == "{}" }

// Kept says of a signal that no wait is for that it is kept, and what the run waits for instead;
// empty: there is a wait for it.
func (o *Outline) Kept(name string) Text {
	open, names := o.Listening(name)
	if len(open) > 0 {
		return nil
	}
	t := say(code(o.Run.ID), " does not wait for ", code(name), " at the moment: the signal is kept until it does. It waits for no signal now.")
	if len(names) > 0 {
		t[len(t)-1].Text = " at the moment: the signal is kept until it does. Now it waits for "
		for i, n := range names {
			switch {
			case i > 0 && i == len(names)-1:
				t = append(t, say(" and ")...)
			case i > 0:
				t = append(t, say(", ")...)
			}
			t = append(t, code(n))
		}
		t = append(t, say(".")...)
	}
	return t
}
