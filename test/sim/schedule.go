package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// tickName is the name of the one schedule.
const tickName = "tick"

// A Schedule starts runs of the program of a world beside its roots.
type Schedule struct {
	Every   time.Duration
	Jitter  time.Duration
	Overlap durable.OverlapPolicy
	Missed  durable.MissedPolicy
	InLine  bool // its runs wait in the queue of the world
}

// reasonOfATick is why a schedule cancels a run.
const reasonOfATick = "schedule " + tickName + " starts a run in its place"

// declared is the schedule as each process declares it.
func (sc *Schedule) declared(w *durable.Workflow[Input, string]) []durable.Schedule {
	if sc == nil {
		return nil
	}
	var o []durable.StartOption
	if sc.InLine {
		o = append(o, durable.OnQueue(lineName))
	}
	times := durable.Every(sc.Every).Jitter(sc.Jitter)
	return []durable.Schedule{w.Schedule(tickName, times, Input{}, o...).Overlap(sc.Overlap).Missed(sc.Missed)}
}

// isTick reports whether a run was started by the schedule, or by hand in its place.
func isTick(id string) bool {
	return strings.HasPrefix(id, tickName+"@") && !strings.Contains(id, "/") && !strings.Contains(id, "-kid")
}

// kept is what a stored schedule says.
type kept struct {
	Settled store.Time      `json:"settled"`
	Paused  json.RawMessage `json:"paused"`
	Decided []struct {
		At    store.Time `json:"at"`
		RunID string     `json:"run_id"`
	} `json:"decided"`
	Held []store.Time `json:"held"`
	Live []string     `json:"live"`
	Last []struct {
		At      store.Time `json:"at"`
		RunID   string     `json:"run_id"`
		Outcome string     `json:"outcome"`
		Why     string     `json:"why"`
	} `json:"last"`
	Started, Skipped, Missed, Refused int64
}

// decisions returns how many fires are decided, or held.
func (k *kept) decisions() int64 {
	return k.Started + k.Skipped + k.Missed + k.Refused + int64(len(k.Decided)+len(k.Held))
}

// tickBook is what is known of the schedule outside of the store.
type tickBook struct {
	mu      sync.Mutex
	have    *kept
	decided map[string]bool // runs that were decided
}

// scheduleStored checks what was stored of the schedule.
func (s *sim) scheduleStored(sc *store.Schedule) {
	now := s.now()
	next := new(kept)
	if err := json.Unmarshal(sc.Data, next); err != nil {
		s.fail("a schedule is stored as %s", sc.Data)
		return
	}
	b := s.ticks
	b.mu.Lock()
	defer b.mu.Unlock()
	have := b.have
	b.have = next
	for _, d := range next.Decided {
		if d.At > now {
			s.fail("the fire of %s is decided %s too early", d.At.Time(), d.At.Sub(now))
		}
	}
	if have == nil {
		return
	}
	s.askOverlap(have, next, now)
	byHand := int64(0)
	if n := len(next.Last); n > 0 && next.Started == have.Started+1 && next.Settled == have.Settled && len(next.Decided) == len(have.Decided) && next.Last[n-1].Why == "triggered" {
		byHand = 1
	}
	every := s.world.Schedule.Every
	switch {
	case have.Paused != nil && next.Paused == nil: // the times meanwhile do not fire
	case next.Settled < have.Settled:
		s.fail("a schedule goes back from %s to %s", have.Settled.Time(), next.Settled.Time())
	default:
		due := int64(next.Settled.Time().UnixMicro())/every.Microseconds() - int64(have.Settled.Time().UnixMicro())/every.Microseconds()
		if got := next.decisions() - have.decisions() - byHand; got != due {
			s.fail("between %s and %s %d fires are due, and %d are decided", have.Settled.Time(), next.Settled.Time(), due, got)
		}
		if have.Paused != nil && due > 0 {
			s.fail("%d fires of a paused schedule are decided", due)
		}
	}
	if policy := s.world.Schedule.Missed; next.Missed > have.Missed && policy == durable.MissedAll {
		s.fail("fires are missed, and none may be")
	}
	if next.Refused > have.Refused {
		s.fail("a fire was refused: %s", next.Last[len(next.Last)-1].Why)
	}
}

// askOverlap checks that what is decided keeps to the policy for overlap. The book's mutex is
// held.
func (s *sim) askOverlap(have, next *kept, now store.Time) {
	fresh := 0
	for _, d := range next.Decided {
		if !s.ticks.decided[d.RunID] {
			fresh++
			s.ticks.decided[d.RunID] = true
		}
	}
	policy := s.world.Schedule.Overlap
	if policy == durable.OverlapAllow {
		if next.Skipped > have.Skipped {
			s.fail("a fire is skipped, and none may be")
		}
		return
	}
	live := ""
	rows := s.rows()
	recent := false
	for i := range rows {
		r := &rows[i]
		if !isTick(r.ID) {
			continue
		}
		if !r.Status.Terminal() && !strings.Contains(r.ID, "@now-") {
			live = r.ID
		}
		recent = recent || !r.Status.Terminal() || r.EndedAt > now.Add(-time.Second)
	}
	if fresh > 1 || fresh == 1 && live != "" {
		s.fail("a fire is decided, and %s, which was started before, has not ended", live)
	}
	if next.Skipped > have.Skipped && policy == durable.OverlapSkip && !recent && len(s.world.Faults)+len(s.world.Acts) == 0 {
		s.fail("a fire is skipped, and no run of the schedule is there")
	}
}

