package durable

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/store"
)

// Standing reads where a run stands, from its row and the history of its current
// generation. Names given to Steps are those of the code that is here, or else
// those the run was started with; without any, the last completed run of the same
// workflow and version says how many steps are known.
//
// Errors: ErrNotFound; that of a history that cannot be read.
func (e *Engine) Standing(ctx context.Context, id string) (Standing, error) {
	p, err := e.pursue(ctx, id)
	if err != nil {
		return Standing{}, err
	}
	return p.standing(), nil
}

// Standings yields where a run stands now, and then each time something is
// recorded of it, by whatever process. It ends behind the end of the run, when
// ctx ends (without an error), or with an error as that of Watch.
func (e *Engine) Standings(ctx context.Context, id string) iter.Seq2[Standing, error] {
	return func(yield func(Standing, error) bool) {
		p, err := e.pursue(ctx, id)
		if err != nil {
			yield(Standing{}, err)
			return
		}
		if !yield(p.standing(), nil) || p.over() {
			return
		}
		for ev, err := range e.events(ctx, id, p.tracker.s.Seq) {
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
	eng     *Engine
	id      string
	row     store.Run // as it was when the history was read
	missing int       // resumes that are in no event of the lineage, which a cut has left behind
	tracker Tracker
}

// pursue reads a run's history and begins to follow it.
func (e *Engine) pursue(ctx context.Context, id string) (*pursuit, error) {
	p := &pursuit{eng: e, id: id}
	return p, p.read(ctx)
}

func (p *pursuit) read(ctx context.Context) error {
	v, unreadable, err := p.eng.view(ctx, p.id)
	if err == nil {
		err = unreadable
	}
	if err != nil {
		return err
	}
	t := Tracker{Names: v.declared()}
	if len(t.Names) == 0 {
		if t.Known, err = p.eng.stepsOfLastCompleted(ctx, v.Row); err != nil {
			return err
		}
	}
	for i := range v.Events {
		if err := t.Add(v.Events[i]); err != nil {
			return fmt.Errorf("durable: run %s: %w", p.id, err)
		}
	}
	// The events end where the row's last one does, so the two tell of one moment.
	p.row, p.tracker, p.missing = *v.Row, t, int(v.Row.Resumes)-t.s.Resumes
	return nil
}

// follow takes in an event that was recorded since.
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
	s.CreatedAt = p.row.CreatedAt // events of closed generations may be gone
	s.Resumes += p.missing
	if last := p.row.Last; last != nil && last.Seq == s.Seq {
		s.Status, s.Reason = p.row.Status, p.row.Reason
		s.Generation = int(p.row.Generation)
	}
	return s
}

// Executing returns the key of a step whose body this engine executes for a run
// at this moment, of several the one that began last. ok is false when there is
// none: the run is elsewhere, or waits, or is between two steps. Nothing of a
// plain step is on record before it is over, so this is how a program shows what
// it does itself.
func (e *Engine) Executing(id string) (key string, ok bool) {
	r := e.roster.active(id)
	if r == nil {
		return "", false
	}
	if body := r.bodies.current.Load(); body != nil {
		return *body, true
	}
	return "", false
}
