package durable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// unheard is a child of which a run that waits for it will not hear.
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

// advice says what lets the parent with this row go on.
func (u *unheard) advice(parent *store.Run) string {
	if u.row == nil {
		return adviceMissing(parent)
	}
	return fmt.Sprintf("operate.On(engine).Resume(ctx, %q), which tells it", parent.ID)
}

// stuck says of the parent with this row what Verify says of it.
func (u *unheard) stuck(parent *store.Run) Stuck {
	code := CodeStranded
	if u.row == nil {
		code = CodeChildMissing
	}
	s := stuckOf(parent, code, u.text())
	s.Next = u.advice(parent)
	return s
}

// adviceMissing says what lets a run go on that waits for a child which is not in the
// store. An outcome that is imported is told to a run that waits for it.
func adviceMissing(parent *store.Run) string {
	s := "import or restore the child"
	if parent.Status == store.Waiting {
		s += ", and resume that one if it has not ended"
	} else {
		s += fmt.Sprintf(", then operate.On(engine).Resume(ctx, %q)", parent.ID)
	}
	return s + fmt.Sprintf("; or go back to before the call that started it with operate.On(engine).Jump(ctx, %q, ...), so that another one is started", parent.ID)
}

// unheardOf returns what a run will not hear of a child that it waits for; nil: it will
// hear, or has heard.
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
			return nil, nil // one that another run has started is looked at every minute
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

// tellEnd tells the parent of a child that has ended, which takes it once.
func (fam *families) tellEnd(ctx context.Context, u *unheard) error {
	for _, m := range fam.tellParentOf(u.row, u.end.ChildData, u.end.output) {
		if err := fam.eng.mailroom.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
