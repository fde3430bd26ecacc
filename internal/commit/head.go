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
func (h *Head) Append(runID string, ev *store.Event) { h.append(nil, runID, ev) }

func (h *Head) append(s *store.Sealing, runID string, ev *store.Event) {
	h.Seq++
	ev.Seq, ev.Branch = h.Seq, h.Branch
	ev.Sum = s.Seal(runID, h.Sum, ev)
	h.Sum = ev.Sum
}

// AppendSealed is Append for an event whose payload is not sealed yet.
func (h *Head) AppendSealed(s *payload.Sealer, runID string, ev *store.Event) {
	ev.Branch = h.Branch
	ev.Payload = s.Seal(payload.PlaceOf(runID, ev), ev.Payload)
	h.Append(runID, ev)
}
