package sim

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// inTx is the key of the transaction in the context of a body.
type inTx struct{}

// transact makes a transactional step.
func (x *pass) transact(ctx context.Context, name, scope, path string, n *Node) (string, error) {
	body := func(ctx context.Context, tx *sql.Tx) (string, error) {
		v, err := x.body(scope, path, n)(context.WithValue(ctx, inTx{}, tx))
		if err == nil {
			x.sim.txs.succeeds(tx)
		}
		return v, err
	}
	if n.Max < 2 {
		return durable.Transact(ctx, name, body)
	}
	return durable.RetryTransact(ctx, name, n.policy(), body)
}

// writes is what the body of a transactional step does in its transaction: it writes its effect,
// starts the run that its node has as Body, and sends the own run a signal if its node says so.
func (x *pass) writes(ctx context.Context, a durable.AttemptInfo, path string, n *Node) error {
	tx, _ := ctx.Value(inTx{}).(*sql.Tx)
	if err := x.process.link.write(tx, effect{run: x.run, key: a.Key, attempt: a.Number}); err != nil {
		return err
	}
	if len(n.Body) > 0 {
		if _, err := x.sim.ref().Start(ctx, durable.AutoID, Input{Path: path}, durable.InTx(tx)); err != nil {
			return err
		}
	}
	if names := x.sim.world.Program.signals(); n.How == ByTell && len(names) > 0 {
		return durable.Signal(ctx, x.run, names[0], signalled, durable.InTx(tx))
	}
	return nil
}

// write writes an effect in a transaction.
func (l *link) write(tx *sql.Tx, e effect) error {
	if l.down() != nil {
		return errNoConnection
	}
	all := l.process.sim.txs
	all.mu.Lock()
	defer all.mu.Unlock()
	t := all.of(tx)
	if t == nil {
		return errNoConnection
	}
	t.effects = append(t.effects, e)
	return nil
}

// succeeds notes that the body of a transaction returns no error.
func (all *transactions) succeeds(tx *sql.Tx) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if t := all.of(tx); t != nil {
		for i := range t.effects {
			t.effects[i].good = true
		}
	}
}

// isTransact reports whether the call of a key is a transactional step.
func isTransact(key string) bool {
	return strings.Contains(key[strings.LastIndex(key, "/")+1:], string(Transact))
}

// askEffects returns what is wrong with effects that are to be committed with a Change; empty:
// nothing is.
func (s *sim) askEffects(c *store.Change, effects []effect) string {
	if len(effects) != 1 || len(c.Events) == 0 {
		return fmt.Sprintf("a transaction with %d effects is committed with %d events", len(effects), len(c.Events))
	}
	e, last := effects[0], &c.Events[len(c.Events)-1]
	at := fmt.Sprintf("the effect of attempt %d of %s", e.attempt, e.key)
	switch {
	case last.Type != store.StepCompleted || last.Key != e.key || int(last.Attempt) != e.attempt || c.RunID != e.run:
		return fmt.Sprintf("%s of %s is committed with %s of attempt %d of %s", at, e.run, last.Type, last.Attempt, last.Key)
	case !e.good:
		return at + " is committed, and its body did not succeed"
	}
	h, err := s.data.Load(context.Background(), c.RunID, store.Cursor{})
	if err != nil {
		return err.Error()
	}
	done := false
	for e, err := range h.Events {
		switch {
		case err != nil:
			return err.Error()
		case e.Type == store.WorkflowContinued:
			done = false
		case e.Key == last.Key && (e.Type == store.StepCompleted || e.Type == store.StepFailed):
			done = true
		}
	}
	if done {
		return at + " is committed, and the step had an outcome"
	}
	return ""
}

// askBare checks that no outcome of a transactional step is written without its transaction,
// unless an operator copies it or sets it.
func (s *sim) askBare(c *store.Change) {
	if c.Create != nil || strings.HasPrefix(c.RunID, "f-") {
		return
	}
	for i := range c.Events {
		e := &c.Events[i]
		if e.Type != store.StepCompleted || !isTransact(e.Key) {
			continue
		}
		s.mu.Lock()
		known := e.Seq <= s.heads[c.RunID]
		s.mu.Unlock()
		s.ledger.mu.Lock()
		changed := s.ledger.run(c.RunID).lineage%2 == 1
		s.ledger.mu.Unlock()
		if !known && !changed {
			s.fail("%s: the outcome of %s is committed without its transaction", c.RunID, e.Key)
		}
	}
}

