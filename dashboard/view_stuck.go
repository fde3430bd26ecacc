package dashboard

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// unclaimedFor is for how long a run that nobody has is one that somebody is about to
// take; see durable.Stuck, which counts so.
const unclaimedFor = 5 * time.Second

// isStuck reports whether a run whose status says nothing of it is stuck: its process
// is gone, or nobody who lives has its code.
func isStuck(o *outline.Outline) bool {
	run := &o.Run
	if run.Status.Terminal() || run.Paused || run.CancelAsked || run.Code != "" || o.Verdict.Tone != outline.ToneStuck || o.Now.Sub(run.UpdatedAt) < unclaimedFor {
		return false
	}
	return !o.Served || run.Status == store.Running || run.Status == store.Resuming
}
