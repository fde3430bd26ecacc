package commit

import (
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// A Head is where a run's log ends. The committer's mutex guards the Head of a Log;
// while a flight is in progress, the flight owns it.
type Head struct {
	Seq    int64
	Sum    uint32
	Epoch  int64
	Branch int32
}

// Append gives ev the next place: its number, its branch and its sum.
func (h *Head) Append(runID string, ev *store.Event) {
	ev.Seq, ev.Branch = h.Seq+1, h.Branch
	h.passed(ev, store.Seal(runID, h.Sum, ev))
}

// append is Append with the memory of s.
func (h *Head) append(s *store.Sealing, runID string, ev *store.Event) {
	ev.Seq, ev.Branch = h.Seq+1, h.Branch
	h.passed(ev, s.Seal(runID, h.Sum, ev))
}

// passed gives ev its sum, and moves the head to it.
func (h *Head) passed(ev *store.Event, sum uint32) {
	ev.Sum = sum
	h.Seq, h.Sum = ev.Seq, sum
}

// AppendSealed is Append for an event whose payload is not sealed yet.
func (h *Head) AppendSealed(s *payload.Sealer, runID string, ev *store.Event) {
	ev.Branch = h.Branch
	ev.Payload = s.Seal(payload.PlaceOf(runID, ev), ev.Payload)
	h.Append(runID, ev)
}
