package sim

import (
	"bytes"
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// copyOf is the id of the copy of a run that is made of its file.
func copyOf(id string) string { return "f-copy-" + id }

// carry exports a run and imports it under another id. An import that an earlier act has begun is
// finished with its file.
func (s *sim) carry(ctx context.Context, op *operate.Operator, id string) error {
	file := s.file(copyOf(id), nil)
	if file == nil {
		var b bytes.Buffer
		if err := op.Export(ctx, id, &b); err != nil {
			s.askSound(id, err)
			return err
		}
		if file = s.file(copyOf(id), b.Bytes()); !s.hasAct(CleanUp) {
			_, err := op.Import(ctx, bytes.NewReader(b.Bytes()), operate.ImportOptions{})
			if s.askImport(id, err); err == nil {
				s.fail("%s is imported, and was there", id)
			}
		}
	}
	return s.imports(ctx, op, copyOf(id), file)
}

// imports imports a file under an id.
func (s *sim) imports(ctx context.Context, op *operate.Operator, id string, file []byte) error {
	defer s.ledger.meddles(id)() // what has happened to the other run has not happened to its copy
	_, err := op.Import(ctx, bytes.NewReader(file), operate.ImportOptions{NewID: id})
	s.askImport(id, err)
	return err
}

// askImport checks that the file of a run that was not damaged can be read.
func (s *sim) askImport(id string, err error) {
	var undecodable *durable.UndecodableError
	if errors.Is(err, operate.ErrBadFile) || errors.As(err, &undecodable) {
		s.fail("Import of %s: %v", id, err)
	}
}

// file returns the file of which a copy is made, which is this one if there is none yet.
func (s *sim) file(id string, file []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[id] == nil && file != nil {
		s.files[id] = file
	}
	return s.files[id]
}

// finishImport imports the file of a run once more, whose import has not come to its end.
func (s *sim) finishImport(ctx context.Context, p *process, row *store.Run) {
	if row.Code == durable.CodeImporting && isMoved(row.ID) {
		err := s.startMoved(durable.NewContext(ctx, p.engine()), row.ID, s.file(row.ID, nil))
		s.note("start of %s: %v", row.ID, err)
	} else if row.Code == durable.CodeImporting {
		err := s.imports(ctx, operate.On(p.engine()), row.ID, s.file(row.ID, nil))
		s.note("import of %s: %v", row.ID, err)
	}
}

// inspect has the history of a run checked, or mended, while it is executed: it is never wrong,
// so nothing may be found and nothing done.
func (s *sim) inspect(ctx context.Context, eng *durable.Engine, d Deed, id string) error {
	op := operate.On(eng)
	switch d {
	case VerifyRun:
		v, err := op.Verify(ctx, id)
		if err == nil && !v.Sound() {
			s.fail("Verify of %s, which goes on, finds: %v", id, v.Findings)
		}
		s.askSound(id, err)
		return err
	case RepairRun:
		r, err := op.Repair(ctx, id, operate.RepairOptions{})
		if err == nil && (len(r.Did) > 0 || r.Branch != 0) {
			s.fail("Repair of %s, which is sound, did: %v", id, r.Did)
		}
		s.askSound(id, err)
		return err
	}
	r, err := eng.RecoverRun(ctx, id)
	jumped := r.Code == "D2" && (s.hasAct(JumpBack) || s.hasAct(EditStep)) // by a jump that a fault has cut off
	if err == nil && r.Needed && !jumped {
		s.fail("RecoverRun of %s, which is sound, did: %s: %s", id, r.Code, r.Reason)
	}
	s.askSound(id, err)
	return err
}

// askSound checks that an error does not say that a run is damaged.
func (s *sim) askSound(id string, err error) {
	var damaged *durable.DamagedError
	var unrepairable *operate.UnrepairableError
	var unrecoverable *durable.UnrecoverableError
	if errors.As(err, &unrecoverable) && unrecoverable.Code == "E2" && s.world.Release == ByVersion {
		return // its code is not deployed
	}
	if errors.As(err, &damaged) || errors.As(err, &unrepairable) || errors.As(err, &unrecoverable) {
		s.fail("%s is said to be damaged: %v", id, err)
	}
}
