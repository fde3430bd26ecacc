package shell

import (
	"context"
	"crypto/rand"

	"github.com/holdfast-dev/holdfast/durable"
)

// inFlight is what is recorded of a command before it is started, so that the
// process that runs it again knows where it had run, and ends what is left of it.
type inFlight struct {
	Attempt int    `json:"attempt"`
	Place   Place  `json:"place"`
	Mark    string `json:"mark"`
}

// markName is the variable that tells the processes of one start of a command from
// all others: they inherit it, whatever group they move to.
const markName = "HOLDFAST_COMMAND"

// save records that a command is about to run, and returns its mark. Outside of a
// step there is nowhere to record it.
func save(ctx context.Context, place *Place) (mark string, err error) {
	mark = rand.Text()
	a := durable.Attempt(ctx)
	if a.Key == "" {
		return mark, nil
	}
	return mark, durable.SaveProgress(ctx, inFlight{Attempt: a.Number, Place: *place, Mark: mark})
}

// interrupted returns where the attempt had run that was under way when its
// process ended, nil if there was none, and ends what still runs of it.
func (w *Workspace) interrupted(ctx context.Context) (*Place, error) {
	a := durable.Attempt(ctx)
	if a.Key == "" {
		return nil, nil
	}
	before, ok, err := durable.Progress[inFlight](ctx)
	if err != nil || !ok || before.Attempt != a.Number {
		return nil, err
	}
	if n := killMarked(markName + "=" + before.Mark); n > 0 {
		durable.Logger(ctx).Warn("shell: the command of an earlier process still ran, and was killed before it is run again", "processes", n, "dir", before.Place.Dir)
	}
	return &before.Place, nil
}
