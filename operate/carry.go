package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
)

// ImportOptions change how Import works.
type ImportOptions struct {
	// NewID is the id of the run here; empty: the one it has in the file. Under
	// another id it is a copy: without a parent, with ForkedFrom set, and with
	// other idempotency keys.
	NewID string
	// MaxBytes bounds the file, which is held in memory; zero: 1 GiB.
	MaxBytes int64
}

// DefaultMaxImport is the size of the largest file that Import accepts by default, in
// bytes.
const DefaultMaxImport = 1 << 30

// Imported is what Import has made.
type Imported struct {
	RunID    string
	Workflow string
	Status   store.Status
	Events   int
}

// ErrBadFile: a file given to Import is damaged, from a newer program, or not a run file.
// Nothing was changed.
var ErrBadFile = errors.New("durable: not an importable run file")

// Import creates a run from a file that Export has written, here or elsewhere, on any
// kind of store. It reads and checks the whole file before it writes anything; then the
// run is here with the history it had, byte for byte.
//
// A run that had ended is here as it was. Any other run is interrupted with code
// durable.CodeImported, and parked. Resume continues it; call that once it is certain
// that nothing continues the run it was exported from. A run that waited for its Delay begins
// with it at once. It holds its exclusive keys again.
//
// A large run takes several durable acts. Until the last of them it is parked
// with code durable.CodeImporting, and no executor runs it; after a crash in between,
// importing the same file again finishes it. If the parent of an imported child is here
// and waits, it gets the child's outcome.
//
// Errors: ErrBadFile; store.ErrExists (*store.ExistsError) when the id is taken, even by
// the same run; durable.ErrOccupied when an exclusive key or the deduplication key is;
// store.ErrTooLarge;
// durable.ErrInvalid for an id that cannot be used, or a copy of a run with children that
// have not ended; *durable.UndecodableError when a copy needs a key that is missing.
// After any of these nothing has changed. durable.ErrUnavailable: import it again.
func (op *Operator) Import(ctx context.Context, r io.Reader, o ImportOptions) (Imported, error) {
	if err := op.desk.OutsideFunction(ctx, "Import"); err != nil {
		return Imported{}, err
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxImport
	}
	f, err := runfile.Read(r, o.MaxBytes)
	var future *runfile.FutureError
	switch {
	case errors.Is(err, runfile.ErrDamaged), errors.As(err, &future):
		return Imported{}, fmt.Errorf("%w: %w", ErrBadFile, err)
	case err != nil:
		return Imported{}, fmt.Errorf("durable: reading a run file: %w", err)
	}
	if err := checkFile(f); err != nil {
		return Imported{}, fmt.Errorf("%w: %w", ErrBadFile, err)
	}
	if o.NewID != "" && o.NewID != f.Run.ID {
		if err := rename(ctx, op, f, o.NewID); err != nil {
			return Imported{}, fmt.Errorf("durable: importing run %s as %s: %w", f.Run.ID, o.NewID, err)
		}
	}
	id := f.Run.ID
	in := &importing{op: op, file: f, final: importedRow(&f.Run, op.desk.NextEpoch())}
	if err := in.check(); err != nil {
		return Imported{}, fmt.Errorf("durable: importing run %s: %w", id, err)
	}
	if err := in.run(ctx); err != nil {
		if held := heldByOther(&in.final, "was not imported; import it again once that run has ended", err); held != nil {
			return Imported{}, held
		}
		return Imported{}, fmt.Errorf("durable: importing run %s: %w", id, storeError(err))
	}
	op.desk.Ended(id, in.final.Status)
	op.tellImported(ctx, f)
	op.desk.LogRun(slog.LevelInfo, &f.Run, "durable: run imported", slog.String("status", string(in.final.Status)), slog.Int("events", len(f.Events)))
	return Imported{RunID: id, Workflow: f.Run.Workflow, Status: in.final.Status, Events: len(f.Events)}, nil
}

