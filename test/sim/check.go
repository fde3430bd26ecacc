package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// judge says what must hold at the end of a world.
func (s *sim) judge() {
	if s.failed() {
		return
	}
	p := s.live(0)
	if p == nil {
		s.fail("no process is left")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	op := operate.On(p.engine())
	stuck, err := op.Stuck(ctx, 100)
	if err != nil {
		s.fail("Stuck: %v", err)
	}
	known := map[string]bool{}
	rows := s.rows()
	for i := range rows {
		row := &rows[i]
		known[row.ID] = true
		if s.judgeRun(row, stuck); s.failed() {
			return
		}
	}
	for i := range rows {
		row := &rows[i]
		v, err := op.Verify(ctx, row.ID)
		if err != nil {
			s.fail("Verify of %s: %v", row.ID, err)
		} else if !v.Sound() {
			s.fail("%s is %s, and Verify finds: %v", row.ID, row.Status, v.Findings)
		}
		s.judgeLog(row)
		s.judgeEffects(row)
		s.judgeOutput(ctx, op, row)
		s.judgeAnswer(row)
		s.judgePublished(durable.NewContext(ctx, p.engine()), row)
		if i := slices.IndexFunc(rows, func(r store.Run) bool { return r.ID == row.Parent }); i >= 0 {
			s.judgeChild(row, &rows[i])
		}
		if s.failed() {
			return
		}
	}
	s.judgeStarts(rows)
	s.judgeDebounce(known)
	for _, id := range s.roots() {
		if s.ledger.run(id).started && !known[id] && !s.hasAct(CleanUp) {
			s.fail("the start of %s was acknowledged, and it is not there", id)
		}
	}
}

// judgeRun judges the row of a run that was given everything it waits for.
func (s *sim) judgeRun(row *store.Run, stuck []durable.Stuck) {
	if !row.Status.Terminal() {
		said := ""
		for _, st := range stuck {
			if st.RunID == row.ID {
				said = fmt.Sprintf("; Stuck says %s: %s", st.Code, st.Reason)
			}
		}
		s.fail("%s does not end: it is %s, code %q, reason %q, owner %q%s", row.ID, row.Status, row.Code, row.Reason, row.Owner, said)
		return
	}
	t := s.ledger.run(row.ID)
	if row.Status != store.Completed && !t.meddled {
		for _, place := range slices.Concat(t.mustUndo, t.firm) {
			if !t.undone[place] {
				s.fail("%s is %s, and what it registered at %s to be undone was not: %s", row.ID, row.Status, place, row.Reason)
			}
		}
	}
	p, f := s.fateOf(row)
	isRoot := row.Parent == "" && !strings.HasPrefix(row.ID, "f-")
	switch row.Status {
	case store.Completed:
		if !f.succeeds {
			s.fail("%s completed, and cannot", row.ID)
		}
		if !s.world.clocksDiffer() && t.cancelledAt != 0 && t.cancelledAt < row.EndedAt && !t.meddled {
			s.fail("%s completed after its cancel was acknowledged", row.ID)
		}
	case store.Failed:
		if row.Code == durable.CodeDeadline && s.world.Deadline > 0 {
			return
		}
		if !f.fails && s.world.Names == 0 && !s.hasHarm(Denied) && !(!isRoot && s.world.Deadline > 0) && !(p.has(Child) && t.meddled) && !s.childWasStopped(p) {
			s.fail("%s failed, and cannot: %s: %s", row.ID, row.Code, row.Reason)
		}
	case store.Cancelled:
		switch n := s.child(row.ID); {
		case n == nil || row.Parent == "":
		case n.ID != "" && strings.Contains(row.Reason, "was taken back to before it was started"):
			s.fail("%s, whose id was chosen, is cancelled: %s", row.ID, row.Reason)
		case n.How == ByLeave && !s.meddles() && !s.hasAct(CancelRun):
			s.fail("%s was abandoned, and is cancelled: %s", row.ID, row.Reason)
		}
		if isTick(row.ID) && row.Reason == reasonOfATick && s.world.Schedule.Overlap == durable.OverlapCancel {
			return
		}
		if isRoot && !t.cancelTried {
			s.fail("%s is cancelled, and nobody has cancelled it", row.ID)
		}
		if isRoot && row.Reason != reasonOfCancel {
			s.fail("%s is cancelled, and the reason is said to be %q", row.ID, row.Reason)
		}
	}
}

// child returns the node by which a run was started as a child; nil: it is not there.
func (s *sim) child(run string) (child *Node) {
	s.mu.Lock()
	path, ok := s.paths[run]
	s.mu.Unlock()
	s.world.Program.walk("", func(at string, n *Node) {
		if ok && at == path && n.Do == Child {
			child = n
		}
	})
	return child
}

// childWasStopped reports whether a run may fail because its child was cancelled or met a
// deadline, which nobody did to the run.
func (s *sim) childWasStopped(p Program) bool {
	return p.has(Child) && (s.hasAct(CancelRun) || s.world.Deadline > 0)
}

// orphaned is how long a child may go on after the end of its parent, which cancels it.
func (s *sim) orphaned() time.Duration {
	if len(s.world.Faults)+len(s.world.Acts) == 0 {
		return 10 * time.Second
	}
	return 150 * time.Second
}

// judgeAnswer checks what somebody was told who waited for a run.
func (s *sim) judgeAnswer(row *store.Run) {
	t := s.ledger.run(row.ID)
	if !t.told || t.meddled {
		return
	}
	var ended *durable.RunError
	var step *durable.StepError
	errors.As(t.err, &ended)
	switch {
	case row.Status == store.Completed:
		if t.err != nil || !slices.Contains(t.outs, t.out) {
			s.fail("%s completed with one of %q, and who waited for it was told %q, %v", row.ID, t.outs, t.out, t.err)
		}
	case ended == nil || ended.Status != row.Status:
		s.fail("%s is %s, and who waited for it was told %q, %v", row.ID, row.Status, t.out, t.err)
	case row.Code == durable.CodeError && t.stepFailed && !errors.As(t.err, &step):
		s.fail("%s failed by the error of a step, and who waited for it does not find that: %v", row.ID, t.err)
	}
}

// judgeChild checks that a child did not outlive its parent, which has ended.
func (s *sim) judgeChild(row, parent *store.Run) {
	if n := s.child(row.ID); n != nil && n.How == ByLeave {
		return
	}
	if parent == nil || s.world.clocksDiffer() || s.ledger.run(parent.ID).meddled || s.ledger.run(row.ID).meddled {
		return
	}
	if row.EndedAt > parent.EndedAt.Add(s.orphaned()) && row.Status == store.Completed {
		s.fail("%s went on for %s after its parent had ended", row.ID, row.EndedAt.Time().Sub(parent.EndedAt.Time()))
	}
}

// fateOf returns the program of a run and its fate; any fate if the run was never executed.
func (s *sim) fateOf(row *store.Run) (Program, fate) {
	s.mu.Lock()
	path, ok := s.paths[row.ID]
	s.mu.Unlock()
	if !ok {
		return nil, fate{succeeds: true, fails: true}
	}
	p := s.world.Program.at(path)
	return p, p.fate(s.shakes(row.ID)).apart()
}

// judgeLog checks what Verify does not know: what was seen to be committed is there as it
// was, and no outcome is there twice in one history.
func (s *sim) judgeLog(row *store.Run) {
	h, err := s.data.Load(context.Background(), row.ID, store.Cursor{All: true})
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			s.fail("%s cannot be read: %v", row.ID, err)
		}
		return
	}
	var before store.Event
	s.mu.Lock()
	sums := s.sums[row.ID]
	s.mu.Unlock()
	for e, err := range h.Events {
		switch {
		case err != nil:
			s.fail("%s cannot be read: %v", row.ID, err)
			return
		case e.Seq != before.Seq+1:
			s.fail("the log of %s has a gap after event %d", row.ID, before.Seq)
		case e.At < before.At:
			s.fail("time goes back in the log of %s at event %d", row.ID, e.Seq)
		}
		if sum, ok := sums[e.Seq]; ok && sum != e.Sum {
			s.fail("event %d of %s is not what was committed", e.Seq, row.ID)
		}
		before = e
	}
	for seq := range sums {
		if seq > before.Seq {
			s.fail("event %d of %s was committed, and is not there", seq, row.ID)
		}
	}
}

// judgeOutput checks that what a run has recorded as its output is what its function
// returned.
func (s *sim) judgeOutput(ctx context.Context, op *operate.Operator, row *store.Run) {
	t := s.ledger.run(row.ID)
	if row.Status != store.Completed || len(t.outs) == 0 {
		return
	}
	h, err := s.data.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return // judgeLog says so
	}
	for e := range h.Events {
		var out string
		if e.Type != store.WorkflowCompleted {
			continue
		}
		if err := op.Decode(row.ID, e, &out); err != nil || !slices.Contains(t.outs, out) {
			s.fail("%s has the output %q (%v), and its function returned %q", row.ID, out, err, t.outs)
		}
	}
}
