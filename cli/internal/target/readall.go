package target

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// readTogether is how many histories are read at a time for a list.
const readTogether = 100

// readAll returns where the runs of some rows stand, in the same order.
func (l *Local) readAll(ctx context.Context, rows []store.Run, live map[string]store.Executor, names declared) []Run {
	list := make([]Run, 0, len(rows))
	for part := range slices.Chunk(rows, readTogether) {
		loads := make([]store.RunCursor, len(part))
		for i := range part {
			loads[i] = tailOf(part[i].ID)
		}
		for i, loaded := range store.LoadAll(ctx, l.Store, loads) {
			tail, err := endOf(loaded, &part[i])
			list = append(list, *l.stands(ctx, &part[i], tail, err, live, names))
		}
	}
	return list
}

// tailOf says what is read of a run: the end of its history.
func tailOf(id string) store.RunCursor {
	return store.RunCursor{RunID: id, Cursor: store.Cursor{Tail: tailed, AfterMessage: 1<<63 - 1}}
}

// tail reads the end of a run's history, and the row again, so that what is shown of a
// run is as of one moment. With an error it returns what could be read.
func (l *Local) tail(ctx context.Context, row *store.Run) (tail []store.Event, err error) {
	return endOf(store.LoadAll(ctx, l.Store, []store.RunCursor{tailOf(row.ID)})[0], row)
}

func endOf(loaded store.Loaded, row *store.Run) (tail []store.Event, err error) {
	if loaded.Err != nil {
		return nil, loaded.Err
	}
	*row = loaded.History.Run
	chain := outline.NewChain(loaded.History)
	tail = []store.Event{}
	for ev, err := range loaded.History.Events {
		if err != nil {
			return tail, err
		}
		if d := chain.Next(&ev); d != nil {
			return tail, (*durable.DamagedError)(d)
		}
		tail = append(tail, ev)
	}
	if len(tail) == 0 {
		return tail, &durable.DamagedError{RunID: row.ID, Err: durable.ErrNoHistory}
	}
	return tail, nil
}

// stands says where a run stands, from its row and the end of its history. err says why
// that end could not be read completely; without a tail, none of it could.
func (l *Local) stands(ctx context.Context, row *store.Run, tail []store.Event, err error, live map[string]store.Executor, names declared) *Run {
	s := newRun(row, live)
	if err != nil {
		s.unreadable(err)
	}
	if tail != nil {
		s.locate(tail, names.of(ctx, l.Store, row))
		if s.Damage == nil && s.Code != durable.CodeDamaged {
			s.judge(tail)
		}
	}
	return s
}
