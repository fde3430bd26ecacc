package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// errNo is in what a run says that refuses a request.
var errNo = errors.New("no")

// asked is the value of a request with this id.
func asked(id string) string { return "asked " + id }

// answered is what the node at a path replies to a request with this id.
func answered(path, id string) string { return path + " answers " + id }

// answer takes a request and answers it.
func (x *pass) answer(ctx context.Context, path string, n *Node) (string, error) {
	var o []durable.AwaitOption
	if n.For > 0 {
		o = append(o, durable.Timeout(n.For))
	}
	q, err := durable.AwaitRequest[string](ctx, path, o...)
	if errors.Is(err, durable.ErrTimeout) {
		return "timeout", nil
	} else if err != nil {
		return "", err
	}
	if q.Value != asked(q.ID()) {
		x.sim.fail("%s: the request %s at %s has the value %q", x.run, q.ID(), path, q.Value)
	}
	if n.Fails > 0 {
		err = q.Refuse(ctx, fmt.Errorf("%w to %s", errNo, q.ID()))
	} else {
		err = q.Reply(ctx, answered(path, q.ID()))
	}
	if err == nil && n.Max > 1 {
		var before *durable.AnsweredError
		if err = q.Reply(ctx, "again"); err == nil {
			x.sim.fail("%s: the request %s at %s is answered twice", x.run, q.ID(), path)
		} else if errors.As(err, &before) {
			err = nil
		}
	}
	return q.ID(), err
}

// asks makes a request beside the world, as a program does that wants the answer, through one
// process after the other and always with the same id, until it is answered or the run has ended.
func (s *sim) asks(i int, run, path, id string) {
	s.inTurn(i, func(ctx context.Context, p *process) (done bool) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		out, err := durable.Request[string](ctx, run, path, asked(id), durable.SignalID(id))
		return (err == nil || !p.isOver()) && s.toldOf(run, path, id, out, err)
	})
}

// inTurn is a client that asks one process after the other, until it is done.
func (s *sim) inTurn(i int, ask func(ctx context.Context, p *process) (done bool)) {
	s.clients.Go(func() {
		for ; !s.isEnding(); time.Sleep(time.Second) {
			p := s.live(i)
			if p == nil {
				continue
			}
			i++
			if ask(durable.NewContext(context.Background(), p.engine()), p) {
				return
			}
		}
	})
}

// toldOf judges what the sender of a request was told, and reports whether that is the last word.
func (s *sim) toldOf(run, path, id, out string, err error) bool {
	var refused *durable.RefusedError
	var over *durable.NotRunningError
	n := s.world.Program.node(path)
	switch {
	case err == nil:
		if out != answered(path, id) || n.Fails > 0 {
			s.fail("%s: the request %s at %s was answered with %q", run, id, path, out)
		}
	case errors.As(err, &refused):
		if n.Fails == 0 || !strings.Contains(refused.Error(), errNo.Error()+" to "+id) {
			s.fail("%s: the request %s at %s was refused: %v", run, id, path, err)
		}
	case errors.As(err, &over):
		if h, err := s.data.Load(context.Background(), run, store.Cursor{NoEvents: true}); err == nil && !h.Run.Status.Terminal() && !s.ledger.wasMeddled(run) {
			s.fail("%s is %s, and who asked it was told that it has ended: %v", run, h.Run.Status, over)
		}
	case errors.Is(err, durable.ErrNotFound):
		return s.hasAct(CleanUp) // else it has not been started
	default:
		return false
	}
	return true
}

// request returns the id of a request.
func (s *sim) request() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return fmt.Sprint("request ", s.requests)
}

// askAll makes a request of each name that a run may wait for.
func (s *sim) askAll(i int, run, id string) {
	for _, path := range s.world.Program.questions() {
		s.asks(i, run, path, id+" at "+path)
	}
}

// follow waits until a run has published something, as a program does that shows how far it is.
func (s *sim) follow(i int, run string) {
	s.inTurn(i, func(ctx context.Context, p *process) (done bool) {
		v, err := durable.WaitPublished[string](ctx, run, "state", nil)
		var over *durable.NotRunningError
		if p.isOver() {
			return false
		}
		if n := s.world.Program.node(v); err == nil && (n == nil || n.Do != Publish) {
			s.fail("%s has published %q, who waited for that was told", run, v)
		}
		if errors.As(err, &over) {
			s.ledger.silent(run)
		}
		return err == nil || over != nil || errors.Is(err, durable.ErrNotFound) && s.hasAct(CleanUp)
	})
}

// silent notes that who waited for what a run publishes was told that it has published nothing.
func (l *ledger) silent(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run(run).silent = true
}

// judgePublished checks what a run has published, and what who waited for that was told.
func (s *sim) judgePublished(ctx context.Context, row *store.Run) {
	v, ok, err := durable.Published[string](ctx, row.ID, "state")
	t := s.ledger.run(row.ID)
	switch n := s.world.Program.node(v); {
	case err != nil:
		s.fail("Published of %s: %v", row.ID, err)
	case ok && (n == nil || n.Do != Publish):
		s.fail("%s has published %q", row.ID, v)
	case ok && t.silent && !t.meddled:
		s.fail("%s has published %q, and who waited for that was told that there is nothing", row.ID, v)
	}
}

// accepted is the check of a Seek.
func accepted(v string) error {
	if strings.HasPrefix(v, "refused ") {
		return fmt.Errorf("%s is refused %w", v, errOfBody)
	}
	return nil
}

// refusedResult is what an attempt of a Seek returns that its check refuses.
func refusedResult(path string, attempt int) string {
	return fmt.Sprintf("refused %d %s", attempt, path)
}

// asksRefused checks that an attempt of a Seek finds what the ones before it returned.
func (x *pass) asksRefused(a durable.AttemptInfo, path string) {
	for _, f := range a.Failures {
		var v string
		if ok, err := f.Output(&v); err != nil || ok && v != refusedResult(path, f.Attempt) {
			x.sim.fail("%s: attempt %d of %s finds that attempt %d returned %q, %v", x.run, a.Number, a.Key, f.Attempt, v, err)
		}
	}
}

// happens notes that the effect of a Settled body is in the world.
func (l *ledger) happens(ctx context.Context, x *pass, path string) {
	if x.process.isDead() || ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := durable.IdempotencyKey(ctx)
	// A body that is under way while its machine is suspended goes on beside that of the next owner.
	if l.effects[key] && l.run(x.run).lineage == 0 && !l.sim.world.clocksDiffer() && !l.sim.hasAct(Suspend) {
		l.sim.fail("%s: the effect of %s has happened again", x.run, path)
	}
	l.effects[key] = true
}

// happened is the Reconcile of a Settled node: it looks into the world.
func (x *pass) happened(path string) func(ctx context.Context) (string, bool, error) {
	return func(ctx context.Context) (string, bool, error) {
		l := x.sim.ledger
		l.mu.Lock()
		defer l.mu.Unlock()
		return path, l.effects[durable.IdempotencyKey(ctx)], nil
	}
}
