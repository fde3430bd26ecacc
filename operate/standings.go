package operate

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/store"
)

// Standing reads where a run stands, from its row and the history of its current
// generation. Names given to Steps are those of the local code, or else those the
// run was started with; without any, the last completed run of the same workflow
// and version determines how many steps are known.
//
// Errors: durable.ErrNotFound; that of a history that cannot be read.
func (op *Operator) Standing(ctx context.Context, id string) (Standing, error) {
	p, err := op.pursue(ctx, id)
	if err != nil {
		return Standing{}, err
	}
	return p.standing(), nil
}

// Standings yields where a run stands now, and again each time any process records
// something for it. It ends after the run has ended, when ctx ends (without an
// error), or with an error like that of Watch.
//
// Errors are those of durable.Engine.Watch.
func (op *Operator) Standings(ctx context.Context, id string) iter.Seq2[Standing, error] {
	return func(yield func(Standing, error) bool) {
		p, err := op.pursue(ctx, id)
		if err != nil {
			yield(Standing{}, err)
			return
		}
		if !yield(p.standing(), nil) || p.over() {
			return
		}
		for ev, err := range op.desk.Events(ctx, id, p.tracker.s.Seq) {
			if err == nil {
				err = p.follow(ctx, &ev)
			}
			if err != nil && ctx.Err() != nil {
				return
			}
			if !yield(p.standing(), err) || err != nil {
				return
			}
		}
	}
}

// A pursuit keeps a Standing up to date.
type pursuit struct {
	op      *Operator
	id      string
	row     store.Run // as it was when the history was read
	missing int       // resumes whose events a cut has left behind, so that they are not in the lineage
	tracker Tracker
}

// pursue reads a run's history and begins to follow it.
func (op *Operator) pursue(ctx context.Context, id string) (*pursuit, error) {
	p := &pursuit{op: op, id: id}
	return p, p.read(ctx)
}

func (p *pursuit) read(ctx context.Context) error {
	v, unreadable, err := p.op.view(ctx, p.id)
	if err == nil {
		err = unreadable
	}
	if err != nil {
		return err
	}
	t := Tracker{Names: v.declared()}
	if len(t.Names) == 0 {
		if t.Known, err = p.op.desk.StepsOfLastCompleted(ctx, v.Row); err != nil {
			return err
		}
	}
	for i := range v.Events {
		if err := t.Add(v.Events[i]); err != nil {
			return fmt.Errorf("durable: run %s: %w", p.id, err)
		}
	}
	// The events end where the row's last one does, so both are as of one moment.
	p.row, p.tracker, p.missing = *v.Row, t, int(v.Row.Resumes)-t.s.Resumes
	return nil
}

// follow adds an event that was recorded since.
func (p *pursuit) follow(ctx context.Context, ev *store.Event) error {
	if ev.Seq <= p.tracker.s.Seq {
		return nil // read already, with the cut that came before it
	}
	if Cuts(ev) {
		return p.read(ctx)
	}
	if err := p.tracker.Add(*ev); err != nil {
		return fmt.Errorf("durable: run %s: %w", p.id, err)
	}
	return nil
}

func (p *pursuit) over() bool { return p.tracker.s.Status.Terminal() }

func (p *pursuit) standing() Standing {
	s := p.tracker.Standing()
	s.CreatedAt = p.row.CreatedAt // the events of closed generations may be gone
	s.Resumes += p.missing
	if last := p.row.Last; last != nil && last.Seq == s.Seq {
		s.Status, s.Reason = p.row.Status, p.row.Reason
		s.Generation = int(p.row.Generation)
	}
	return s
}
