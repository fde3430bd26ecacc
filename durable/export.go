package durable

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
)

// Export writes a run with all that belongs to it, every event of every branch
// and generation, its inbox and its row, as one file that Import reads on any
// store: lines of JSON, of which the last one has a checksum of the others.
// docs/checkpoint-format.md describes it. Payloads are written as they are kept:
// what is encrypted stays encrypted. The run is written as it was at the moment
// of the call, also while it is executed. Nothing is changed.
//
// Children are runs of their own, and exported by themselves. The attributes,
// headers and names in the file are not encrypted; neither are payloads of an
// engine without Options.Encrypt.
//
// Errors: ErrNotFound; *DamagedError when what a resume needs is damaged: Repair
// comes first; ErrUnavailable; those of w. After an error the file is not whole,
// and Import refuses it.
func (e *Engine) Export(ctx context.Context, id string, w io.Writer) error {
	if _, err := e.export(ctx, id, w); err != nil {
		return fmt.Errorf("durable: exporting run %s: %w", id, err)
	}
	return nil
}

// export returns the row of the run as it stands in the file.
func (e *Engine) export(ctx context.Context, id string, w io.Writer) (*store.Run, error) {
	h, err := e.store.Load(ctx, id, store.Cursor{All: true})
	if err != nil {
		return nil, storeError(err)
	}
	if h.Run.Code == CodeImporting {
		return nil, &DamagedError{RunID: id, Err: errors.New("its own import has not finished")}
	}
	f, err := runfile.NewWriter(w, &h.Run)
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
	// Payloads are not opened for it: their sums are part of the event's.
	a := history.NewAudit(h, history.Payloads{
		Event:   func(string, *store.Event) error { return nil },
		Message: func(string, *store.Message) error { return nil },
		Input:   plainInput,
	})
	for ev, err := range h.Events {
		if err != nil {
			return nil, storeError(err)
		}
		if a.Add(&ev); a.Bad != 0 {
			return nil, firstDamage(&a.Verdict)
		}
		if err := f.Event(&ev); err != nil {
			return nil, err
		}
	}
	if a.Finish(); a.Verdict.Has(history.Corrupt) {
		return nil, firstDamage(&a.Verdict)
	}
	return &h.Run, f.Close()
}

// firstDamage returns what an audit has found as an error.
func firstDamage(v *history.Verdict) error {
	for _, f := range v.Faults {
		if f.Kind == history.Corrupt && !f.Behind {
			return &DamagedError{RunID: v.RunID, Seq: f.Seq, Err: fmt.Errorf("%s: %s", f.Part, f.Text)}
		}
	}
	return nil
}