// askTick checks that a run of the schedule was to be started.
func (s *sim) askTick(id string) {
	if s.world.Schedule == nil || !isTick(id) || strings.Contains(id, "@now-") {
		return
	}
	s.ticks.mu.Lock()
	decided := s.ticks.decided[id]
	s.ticks.mu.Unlock()
	at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(id, tickName+"@"))
	switch {
	case err != nil:
		s.fail("the schedule has started %s: %v", id, err)
	case !decided:
		s.fail("%s is started, and that was not decided", id)
	case store.TimeOf(at) > s.now() && !s.world.clocksDiffer():
		s.fail("%s is started before its time", id)
	case at.UnixMicro()%s.world.Schedule.Every.Microseconds() != 0:
		s.fail("%s is started, and that is no time of the schedule", id)
	}
}

// quiesce has the schedule catch up with the time, and then fire no more.
func (s *sim) quiesce() {
	sc := s.world.Schedule
	if sc == nil {
		return
	}
	done := s.insist("ResumeSchedule", func(ctx context.Context, op *operate.Operator) error { return op.ResumeSchedule(ctx, tickName) })
	for i := 0; done && !s.failed(); i++ {
		time.Sleep(5 * time.Second)
		s.ticks.mu.Lock()
		settled := s.ticks.have.Settled
		s.ticks.mu.Unlock()
		if late := s.now().Sub(settled) - sc.Every - sc.Jitter; late <= 5*time.Second {
			break
		} else if i > 60 {
			s.fail("the schedule has decided nothing for %s", late)
		}
	}
	s.insist("PauseSchedule", func(ctx context.Context, op *operate.Operator) error {
		return op.PauseSchedule(ctx, tickName, "enough")
	})
	time.Sleep(time.Minute) // for what is decided to be started
	if s.world.slow() {
		time.Sleep(5 * time.Minute) // for calls of the store that stand still
	}
	s.judgeTicks()
}

// insist carries out an act until it succeeds, through one process after the other.
func (s *sim) insist(what string, f func(ctx context.Context, op *operate.Operator) error) bool {
	var err error
	for try := range 60 {
		if p := s.live(try); p != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			err = f(ctx, operate.On(p.engine()))
			cancel()
			if err == nil {
				return true
			}
			if errors.Is(err, operate.ErrScheduleNotFound) {
				return false // no process was ever open
			}
		}
		time.Sleep(time.Second)
	}
	s.fail("%s does not succeed: %v", what, err)
	return false
}

// judgeTicks checks that each fire that was decided has its run.
func (s *sim) judgeTicks() {
	there := map[string]bool{}
	for _, r := range s.rows() {
		there[r.ID] = true
	}
	s.ticks.mu.Lock()
	defer s.ticks.mu.Unlock()
	for id := range s.ticks.decided {
		if !there[id] && !s.hasAct(CleanUp) {
			s.fail("%s was decided, and is not there", id)
		}
	}
}

// literal prints a schedule as Go code.
func (sc *Schedule) literal() string {
	return fmt.Sprintf("&sim.Schedule{Overlap: %d, Missed: %d, InLine: %t%s%s}", sc.Overlap, sc.Missed, sc.InLine, field("Every", sc.Every), field("Jitter", sc.Jitter))
}

// ticked reports whether the schedule has had time to fire a few times.
func (s *sim) ticked() bool {
	return s.world.Schedule == nil || time.Since(s.began) > 4*s.world.Schedule.Every
}

// schedule adds a schedule to a world.
func (g *Generator) schedule(w *World) {
	w.Schedule = &Schedule{
		Every:   pick(g, 15*time.Second, 30*time.Second, time.Minute),
		Jitter:  pick(g, 0, 0, 0, 2*time.Second, 10*time.Second),
		Overlap: pick(g, durable.OverlapSkip, durable.OverlapAllow, durable.OverlapQueue, durable.OverlapCancel),
		Missed:  pick(g, durable.MissedOnce, durable.MissedSkip, durable.MissedAll, durable.MissedPolicy(2)),
		InLine:  w.Queue != nil && g.chance(40),
	}
	if g.chance(30) {
		w.Acts = append(w.Acts, Act{Do: Trigger, Run: g.rng.IntN(2), After: pick(g, time.Second, 20*time.Second, time.Minute)})
	}
	if g.chance(30) {
		w.Acts = append(w.Acts, Act{Do: PauseSchedule, After: pick(g, time.Second, 20*time.Second, time.Minute)})
		if g.chance(50) {
			w.Acts = append(w.Acts, Act{Do: ResumeSchedule, After: pick(g, 30*time.Second, 80*time.Second, 2*time.Minute)})
		}
	}
}