// tellImported sends a waiting parent the outcome of a child that is imported after its
// end, because the original message may be lost. A crash before that leaves the parent
// listed in Stuck, and Resume sends the outcome.
func (op *Operator) tellImported(ctx context.Context, f *runfile.File) {
	if f.Run.Parent == "" || !f.Run.Status.Terminal() {
		return
	}
	h, err := op.store.Load(ctx, f.Run.Parent, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	if err != nil || h.Run.Status != store.Waiting {
		return // it checks when it is loaded
	}
	lost, err := op.desk.Unheard(ctx, &h.Run, f.Run.ID)
	if err == nil && lost != nil && lost.Child != nil {
		err = lost.Tell(ctx)
	}
	if err != nil {
		op.desk.LogRun(slog.LevelWarn, &f.Run, "durable: the parent of an imported run could not be told what became of it: resume the parent", slog.String("parent", f.Run.Parent), slog.Any("error", err))
	}
}

// checkFile returns why a file cannot become a run.
func checkFile(f *runfile.File) error {
	if err := store.CheckRunID(f.Run.ID); err != nil {
		return err
	}
	if err := store.CheckName("workflow name", f.Run.Workflow); err != nil {
		return err
	}
	if max(len(f.Run.Code), len(f.Run.Version)) > store.MaxName {
		return fmt.Errorf("its code or its version has more than %d bytes", store.MaxName)
	}
	if len(f.Events) == 0 || f.Events[0].Seq != 1 {
		return errors.New("it does not have the first event")
	}
	f.Run.Inbox = int64(len(f.Inbox))
	h := &store.History{Run: f.Run, Branches: f.Branches, Inbox: f.Inbox}
	h.Run.Last = &f.Events[len(f.Events)-1]
	h.Run.Epoch = h.Run.Last.Epoch
	// Whether this engine can open the payloads shows when the run is executed.
	whole := func(env []byte) error {
		if _, err := envelope.Open(env); errors.Is(err, envelope.ErrDamaged) {
			return err
		}
		return nil
	}
	a := history.NewAudit(h, history.Payloads{
		Event:   func(_ string, ev *store.Event) error { return whole(ev.Payload) },
		Message: func(_ string, m *store.Message) error { return whole(m.Payload) },
		Input:   payload.PlainInput,
		Kind:    kindOfDecode,
	})
	a.Facts.Copied = true
	for i := range f.Events {
		a.Add(&f.Events[i])
	}
	a.Finish()
	for _, found := range verificationOf(&a.Verdict).Findings {
		if !found.Behind && found.Kind != FoundOrphan {
			return errors.New(found.String())
		}
	}
	return nil
}

// importedRow returns the row of a run once it is imported.
func importedRow(r *store.Run, epoch int64) store.Run {
	row := *r
	row.Epoch, row.Owner, row.Strikes, row.ArchivedSeq, row.WakeAt, row.Last = epoch, "", 0, 0, 0, nil
	if row.Status.Terminal() {
		return row
	}
	if row.Status != store.Interrupted || row.Code == "" {
		row.Code = durable.CodeImported
		row.Reason = history.ImportedReason(r.Status)
	}
	row.Status = store.Interrupted
	return row
}

// importing is an import in progress. Its acts, in order: it creates the run, with its
// inbox and its first event; then its branches; then its events except the last one; then
// that one, together with the final row. Before the last act, the row of a run that has completed says running.
type importing struct {
	op    *Operator
	file  *runfile.File
	final store.Run
	// expect is for the next act; done is how many events are written.
	expect store.Expect
	done   int
	have   map[int32]bool // branches that are written
}

// errOtherFile: an import waits for another file to go on.
var errOtherFile = errors.New("the import of another file under this id has not finished")

// unservedVersion is the version of a run while it is imported. No executor serves it, so
// none claims the run whatever happens to its row.
const unservedVersion = "(importing)"

// check returns why this store would refuse one of the acts after the first, which would
// leave half a run.
func (in *importing) check() error {
	f := in.file
	for i := range f.Events {
		if n := f.Events[i].Seq; n != int64(i+1) {
			return fmt.Errorf("%w: event %d stands in the place of event %d", ErrBadFile, n, i+1)
		}
		if i == 0 {
			continue // part of the first act, which is refused as a whole
		}
		c := store.Change{RunID: f.Run.ID, Expect: store.Expect{Epoch: in.final.Epoch}, Events: f.Events[i : i+1 : i+1]}
		if err := c.Validate(in.op.desk.Limits()); errors.Is(err, store.ErrTooLarge) {
			return err
		} else if err != nil {
			return fmt.Errorf("%w: %w", ErrBadFile, err)
		}
	}
	return nil
}

func (in *importing) run(ctx context.Context) error {
	id := in.file.Run.ID
	h, err := in.op.store.Load(ctx, id, store.Cursor{All: true})
	switch {
	case errors.Is(err, store.ErrNotFound):
		if err = in.create(ctx); err == nil {
			err = in.ours(ctx)
		}
	case err == nil:
		err = in.continueFrom(h)
	}
	if err != nil || in.done == len(in.file.Events) {
		return err
	}
	if err := in.branches(ctx); err != nil {
		return err
	}
	if err := in.events(ctx); err != nil {
		return err
	}
	return in.finish(ctx)
}

// create is the first act.
func (in *importing) create(ctx context.Context) error {
	f := in.file
	row := in.final
	if len(f.Events) > 1 {
		row.Status, row.Code, row.Version, row.Paused = store.Interrupted, durable.CodeImporting, unservedVersion, true
		row.Reason, row.EndedAt = in.unfinishedReason(), 0
	}
	c := store.Change{RunID: row.ID, Expect: store.Expect{Absent: true}, Create: &row, Events: f.Events[:1:1]}
	for i := range f.Inbox {
		m := f.Inbox[i]
		m.To = row.ID
		c.Send = append(c.Send, m)
	}
	if !in.final.Status.Terminal() {
		born, err := in.born()
		if err != nil {
			return err
		}
		c.Hold = born.Exclusive
	}
	in.done, in.expect = 1, store.Expect{Epoch: row.Epoch}
	return in.op.desk.Commit(ctx, c)
}

// born returns the data of the event with which the current generation began.
func (in *importing) born() (history.Beginning, error) {
	l := store.LineageOf(in.file.Branches, in.file.Run.Branch)
	for i := range in.file.Events {
		ev := &in.file.Events[i]
		switch {
		case !l.Has(ev):
			continue
		case ev.Type == store.WorkflowCreated, ev.Type == store.WorkflowStarted:
			return history.Of[history.Beginning](ev)
		}
		break // nobody can make anything of such a history
	}
	return history.Beginning{}, nil
}

// continueFrom continues an unfinished import of the same file.
func (in *importing) continueFrom(h *store.History) error {
	f := in.file
	if h.Run.Code != durable.CodeImporting || h.Run.Version != unservedVersion {
		return &store.ExistsError{RunID: h.Run.ID}
	}
	same := h.Run.Workflow == f.Run.Workflow && h.Run.InputHash == f.Run.InputHash && len(h.Inbox) >= len(f.Inbox)
	for ev, err := range h.Events {
		if err != nil {
			return err
		}
		if in.done == len(f.Events)-1 || f.Events[in.done].Sum != ev.Sum {
			same = false
			break
		}
		in.done++
	}
	if !same {
		return fmt.Errorf("%w; delete it first: %w", errOtherFile, &store.ExistsError{RunID: h.Run.ID})
	}
	in.have = map[int32]bool{}
	for _, b := range h.Branches {
		in.have[b.N] = true
	}
	// The process that began it may still be working on it: the first event fences it.
	in.expect = store.Expect{Epoch: h.Run.Epoch}
	in.expect.TakeEpoch = true
	return nil
}

// branches records the missing branches. Each is an act on the row alone.
func (in *importing) branches(ctx context.Context) error {
	reason := in.unfinishedReason()
	for i := range in.file.Branches {
		b := in.file.Branches[i]
		if in.have[b.N] {
			continue
		}
		err := in.op.desk.Commit(ctx, store.Change{
			RunID: in.file.Run.ID, Expect: store.Expect{Epoch: in.expect.Epoch}, Row: &store.RowPatch{Reason: &reason}, Branch: &b,
		})
		if errors.Is(err, store.ErrInvalid) {
			// The change itself is valid, so the branch exists already. A store cannot
			// recognise a change without events as already carried out: either this is
			// the answer to a resend, or another process imports the same file. Only one
			// of the two writes the events, which come next.
			if in.hasBranch(ctx, &b) {
				continue
			}
			return fmt.Errorf("somebody else imports it: %w (%v)", store.ErrFenced, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasBranch reports whether the run has this very branch.
func (in *importing) hasBranch(ctx context.Context, b *store.Branch) bool {
	h, err := in.op.store.Load(ctx, in.file.Run.ID, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	return err == nil && h.Run.Code == durable.CodeImporting && slices.Contains(h.Branches, *b)
}

// events appends all events except the last, as many at a time as an act may hold.
func (in *importing) events(ctx context.Context) error {
	f := in.file
	for last := len(f.Events) - 1; in.done < last; {
		c := store.Change{RunID: f.Run.ID, Expect: in.expect}
		for n := in.done; n < last && len(c.Events) < maxImportEvents; n++ {
			ev := f.Events[n]
			if len(c.Events) > 0 && c.Size()+len(ev.Data)+len(ev.Payload) > in.op.desk.Limits().Batch/4 {
				break
			}
			c.Events = append(c.Events, ev)
		}
		if err := in.op.desk.Commit(ctx, c); err != nil {
			return err
		}
		in.done += len(c.Events)
		in.expect = store.Expect{Epoch: c.RowEpoch()}
	}
	return nil
}

// maxImportEvents bounds an act, so that other writers wait only a moment.
const maxImportEvents = 1000

// finish is the last act, which ends the import. A run that completes has to run before, and so holds a place in its queue.
func (in *importing) finish(ctx context.Context) error {
	r := &in.final
	cancelAsked, err := in.cancelAsked(ctx)
	if err != nil {
		return err
	}
	if r.Status == store.Completed {
		runs := &store.RowPatch{Status: new(store.Running)}
		if err := in.op.desk.Commit(ctx, store.Change{RunID: r.ID, Expect: store.Expect{Epoch: in.expect.Epoch}, Row: runs}); err != nil {
			return err
		}
	}
	patch := &store.RowPatch{
		Version: &r.Version, Status: &r.Status, Code: &r.Code, Reason: &r.Reason, Recoverable: &r.Recoverable, Branch: &r.Branch,
		Generation: &r.Generation, CancelAsked: cancelAsked, Paused: &r.Paused, EndedAt: &r.EndedAt, Seen: &r.Seen,
	}
	return in.op.desk.Commit(ctx, store.Change{
		RunID: r.ID, Expect: in.expect, Events: slices.Clone(in.file.Events[in.done:]), Row: patch, Yield: true,
	})
}

// cancelAsked returns what the row is to say of a cancel; nil: what it says by then. The cancels
// of the file have set it when the run was created. One that has come since is not in the file,
// and holds.
func (in *importing) cancelAsked(ctx context.Context) (*bool, error) {
	cancels := func(m store.Message) bool { return m.Kind == store.KindCancel }
	if in.final.Status == store.Cancelled {
		return &in.final.CancelAsked, nil
	}
	if !slices.ContainsFunc(in.file.Inbox, cancels) {
		return nil, nil
	}
	h, err := in.op.store.Load(ctx, in.file.Run.ID, store.Cursor{NoEvents: true, AfterMessage: int64(len(in.file.Inbox))})
	if err != nil || slices.ContainsFunc(h.Inbox, cancels) {
		return nil, err
	}
	return &in.final.CancelAsked, nil
}

// unfinishedReason is the reason of a run while it is imported. It names the engine, so
// that no other engine takes the import for its own.
func (in *importing) unfinishedReason() string {
	return "its import, by " + in.op.desk.ID() + ", has not finished; import it again"
}

// ours returns an error that matches store.ErrExists if another import created the run in
// the same microsecond. A run with a single event has nothing left to write; for it, it
// is enough that everything in the file is stored.
func (in *importing) ours(ctx context.Context) error {
	id := in.file.Run.ID
	h, err := in.op.store.Load(ctx, id, store.Cursor{All: true})
	if err != nil {
		return err
	}
	if len(in.file.Events) > 1 {
		if h.Run.Code == durable.CodeImporting && h.Run.Reason == in.unfinishedReason() {
			return nil
		}
		return &store.ExistsError{RunID: id}
	}
	// What has been sent since stands behind the messages of the file.
	inbox := h.Inbox[:min(len(h.Inbox), len(in.file.Inbox))]
	same := slices.EqualFunc(inbox, in.file.Inbox, func(a, b store.Message) bool {
		return a.Kind == b.Kind && a.ID == b.ID && a.Name == b.Name && slices.Equal(a.Payload, b.Payload)
	})
	if !same {
		return &store.ExistsError{RunID: id}
	}
	return nil
}

// Export writes a run with all that belongs to it (every event of every branch and
// generation, its inbox and its row) as one file that Import reads on any store: lines of
// JSON, the last of which has a checksum of the others. docs/checkpoint-format.md
// describes it. Payloads are written as stored: what is encrypted stays encrypted. The
// run is written as it was at the moment of the call, even while it is executed. Nothing
// is changed.
//
// Children are runs of their own and are exported separately. The attributes, headers and
// names in the file are not encrypted; neither are payloads of an engine without
// Options.Encrypt.
//
// Errors: durable.ErrNotFound; *durable.DamagedError when what a resume needs is damaged: Repair
// comes first; durable.ErrUnavailable; those of w. After an error the file is incomplete,
// and Import refuses it.
func (op *Operator) Export(ctx context.Context, id string, w io.Writer) error {
	if _, err := runfile.Export(ctx, op.store, id, w, func(err error) error { return storeError(damaged(err)) }); err != nil {
		return fmt.Errorf("durable: exporting run %s: %w", id, err)
	}
	return nil
}
