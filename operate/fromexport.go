package operate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
)

// FromExport begins the run with the history in a file that Export has written,
// or an archive has kept, instead of from nothing: Start brings the run into this
// store, under the id and with the events it has in the file, and resumes it. Recorded steps are
// skipped, and the run waits again for what it waited for. If the store already has the run, the
// store is right and the file is ignored: starting again is safe, even after a crash in between.
// Nil means no file: the run begins from nothing.
//
// The id, workflow and input of the start are those in the file, or Start returns
// durable.ErrInvalid or a *durable.ConflictError and changes nothing; other options of the start
// have no effect, as for a run that exists. It works only with Start: not with durable.AutoID,
// not with StartAll, and not for a child. Make sure that no program still executes the run that
// the file was made from. Further errors are those of Import and Resume.
func FromExport(file []byte) durable.StartOption {
	if file == nil {
		return desk.Begin(nil).(durable.StartOption)
	}
	return desk.Begin(func(ctx context.Context, s desk.Start) error {
		return startFrom(ctx, On(s.Engine.(*durable.Engine)), &s, file)
	}).(durable.StartOption)
}

// startFrom creates the run as the file has it, unless it exists. Another start may be doing the
// same, and its process may end before it is done: only a run that goes on is started.
func startFrom(ctx context.Context, op *Operator, s *desk.Start, file []byte) error {
	refused := false
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := imported(ctx, op, s, file)
		switch {
		case err != nil:
			return err
		case h.Run.Code == durable.CodeImporting:
		case h.Run.Status != store.Interrupted || h.Run.Code != durable.CodeImported:
			return nil
		default:
			if _, err = op.Resume(ctx, s.RunID, ResumeOptions{}); err == nil || !errors.Is(err, durable.ErrNotResumable) || refused {
				return ignore(err, durable.ErrNotResumable)
			}
			refused = true // perhaps because another start was faster
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-op.desk.Closed():
			return durable.ErrClosed
		case <-time.After(pause):
		}
	}
}

// imported returns the row of the run, which it imports if that is not done.
func imported(ctx context.Context, op *Operator, s *desk.Start, file []byte) (*store.History, error) {
	h, err := op.store.Load(ctx, s.RunID, store.Cursor{NoEvents: true})
	if err == nil && h.Run.Code != durable.CodeImporting {
		return h, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, storeError(err)
	}
	if err := checkExport(op, s, file); err != nil {
		return nil, err
	}
	_, err = op.Import(ctx, bytes.NewReader(file), ImportOptions{})
	if faster := errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrFenced); err != nil && (!faster || errors.Is(err, errOtherFile)) {
		return nil, err
	}
	if h, err = op.store.Load(ctx, s.RunID, store.Cursor{NoEvents: true}); err != nil {
		return nil, storeError(err)
	}
	return h, nil
}

// ignore returns err unless it is of this kind.
func ignore(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

// checkExport returns why a file does not belong to a start.
func checkExport(op *Operator, s *desk.Start, file []byte) error {
	f, err := runfile.Read(bytes.NewReader(file), DefaultMaxImport)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBadFile, err)
	case f.Run.ID != s.RunID:
		return fmt.Errorf("the file holds run %s: %w", f.Run.ID, durable.ErrInvalid)
	case f.Run.Workflow != s.Workflow:
		return &durable.ConflictError{RunID: s.RunID, Have: f.Run.Workflow, Want: s.Workflow}
	case f.Run.InputHash != payload.InputHash(s.Input) && (len(f.Events) == 0 || !op.sealer.CreatedWith(s.RunID, &f.Events[0], s.Type, s.Input)):
		return &durable.ConflictError{RunID: s.RunID, Have: f.Run.Workflow, Want: s.Workflow, SameFlow: true}
	}
	return nil
}
