package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A Deed is what an Act does.
type Deed string

// What operators, programs and fate do.
const (
	SendSignals  Deed = "send signals"  // one to each wait that the run may come to
	SendPoison   Deed = "send poison"   // the same, with a value of a wrong type
	SendRequests Deed = "send requests" // one to each wait for one that the run may come to
	CancelRun    Deed = "cancel"
	PauseRun     Deed = "pause"
	UnpauseRun   Deed = "unpause"
	ResumeRun    Deed = "resume"
	ForkRun      Deed = "fork"
	JumpBack     Deed = "jump"    // to the last stable event, or one before
	EditStep     Deed = "edit"    // the last step, or one before, to the value that it has
	CopyRun      Deed = "copy"    // exported, and imported under another id
	VerifyRun    Deed = "verify"  // while it goes on
	RepairRun    Deed = "repair"  // although it is sound
	RecoverRun   Deed = "recover" // the same
	CleanUp      Deed = "clean"
	KillProcess  Deed = "kill"
	CloseProcess Deed = "close"
	OpenProcess  Deed = "open"
	SetClock     Deed = "set clock"      // of the store
	Deploy       Deed = "deploy"         // the other build of a world with a Release
	SetWall      Deed = "set wall clock" // of a process
	Suspend      Deed = "suspend"        // the machine of a process

	PauseQueue     Deed = "pause queue" // of worlds that have one
	ResumeQueue    Deed = "resume queue"
	PauseSchedule  Deed = "pause schedule" // of worlds that have one
	ResumeSchedule Deed = "resume schedule"
	Trigger        Deed = "trigger" // a run of the schedule, by hand
)

// AFault is what the call of the store begins that meets a fault: an act may begin then.
const AFault = "fault"

// AfterAct is what each call of the store is as well, from when the first act has begun: a fault
// may meet the n-th of them.
const AfterAct = "after act"

// deeds lists them.
func deeds() []Deed {
	return []Deed{SendSignals, SendPoison, SendRequests, CancelRun, PauseRun, UnpauseRun, ResumeRun, ForkRun, JumpBack, EditStep, CopyRun, MoveRun, VerifyRun, RepairRun, RecoverRun, CleanUp, KillProcess, CloseProcess, OpenProcess}
}

// reasonOfCancel is that of every cancel.
const reasonOfCancel = "enough"

func (s *sim) hasAct(d Deed) bool {
	for i := range s.world.Acts {
		if s.world.Acts[i].Do == d {
			return true
		}
	}
	return false
}

func (s *sim) isWell() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.well
}

func (s *sim) hasHarm(h Harm) bool {
	for i := range s.world.Faults {
		if s.world.Faults[i].Do == h {
			return true
		}
	}
	return false
}

// meddles reports whether somebody stops, resumes or changes runs of this world.
func (s *sim) meddles() bool {
	for _, d := range []Deed{PauseRun, ResumeRun, JumpBack, EditStep, CleanUp, CloseProcess, Suspend, Deploy} {
		if s.hasAct(d) {
			return true
		}
	}
	return false
}

// schedule has the acts wait for their events and moments.
func (s *sim) schedule() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.world.Acts {
		a := &s.world.Acts[i]
		if a.On != "" {
			s.waiting = append(s.waiting, a)
			continue
		}
		s.background(func() { s.act(a) })
	}
}

// timedActsDone reports whether no act waits for a moment, as opposed to an event.
func (s *sim) timedActsDone() bool {
	for i := range s.world.Acts {
		if a := &s.world.Acts[i]; a.On == "" && time.Since(s.began) <= a.After {
			return false
		}
	}
	return true
}

// act carries out an act through some live process.
func (s *sim) act(a *Act) {
	time.Sleep(a.After)
	s.mu.Lock()
	well := s.well
	s.acts++
	s.acting = true
	s.mu.Unlock()
	p := s.live(a.Run)
	if well || p == nil {
		return
	}
	s.trail.acted(s, a)
	switch a.Do {
	case KillProcess:
		p.kill()
		return
	case CloseProcess:
		p.stop()
		return
	case SetClock:
		before := s.now()
		s.clock.jump(a.By)
		if q := s.world.Queue; q != nil {
			s.line.clockSet(before, s.now(), q.Per)
		}
		return
	case Deploy:
		if s.world.Release != Unchanged {
			s.deploy(1 - s.current())
		}
		return
	case SetWall:
		p.own.setWall(a.By)
		return
	case Suspend:
		s.note("p%d is suspended for %s", p.n, a.By)
		p.own.suspend(a.By)
		return
	case OpenProcess:
		s.boot()
		return
	}
	eng := p.engine()
	if eng == nil {
		return
	}
	id := s.roots()[a.Run%len(s.roots())]
	ctx, cancel := context.WithTimeout(durable.NewContext(context.Background(), eng), time.Minute)
	defer cancel()
	err := s.operate(ctx, eng, a, id)
	s.note("%s of %s through p%d: %v", a.Do, id, p.n, err)
}

