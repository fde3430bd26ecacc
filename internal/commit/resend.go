package commit

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// CommitKnown commits changes that belong to no execution, and passes the context
// send to the store. It sends a change whose outcome is unknown again, unchanged,
// until the store decides about it. Only the end of ctx, or of the engine, leaves
// the outcome open; the error then matches store.ErrUnknown. It does not resend a
// change whose first answer says that it was not carried out.
func (c *Committer) CommitKnown(ctx, send context.Context, batch []store.Change) []error {
	errs, known := make([]error, len(batch)), make([]sent, len(batch))
	undecided := hearAll(c.store.Commit(send, batch), errs, known, nil)
	for pause := 5 * time.Millisecond; len(undecided) > 0; pause = min(2*pause, time.Second) {
		var why error
		select {
		case <-ctx.Done():
			why = context.Cause(ctx)
		case <-c.stop.Done():
			why = ErrClosed
		case <-time.After(pause):
		}
		if why != nil {
			for _, i := range undecided {
				errs[i] = known[i].unanswered(errs[i], why, why)
			}
			break
		}
		again := make([]store.Change, len(undecided))
		for j, i := range undecided {
			again[j] = batch[i]
		}
		undecided = hearAll(c.store.Commit(send, again), errs, known, undecided)
	}
	return errs
}

// hearAll puts the answers to the changes with these indexes (nil: all) where they
// belong, and returns the indexes of those that are still undecided.
func hearAll(answers []error, errs []error, known []sent, of []int) (undecided []int) {
	for j, err := range answers {
		i := j
		if of != nil {
			i = of[j]
		}
		errs[i] = err
		switch known[i].hear(err) {
		case open:
			undecided = append(undecided, i)
		case closed:
			errs[i] = known[i].unanswered(err, err, err)
		}
	}
	return undecided
}
