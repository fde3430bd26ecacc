package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// Redact prepares texts of user origin to be shown. nil shows them as they were recorded.
type Redact func(text string) string

// Text redacts one text.
func (r Redact) Text(s string) string {
	if r == nil || s == "" {
		return s
	}
	return r(s)
}

// Line is the first line of a text. It is redacted before it is cut: a secret that was cut
// would not be recognised.
func (r Redact) Line(s string, limit int) string { return outline.OneLine(r.Text(s), limit) }

// List redacts texts.
func (r Redact) List(texts []string) []string {
	if r == nil {
		return texts
	}
	shown := make([]string, len(texts))
	for i, t := range texts {
		shown[i] = r.Text(t)
	}
	return shown
}

// Map redacts the values of a map.
func (r Redact) Map(m map[string]string) map[string]string {
	if r == nil {
		return m
	}
	shown := make(map[string]string, len(m))
	for k, v := range m {
		shown[k] = r.Text(v)
	}
	return shown
}

// JSON redacts a JSON text. A result that is not JSON becomes a string.
func (r Redact) JSON(v json.RawMessage) json.RawMessage {
	if r == nil {
		return v
	}
	after := r.Text(string(v))
	if json.Valid([]byte(after)) {
		return json.RawMessage(after)
	}
	b, _ := json.Marshal(after)
	return b
}

// Unredacted returns the JSON of a payload as it is without redaction; nil if redaction
// changes nothing.
func (r Redact) Unredacted(data []byte) []byte {
	if r == nil || !json.Valid(data) {
		return nil
	}
	whole := compact(data)
	if string(r.JSON(whole)) == string(whole) {
		return nil
	}
	return whole
}

// Events redacts a sequence of events as Event does.
func (r Redact) Events(events iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
	if r == nil {
		return events
	}
	return func(yield func(store.Event, error) bool) {
		for ev, err := range events {
			if err == nil {
				ev = *r.Event(&ev)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// Event returns an event with its texts of user origin redacted, each as a whole.
func (r Redact) Event(ev *store.Event) *store.Event {
	var data map[string]json.RawMessage
	if r == nil || len(ev.Data) == 0 || json.Unmarshal(ev.Data, &data) != nil {
		return ev
	}
	for _, name := range []string{"reason", "prompt"} {
		r.member(data, name)
	}
	r.failure(data, "error")
	r.object(data, "attributes")
	r.object(data, "notes")
	var fork map[string]json.RawMessage
	if json.Unmarshal(data["fork"], &fork) == nil && fork != nil {
		r.member(fork, "reason")
		data["fork"] = encoded(fork)
	}
	shown := *ev
	shown.Data = encoded(data)
	return &shown
}

// member redacts a member of an object that is a text.
func (r Redact) member(object map[string]json.RawMessage, name string) {
	var text string
	if json.Unmarshal(object[name], &text) == nil && text != "" {
		object[name] = encoded(r.Text(text))
	}
}

// object redacts the values of an object, whatever they are.
func (r Redact) object(object map[string]json.RawMessage, name string) {
	var values map[string]json.RawMessage
	if json.Unmarshal(object[name], &values) != nil || values == nil {
		return
	}
	for k, v := range values {
		if len(v) > 0 && v[0] == '"' {
			r.member(values, k)
		} else {
			values[k] = r.JSON(v)
		}
	}
	object[name] = encoded(values)
}

// failure redacts an error and those that it wraps.
func (r Redact) failure(object map[string]json.RawMessage, name string) {
	var failure map[string]json.RawMessage
	if json.Unmarshal(object[name], &failure) != nil || failure == nil {
		return
	}
	r.member(failure, "message")
	var causes []json.RawMessage
	if json.Unmarshal(failure["causes"], &causes) == nil && causes != nil {
		for i := range causes {
			of := map[string]json.RawMessage{"cause": causes[i]}
			r.failure(of, "cause")
			causes[i] = of["cause"]
		}
		failure["causes"] = encoded(causes)
	}
	object[name] = encoded(failure)
}

// encoded is the JSON of something that was read from JSON.
func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("dashboard: what is shown of an event cannot be encoded: %w", err))
	}
	return b
}

func compact(data []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}
