package durable

import (
	"context"
	"fmt"
	"maps"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// The limits of attributes. Names are limited like all names: store.MaxName.
const (
	// MaxAttributes is how many a run may have.
	MaxAttributes = 64
	// MaxAttributeValue is the largest size of a value, in bytes.
	MaxAttributeValue = 1 << 10
)

// Attributes sets values by which runs can be searched; an empty value is not
// set. SetAttributes says which limits they have, and changes them while the
// run lives.
func Attributes(a map[string]string) StartOption {
	return func(o *startOptions) {
		if o.attributes == nil {
			o.attributes = map[string]string{}
		}
		maps.Copy(o.attributes, a)
		maps.DeleteFunc(o.attributes, func(_, value string) bool { return value == "" })
	}
}

// SetAttributes changes the values by which the run can be searched: each value
// of set replaces the one with its name, an empty value removes the name, and
// the others stay as they are. The change is durable when SetAttributes
// returns, and costs one write, in which row and history change together. A
// replay changes nothing.
//
// It is a durable call of a workflow function, branch or item. A run has at
// most MaxAttributes, with names like those of steps and values of at most
// MaxAttributeValue bytes of UTF-8 without control characters; anything else is
// refused with an error that matches ErrInvalid. Whether there are too many is
// decided by the attributes of that moment, and recorded.
func SetAttributes(ctx context.Context, set map[string]string) error {
	s, err := scopeOf(ctx, "attributes")
	if err != nil {
		return err
	}
	if err := checkAttributes(set); err != nil {
		return fmt.Errorf("durable: SetAttributes in run %s: %w", s.run.id, err)
	}
	var c call
	if err := s.begin(&c, "attributes", history.CallAttributes); err != nil {
		return err
	}
	defer s.end()
	r := s.run
	if c.done() {
		s.lastAt = c.rec.LastAt
		d, err := history.Of[history.AttributeSet](&c.rec.Outcome)
		if err != nil {
			return r.damaged(c.rec.Outcome.Seq, err)
		}
		return r.eng.program.errors.Restore(d.Error)
	}
	if err := s.stopped(); err != nil {
		return err
	}
	// Branches may be here at the same time. The set is made when the write is
	// given its place in the log, so that each builds on the one before it.
	var refused *history.Error
	w := &commit.Write{Compose: func(w *commit.Write) {
		next, d := r.decided.mergeAttributes(set), &history.AttributeSet{}
		if len(next) > MaxAttributes {
			refused = r.eng.program.errors.Record(fmt.Errorf("durable: SetAttributes in run %s: it would have %d attributes; at most %d are allowed: %w", r.id, len(next), MaxAttributes, ErrInvalid))
			d.Error, next = refused, r.decided.attributes
		} else {
			r.decided.attributes = next
			w.Row = &store.RowPatch{Attributes: next}
		}
		d.Attributes = next
		w.Events[0].Data = history.Encode(d)
	}}
	if _, err := s.recordWith(&c, store.Event{Type: store.AttributesSet}, w); err != nil {
		return err
	}
	return r.eng.program.errors.Restore(refused)
}

// adoptAttributes takes over the attributes from the history: those that were
// set last, else those the run was started with. A history that is older than
// this record leaves them to the row.
func (dc *decisions) adoptAttributes(atStart map[string]string) {
	r := dc.run
	switch {
	case r.past.Attributes != nil:
		dc.attributes = *r.past.Attributes
	case atStart != nil:
		dc.attributes = atStart
	}
}

// mergeAttributes returns the attributes that r has once set is applied. The
// committer's mutex is held. The map is a new one: the old one may be on its
// way to the store.
func (dc *decisions) mergeAttributes(set map[string]string) map[string]string {
	next := make(map[string]string, len(dc.attributes)+len(set))
	maps.Copy(next, dc.attributes)
	for name, value := range set {
		if value == "" {
			delete(next, name)
		} else {
			next[name] = value
		}
	}
	return next
}

// checkAttributes returns an error that matches ErrInvalid unless every store
// can keep a.
func checkAttributes(a map[string]string) error {
	if len(a) > MaxAttributes {
		return fmt.Errorf("%d attributes are too many; at most %d are allowed: %w", len(a), MaxAttributes, ErrInvalid)
	}
	for name, value := range a {
		if err := store.CheckName("attribute name", name); err != nil {
			return err
		}
		if reason := badAttributeValue(value); reason != "" {
			return &store.NameError{Kind: fmt.Sprintf("value of attribute %q", name), Value: value[:min(len(value), 80)], Reason: reason}
		}
	}
	return nil
}

func badAttributeValue(v string) string {
	if len(v) > MaxAttributeValue {
		return fmt.Sprintf("is %d bytes long; at most %d are allowed", len(v), MaxAttributeValue)
	}
	if !utf8.ValidString(v) {
		return "is not valid UTF-8"
	}
	for _, c := range v {
		if unicode.IsControl(c) {
			return fmt.Sprintf("contains the control character %U", c)
		}
	}
	return ""
}
