package durable

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/store"
)

// Runs are created with the microsecond of their birth as epoch. A store takes a
// creation with the epoch and the first event that are on record already for one
// whose reply was lost, and says that it is done. Two starts of the same run in
// one microsecond are one start; two imports are not: the files may differ behind
// their first event, and in their inboxes, of which only that of the first is
// there. So an engine gives no epoch to two imports, and an import that was told
// that it has created a run looks whether it was this one.

// epochs gives out epochs, each once.
type epochs struct{ last atomic.Int64 }

func (x *epochs) next(now store.Time) int64 {
	for {
		last := x.last.Load()
		if next := max(int64(now), last+1); x.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// unfinishedReason is the reason of a run while it is imported: it names the
// engine, so that no other takes the import for its own.
func (in *importing) unfinishedReason() string {
	return "its import, by " + in.eng.id + ", has not finished; import it again"
}

// ours returns an error that matches store.ErrExists if the run that was created
// is that of another import, which had the same microsecond. Of a run with a
// single event there is nothing left to be written: there it is enough that all
// of the file is there.
func (in *importing) ours(ctx context.Context) error {
	id := in.file.Run.ID
	h, err := in.eng.store.Load(ctx, id, store.Cursor{All: true})
	if err != nil {
		return err
	}
	if len(in.file.Events) > 1 {
		if h.Run.Code == CodeImporting && h.Run.Reason == in.unfinishedReason() {
			return nil
		}
		return &store.ExistsError{RunID: id}
	}
	same := slices.EqualFunc(h.Inbox, in.file.Inbox, func(a, b store.Message) bool {
		return a.Kind == b.Kind && a.ID == b.ID && a.Name == b.Name && slices.Equal(a.Payload, b.Payload)
	})
	if !same {
		return &store.ExistsError{RunID: id}
	}
	return nil
}
