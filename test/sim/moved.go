package sim

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// MoveRun starts a run from the file of one that comes from another store, where it was a copy of a
// root run: by FromExport, in two processes at once.
const MoveRun Deed = "move"

// movedOf is the id of that run.
func movedOf(id string) string { return "f-moved-" + id }

// elsewhere makes the file of a run that another store has: a copy of that in a file.
func (s *sim) elsewhere(ctx context.Context, id string, file []byte) ([]byte, error) {
	eng, err := durable.Open(context.Background(), memory.OpenAt(s.clock.now), durable.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { _ = eng.Close() }()
	var b bytes.Buffer
	if _, err = operate.On(eng).Import(ctx, bytes.NewReader(file), operate.ImportOptions{NewID: id}); err == nil {
		err = operate.On(eng).Export(ctx, id, &b)
	}
	if err != nil && !errors.Is(err, durable.ErrInvalid) { // the copy has none of the children that go on
		s.fail("the file of %s is not read elsewhere: %v", id, err)
	}
	return b.Bytes(), err
}

// move exports a run and has two processes start it from the file that another store makes of that.
func (s *sim) move(ctx context.Context, eng *durable.Engine, a *Act, id string) error {
	file := s.file(movedOf(id), nil)
	if file == nil {
		var b bytes.Buffer
		err := operate.On(eng).Export(ctx, id, &b)
		if err != nil {
			s.askSound(id, err)
			return err
		}
		if file, err = s.elsewhere(ctx, movedOf(id), b.Bytes()); err != nil {
			return err
		}
		file = s.file(movedOf(id), file)
	}
	s.background(func() {
		if p := s.live(a.Run + 1); p != nil {
			ctx, cancel := context.WithTimeout(durable.NewContext(context.Background(), p.engine()), time.Minute)
			defer cancel()
			err := s.startMoved(ctx, movedOf(id), file)
			s.note("start of %s through p%d: %v", movedOf(id), p.n, err)
		}
	})
	return s.startMoved(ctx, movedOf(id), file)
}

// startMoved starts a run from its file, and checks that it is then there and goes on.
func (s *sim) startMoved(ctx context.Context, id string, file []byte) error {
	defer s.ledger.meddles(id)()
	_, err := s.ref().Start(ctx, id, Input{}, operate.FromExport(file))
	s.askImport(id, err)
	if errors.Is(err, durable.ErrConflict) {
		s.fail("Start of %s from its file: %v", id, err)
	}
	h, unread := s.data.Load(context.Background(), id, store.Cursor{NoEvents: true})
	switch {
	case err != nil:
	case unread != nil && !s.hasAct(CleanUp):
		s.fail("the start of %s from its file was acknowledged, and it is not there: %v", id, unread)
	case unread == nil && !h.Run.Paused && (h.Run.Code == durable.CodeImporting || h.Run.Code == durable.CodeImported):
		s.fail("the start of %s from its file was acknowledged, and it does not go on: it is %s, code %s", id, h.Run.Status, h.Run.Code)
	}
	return err
}

// isMoved reports whether a run was started from its file.
func isMoved(id string) bool { return strings.HasPrefix(id, "f-moved-") && !strings.Contains(id, "/") }
