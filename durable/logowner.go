package durable

import (
	"errors"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/store"
)

// A logOwner is a run as the committer knows it. Its methods are called under the
// committer's mutex.
type logOwner struct{ *run }

// Admit refuses the writes of an execution that has lost its run, or has made way. If
// the run continues with a new input, it admits only the write that says so.
func (r logOwner) Admit(w *commit.Write) error {
	if d := r.dead.Load(); d != nil && (d.kind == deathLost || d.kind == deathUnloaded || d.kind == deathRenewed && !w.Ends()) {
		return d.err
	}
	if r.rehearsal != nil {
		return ErrUnloaded // this write comes from code that does not know of rehearsals, and must not be recorded
	}
	return nil
}

// Row returns what brings the row up to date with the run's waits.
func (r logOwner) Row(events bool) *store.RowPatch { return r.waits.follow(events) }

// RowRefused forgets what the row says, so that the next write brings all of it up to
// date.
func (r logOwner) RowRefused() { r.waits.rowSays = rowState{} }

// Tear parks the run: a call that has returned could not be recorded.
func (r logOwner) Tear(ev *store.Event, err error) { _ = r.unrecorded(ev.Key, err) }

// Lose ends the execution.
func (r logOwner) Lose(err error) { _ = r.die(&death{kind: deathLost, err: err}) }

// Lost returns why nothing of the run is recorded here any more.
func (r logOwner) Lost() error {
	if d := r.dead.Load(); d != nil && d.kind == deathLost {
		return d.err
	}
	return nil
}

// Landed tells those concerned that a change is durable. After one that gives the run up, none is sent.
func (r logOwner) Landed(c *store.Change) {
	if c.Yield {
		_ = r.die(endedHere(r.id))
	}
	if r.eng.watchers.any() {
		r.eng.watchers.notify([]string{r.id}) // the store does not tell of plain checkpoints
	}
	status := r.waits.rowSays.status
	if c.Row != nil && c.Row.Status != nil {
		status = *c.Row.Status
	}
	r.eng.archiver.Want(r.id, status)
	if c.Expect.Inbox != nil {
		return // it has sent a message to itself, and received it: see awaiting.accept
	}
	for i := range c.Send {
		r.eng.mailroom.sent(&c.Send[i], c.Sent[i])
	}
}

// definite reports whether the store has decided against a change as such; see
// commit.Definite.
func definite(err error) bool { return commit.Definite(err) }

// ofContent reports whether it did so because of the change's content, which a run may record as
// what has become of a call. A store that is damaged, or belongs to a newer program, says nothing
// about the change: the run is parked.
func ofContent(err error) bool {
	return definite(err) && !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrSchema)
}
