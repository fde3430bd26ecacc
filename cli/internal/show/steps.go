package show

import (
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
)

// A Row is a row of an outline as --json prints it.
type Row struct {
	Key    string `json:"key"`
	Kind   string `json:"kind"`
	State  string `json:"state"`
	TookMS int64  `json:"took_ms,omitempty"`
	Max    int    `json:"max_attempts,omitempty"`
	// IdempotencyKey is the key that the attempts of a step were given.
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
	Error          string    `json:"error,omitempty"`
	Prompt         string    `json:"prompt,omitempty"`
	Until          string    `json:"until,omitempty"`
	Attempts       []Attempt `json:"attempts,omitempty"`
	Rows           []Row     `json:"rows,omitempty"`
}

// An Attempt is one of a Row.
type Attempt struct {
	N      int    `json:"n"`
	ID     int64  `json:"id,omitempty"` // of its event
	State  string `json:"state"`
	At     string `json:"at,omitempty"`
	TookMS int64  `json:"took_ms,omitempty"`
	Error  string `json:"error,omitempty"`
	NextAt string `json:"next_at,omitempty"`
	Notes  []note `json:"notes,omitempty"`
}

type note struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Rows returns the rows of an outline for --json.
func Rows(o *outline.Outline, rows []*outline.Row) []Row {
	views := make([]Row, 0, len(rows))
	for _, r := range rows {
		took, _ := o.Took(r)
		v := Row{Key: r.Key, Kind: string(r.Kind), State: string(r.State), TookMS: took, Max: r.Max, Error: r.Error, Prompt: r.Prompt, Until: RFC3339(r.Until), Rows: Rows(o, r.Rows)}
		if r.Keyed() {
			v.IdempotencyKey = durable.IdempotencyKeyOf(o.Run.ID, int(o.Run.Generation), r.Key)
		}
		for i := range r.Attempts {
			a := &r.Attempts[i]
			av := Attempt{N: a.N, ID: a.Seq, State: a.StateText(), At: RFC3339(a.Begin), TookMS: a.Took.Milliseconds(), Error: a.Error, NextAt: RFC3339(a.NextAt)}
			for _, n := range a.Notes {
				av.Notes = append(av.Notes, note{n.Key, n.Value})
			}
			v.Attempts = append(v.Attempts, av)
		}
		views = append(views, v)
	}
	return views
}

// PrintRows prints the rows of an outline with their attempts, nested. Without all it
// leaves out those of a long run that a person need not see, and returns how many.
func PrintRows(s *Stream, o *outline.Outline, all bool) (more int) {
	return o.Print(s.W, outline.Style{
		All: all, Escape: Escape, At: s.At,
		Paint: func(t outline.Tone, sign string) string { return s.Paint(ToneColour(t), sign) },
		Dim:   func(text string) string { return s.Paint(Dim, text) },
	})
}
