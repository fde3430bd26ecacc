package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
)

// FromExport begins the run with the history in a file that Export has written,
// or an archive has kept, instead of from nothing: Start brings the run into this
// store, under the id and with the events it has in the file, and resumes it.
// Steps that are recorded are skipped, and what it waited for it waits for again.
// If the store has the run already, the store is right and the file is not looked
// at: starting again is safe, also after a crash in between.
//
// The id, workflow and input of the start are those in the file, or Start returns
// ErrInvalid or a *ConflictError and changes nothing; other options of the start
// count no more than for a run that exists. It goes with Start alone: neither with
// AutoID, nor StartAll, nor for a child. Make sure that nobody still executes the
// run that the file was made from. Further errors are those of Import and Resume.
func FromExport(file []byte) StartOption {
	return func(o *startOptions) { o.from = file }
}

// checkFrom returns why the start cannot begin with a file.
func (o *startOptions) checkFrom(ctx context.Context, id string) error {
	if o.from == nil {
		return nil
	}
	if _, inRun := ctx.Value(scopeKey{}).(*scope); inRun || id == "" || id == AutoID {
		return fmt.Errorf("FromExport needs the id of the run that is in the file, and is for Start outside of a workflow function only: %w", ErrInvalid)
	}
	return nil
}

// startFrom makes the run exist as the file has it, unless it is there.
func (e *Engine) startFrom(ctx context.Context, def *definition, id string, input, file []byte) error {
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return storeError(err)
	}
	if err != nil || h.Run.Code == CodeImporting {
		if err := e.checkExport(def, id, input, file); err != nil {
			return err
		}
		_, err = e.Import(ctx, bytes.NewReader(file), ImportOptions{})
		if err != nil && !errors.Is(err, store.ErrExists) {
			return err
		}
		if h, err = e.store.Load(ctx, id, store.Cursor{NoEvents: true}); err != nil {
			return storeError(err)
		}
	}
	if h.Run.Status != store.Interrupted || h.Run.Code != CodeImported {
		return nil
	}
	if _, err := e.Resume(ctx, id, ResumeOptions{}); err != nil && !errors.Is(err, ErrNotResumable) {
		return err // not resumable: another start was faster
	}
	return nil
}

// checkExport returns why a file is not that of a start.
func (e *Engine) checkExport(def *definition, id string, input, file []byte) error {
	f, err := runfile.Read(bytes.NewReader(file), DefaultMaxImport)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBadFile, err)
	case f.Run.ID != id:
		return fmt.Errorf("the file holds run %s: %w", f.Run.ID, ErrInvalid)
	case f.Run.Workflow != def.name:
		return &ConflictError{RunID: id, Have: f.Run.Workflow, Want: def.name}
	case f.Run.InputHash != payload.InputHash(input) && (len(f.Events) == 0 || !e.sealer.CreatedWith(id, &f.Events[0], def.input, input)):
		return &ConflictError{RunID: id, Have: f.Run.Workflow, Want: def.name, SameFlow: true}
	}
	return nil
}