// judgeEffects checks that each effect in the book has its outcome in the log of its run, each in
// one of its own, and each outcome its effect, unless an operator has copied or set it.
func (s *sim) judgeEffects(row *store.Run) {
	h, err := s.data.Load(context.Background(), row.ID, store.Cursor{All: true})
	if err != nil {
		return // judgeLog says so
	}
	s.txs.mu.Lock()
	defer s.txs.mu.Unlock()
	at := map[int64]effect{}
	for _, e := range s.txs.effects {
		if e.run != row.ID {
			continue
		}
		if _, twice := at[e.seq]; twice {
			s.fail("%s: two effects have the outcome %d", row.ID, e.seq)
		}
		at[e.seq] = e
	}
	copied := s.ledger.wasMeddled(row.ID) || strings.HasPrefix(row.ID, "f-")
	for e, err := range h.Events {
		if err != nil {
			return
		}
		did, ok := at[e.Seq]
		switch {
		case ok && (e.Type != store.StepCompleted || e.Key != did.key):
			s.fail("%s: the effect of %s was committed as event %d, which is %s of %s", row.ID, did.key, e.Seq, e.Type, e.Key)
		case !ok && e.Type == store.StepCompleted && isTransact(e.Key) && !copied:
			s.fail("%s: %s has the outcome %d, and no effect", row.ID, e.Key, e.Seq)
		}
		delete(at, e.Seq)
	}
	for seq, e := range at {
		s.fail("%s: the effect of %s was committed as event %d, which is not there", row.ID, e.key, seq)
	}
}

// judgeStarts checks that what transactions have started is there if they were committed, and
// otherwise not.
func (s *sim) judgeStarts(rows []store.Run) {
	s.txs.mu.Lock()
	defer s.txs.mu.Unlock()
	for id, committed := range s.txs.started {
		there := slices.ContainsFunc(rows, func(r store.Run) bool { return r.ID == id })
		switch {
		case committed && !there && !s.hasAct(CleanUp):
			s.fail("%s was started in a transaction, and is not there", id)
		case !committed && there:
			s.fail("%s was started in a transaction that was rolled back, and is there", id)
		}
	}
}

// askOpen checks that a process that was closed has ended its transactions. A body that ignores
// its context may still be in one.
func (s *sim) askOpen(p *process) {
	if p.isDead() || s.world.Program.deaf() {
		return
	}
	s.txs.mu.Lock()
	defer s.txs.mu.Unlock()
	for _, t := range s.txs.open {
		if t.link == p.link {
			s.fail("p%d is closed and has left a transaction open", p.n)
		}
	}
}

// held returns how long a body takes: with one writer, all others wait for it.
func (x *pass) held(n *Node) time.Duration {
	if n.Do == Transact && x.sim.world.OneWriter {
		return min(n.For, time.Second)
	}
	return n.For
}

// transactions decides what the store of a world does with transactions, and has faults meet them.
func (g *Generator) transactions(w *World) {
	if !w.Program.has(Transact) {
		return
	}
	w.OneWriter = g.chance(40)
	for range pick(g, 0, 1, 1, 2) {
		w.Faults = append(slices.Clip(w.Faults), g.ofTransaction())
	}
	if g.chance(25) {
		w.Faults = append(slices.Clip(w.Faults), Fault{On: AfterAct, Nth: 1 + g.rng.IntN(4), Do: pick(g, KillAfter, KillBefore)})
		w.Acts = append(slices.Clip(w.Acts), Act{On: AFault, Nth: 1, Do: pick(g, PauseRun, CancelRun, JumpBack, KillProcess, CloseProcess), After: pick(g, 0, 50*time.Millisecond, 3*time.Second)})
	}
}

// ofTransaction makes a fault that meets a transaction.
func (g *Generator) ofTransaction() Fault {
	f := Fault{On: pick(g, aTransact, aTransact, aTransact, aBegin), Nth: pick(g, 1, 1, 1, 2, 2, 3, 4), Do: pick(g, append(harms(), Late, Late, Late, LostAfter, Conflict)...)}
	if f.Do.lasts() {
		f.For = pick(g, 100*time.Millisecond, 1500*time.Millisecond, 5*time.Second, 20*time.Second, 45*time.Second, 90*time.Second)
	}
	return f
}