func (s *sim) operate(ctx context.Context, eng *durable.Engine, a *Act, id string) error {
	op := operate.On(eng)
	d := a.Do
	switch d {
	case SendSignals:
		var errs []error
		for _, name := range s.world.Program.signals() {
			errs = append(errs, durable.Signal(ctx, id, name, signalled))
		}
		return errors.Join(errs...)
	case SendPoison:
		var errs []error
		for _, name := range s.world.Program.signals() {
			s.ledger.poisons(id, name)
			errs = append(errs, durable.Signal(ctx, id, name, len(name)))
		}
		return errors.Join(errs...)
	case SendRequests:
		s.askAll(a.Run, id, s.request())
	case CopyRun:
		if s.world.Program.choosesIDs() {
			return nil // as with a fork
		}
		return s.carry(ctx, op, id)
	case VerifyRun, RepairRun, RecoverRun:
		return s.inspect(ctx, eng, d, id)
	case CancelRun:
		s.ledger.cancels(id, false)
		err := eng.Cancel(ctx, id, reasonOfCancel)
		s.ledger.cancels(id, err == nil)
		return err
	case PauseRun:
		s.ledger.pauses(id, false)
		err := eng.Pause(ctx, id, "wait")
		s.ledger.pauses(id, err == nil)
		return err
	case UnpauseRun:
		s.ledger.releases(id)
		return eng.Unpause(ctx, id)
	case ResumeRun:
		defer s.ledger.meddles(id)()
		_, err := op.Resume(ctx, id, operate.ResumeOptions{})
		return err
	case ForkRun:
		if s.world.Program.choosesIDs() {
			return nil // the fork would name its children otherwise, which is another program
		}
		_, err := op.Fork(ctx, id, operate.ForkOptions{ID: "f-" + id})
		return err
	case JumpBack, EditStep:
		last, err := s.stable(id, d == EditStep, a.Back)
		if err != nil || last == nil {
			return err
		}
		defer s.ledger.meddles(id)()
		if d == EditStep {
			var v string
			if err := op.Decode(id, *last, &v); err != nil {
				return err
			}
			_, err := op.Edit(ctx, id, last.Key, v, operate.EditOptions{Force: true})
			return err
		}
		_, err = op.Jump(ctx, id, last.Seq, operate.JumpOptions{Force: true})
		return err
	case PauseQueue, ResumeQueue, PauseSchedule, ResumeSchedule, Trigger:
		return s.operateLine(ctx, op, a)
	case MoveRun:
		if s.world.Program.choosesIDs() {
			return nil // as with a fork
		}
		return s.move(ctx, eng, a, id)
	case CancelStart:
		return s.cancelStart(ctx, eng)
	case AnswerAsked, AnswerTwice, AnswerUnasked, AnswerLate:
		return s.operateDesk(ctx, op, a, id)
	case CleanUp:
		_, err := op.Clean(ctx, operate.CleanOptions{Statuses: []store.Status{store.Completed}})
		return err
	}
	return nil
}

// operateLine carries out an act on the queue or the schedule of the world.
func (s *sim) operateLine(ctx context.Context, op *operate.Operator, a *Act) error {
	onQueue := a.Do == PauseQueue || a.Do == ResumeQueue
	if onQueue && s.world.Queue == nil || !onQueue && s.world.Schedule == nil {
		return nil
	}
	switch a.Do {
	case PauseQueue:
		acknowledged := s.line.pausing()
		err := op.PauseQueue(ctx, lineName, "wait")
		// Acts from a machine that was suspended arrive together, in any order.
		if err == nil && !s.isWell() && !s.world.suspends() {
			acknowledged()
		}
		return err
	case ResumeQueue:
		s.line.resumes()
		return op.ResumeQueue(ctx, lineName)
	case PauseSchedule:
		return op.PauseSchedule(ctx, tickName, "wait")
	case ResumeSchedule:
		return op.ResumeSchedule(ctx, tickName)
	}
	_, err := op.TriggerSchedule(ctx, tickName, fmt.Sprint("by-hand-", a.Run))
	return err
}

// stable returns the last stable event of a run but back; step: an outcome of a step.
// It returns nil if there are not so many.
func (s *sim) stable(id string, step bool, back int) (*store.Event, error) {
	var all []store.Event
	h, err := s.data.Load(context.Background(), id, store.Cursor{})
	if err != nil {
		return nil, err
	}
	for e, err := range h.Events {
		if err != nil {
			return nil, err
		}
		if e.Type == store.StepCompleted || !step && e.Type.Stable() {
			all = append(all, e)
		}
	}
	if len(all) <= back {
		return nil, nil
	}
	return &all[len(all)-1-back], nil
}
