package durable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// unheard is a child of whose end a run that waits for it will not hear.
type unheard struct {
	child string
	row   *store.Run // nil: it is not in the store
	end   *childEnd
}

func (u *unheard) text() string {
	if u.row == nil {
		return fmt.Sprintf("it has started child run %s, which is not in the store", u.child)
	}
	return fmt.Sprintf("child run %s has ended (%s), and no message tells it", u.child, u.row.Status)
}

// advice says what lets the parent with this row continue.
func (u *unheard) advice(parent *store.Run) string {
	if u.row == nil {
		return stuck.AdviceMissing(parent)
	}
	return fmt.Sprintf("operate.On(engine).Resume(ctx, %q), which tells it", parent.ID)
}

// stuck describes the parent with this row as Verify does.
func (u *unheard) stuck(parent *store.Run) stuck.Run {
	return stuck.Unheard(parent, u.row == nil, u.text(), u.advice(parent))
}

// unheardOf returns the child if a run that waits for it will not hear of its end; nil:
// it will hear, or has heard.
func (fam *families) unheardOf(ctx context.Context, row *store.Run, child string) (*unheard, error) {
	lost := &unheard{child: child}
	c, err := fam.eng.store.Load(ctx, child, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, err
	case row.Status != store.Waiting:
		return nil, nil // it looks when it is loaded
	default:
		end, ended, err := fam.endOf(&c.Run)
		if err != nil || !ended || c.Run.Parent != row.ID {
			return nil, nil // a child that another run has started is looked at every minute
		}
		lost.row, lost.end = &c.Run, end
	}
	// Read after the end of the child, which was committed with its message.
	h, err := fam.eng.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	if err != nil {
		return nil, err
	}
	told := slices.ContainsFunc(h.Inbox, func(m store.Message) bool {
		id, _ := history.ChildOf(&m)
		return lost.row == nil && m.Kind == store.KindChild && id == child || lost.row != nil && history.IsOutcomeOf(&m, lost.row)
	})
	if told || h.Run.Status != row.Status || h.Run.Last == nil || row.Last != nil && h.Run.Last.Seq != row.Last.Seq {
		return nil, nil
	}
	return lost, nil
}

// tellEnd tells the parent of a child that the child has ended. The parent takes the
// message once.
func (fam *families) tellEnd(ctx context.Context, u *unheard) error {
	for _, m := range fam.tellParentOf(u.row, u.end.ChildData, u.end.output) {
		if err := fam.eng.mailroom.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// unheardLook finds, among waiting runs, those that will not hear of the child that
// their last event has started. It looks up many children at a time.
type unheardLook struct {
	eng   *Engine
	rows  []*store.Run
	kids  []string // of the rows
	found func(*store.Run, *unheard)
}

// eachUnheard calls found for those of the runs that will not hear of the child that their
// last event has started. It ends with the first error of rows, or its own.
func (fam *families) eachUnheard(ctx context.Context, rows iter.Seq2[*store.Run, error], found func(*store.Run, *unheard)) error {
	look := unheardLook{eng: fam.eng, found: found}
	for row, err := range rows {
		if err == nil {
			err = look.add(ctx, row)
		}
		if err != nil {
			return err
		}
	}
	return look.flush(ctx)
}

func (u *unheardLook) add(ctx context.Context, row *store.Run) error {
	if row.Last == nil || row.Last.Type != store.ChildStarted {
		return nil
	}
	d, err := history.Of[history.ChildBegun](row.Last)
	if err != nil || d.Child == "" {
		return nil // its execution finds the damage
	}
	u.rows, u.kids = append(u.rows, row), append(u.kids, d.Child)
	if len(u.rows) < scanPage/2 {
		return nil
	}
	return u.flush(ctx)
}

func (u *unheardLook) flush(ctx context.Context) error {
	if len(u.rows) == 0 {
		return nil
	}
	live := make(map[string]bool, len(u.kids))
	for row, err := range u.eng.runsOf(ctx, store.Filter{IDs: u.kids}) {
		if err != nil {
			return err
		}
		live[row.ID] = !row.Status.Terminal()
	}
	for i, row := range u.rows {
		if live[u.kids[i]] {
			continue
		}
		lost, err := u.eng.families.unheardOf(ctx, row, u.kids[i])
		if errors.Is(err, store.ErrNotFound) {
			continue // the parent has gone, too
		}
		if err != nil {
			return err
		}
		if lost != nil {
			u.found(row, lost)
		}
	}
	u.rows, u.kids = nil, nil
	return nil
}
