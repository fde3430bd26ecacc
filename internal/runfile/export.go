package runfile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// Export writes a run with all that belongs to it, as it is at this moment, and returns
// its row as written to the file. If what a resume needs is damaged, the error is a
// *history.Damage; the store may fail too. known converts both errors into the form
// that callers get. Other errors are those of w.
func Export(ctx context.Context, st store.Store, id string, w io.Writer, known func(error) error) (*store.Run, error) {
	h, err := st.Load(ctx, id, store.Cursor{All: true})
	if err != nil {
		return nil, known(err)
	}
	if h.Run.Code == history.CodeImporting {
		return nil, known(&history.Damage{RunID: id, Err: errors.New("its own import has not finished")})
	}
	f, err := NewWriter(w, &h.Run)
	if err != nil {
		return nil, err
	}
	for i := range h.Branches {
		if err := f.Branch(&h.Branches[i]); err != nil {
			return nil, err
		}
	}
	for i := range h.Inbox {
		if err := f.Message(&h.Inbox[i]); err != nil {
			return nil, err
		}
	}
	// The audit need not open payloads: the sum of an event covers them.
	a := history.NewAudit(h, history.Payloads{
		Event:   func(string, *store.Event) error { return nil },
		Message: func(string, *store.Message) error { return nil },
		Input:   payload.PlainInput,
	})
	for ev, err := range h.Events {
		if err != nil {
			return nil, known(err)
		}
		if a.Add(&ev); a.Bad != 0 {
			return nil, known(firstDamage(&a.Verdict))
		}
		if err := f.Event(&ev); err != nil {
			return nil, err
		}
	}
	if a.Finish(); a.Verdict.Has(history.Corrupt) {
		return nil, known(firstDamage(&a.Verdict))
	}
	return &h.Run, f.Close()
}

// firstDamage returns the first damage that an audit has found, as an error.
func firstDamage(v *history.Verdict) error {
	for _, f := range v.Faults {
		if f.Kind == history.Corrupt && !f.Behind {
			return &history.Damage{RunID: v.RunID, Seq: f.Seq, Err: fmt.Errorf("%s: %s", f.Part, f.Text)}
		}
	}
	return nil
}
