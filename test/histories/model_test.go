package histories_test

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// What a client does to one run.
type input struct {
	run, op  string // claim, append, yield, leave, read
	executor string
	// Of append and yield: the last event that the client knows, and a name for the event.
	epoch, seq int64
	id         string
	// Of claim: the executors that may have been dead while it was under way.
	dead map[string]bool
}

// What it was told.
type output struct {
	unknown    bool // nothing: the operation may still take effect
	ok         bool
	epoch, seq int64 // after a claim that took the run, or as read
}

// state is everything about a run that matters to fencing.
type state struct {
	epoch, seq int64
	owner      string
	log        *entry
}

// entry is an event that a client has written.
type entry struct {
	seq    int64
	id     string
	before *entry
}

// has reports whether the event was carried out.
func (s *state) has(seq int64, id string) bool {
	for e := s.log; e != nil && e.seq >= seq; e = e.before {
		if e.seq == seq {
			return e.id == id
		}
	}
	return false
}

// write returns the state after the event of in.
func (s state) write(in input) state {
	s.seq++
	s.log = &entry{s.seq, in.id, s.log}
	if in.op == "yield" {
		s.epoch++
		s.owner = ""
	}
	return s
}

func sameLog(a, b *entry) bool {
	for a != b {
		if a == nil || b == nil || a.seq != b.seq || a.id != b.id {
			return false
		}
		a, b = a.before, b.before
	}
	return true
}

// model is the specification of one run. A claim takes a run whose owner may be dead. A write
// is accepted right after the head of the log with the epoch of the head, or if it is there
// already. What nobody was told of has no effect if it does not fit: at the end of time none does.
func model(first state) porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
			at := map[string]int{}
			for _, o := range all {
				run := o.Input.(input).run
				i, ok := at[run]
				if !ok {
					i = len(parts)
					at[run], parts = i, append(parts, nil)
				}
				parts[i] = append(parts[i], o)
			}
			return parts
		},
		Init: func() any { return first },
		Step: func(st, i, o any) (bool, any) { return step(st.(state), i.(input), o.(output)) },
		Equal: func(a, b any) bool {
			x, y := a.(state), b.(state)
			return x.epoch == y.epoch && x.seq == y.seq && x.owner == y.owner && sameLog(x.log, y.log)
		},
		DescribeOperation: func(i, o any) string { return fmt.Sprintf("%+v -> %+v", i, o) },
	}
}

func step(s state, in input, out output) (bool, any) {
	switch in.op {
	case "claim":
		free := s.owner == "" || in.dead[s.owner]
		switch {
		case out.ok:
			s.log = &entry{s.seq + 1, "claim", s.log}
			fits := free && out.epoch == s.epoch+1 && out.seq == s.seq+1
			return fits, state{out.epoch, out.seq, in.executor, s.log}
		case out.unknown && free:
			return true, state{s.epoch + 1, s.seq + 1, in.executor, &entry{s.seq + 1, "claim", s.log}}
		}
		return true, s // it may have passed over a run that others were claiming
	case "append", "yield":
		fits := in.epoch == s.epoch && in.seq == s.seq
		switch {
		case out.unknown && fits:
			return true, s.write(in)
		case out.unknown:
			return true, s
		case out.ok && s.has(in.seq+1, in.id):
			return true, s
		case out.ok != fits:
			return false, s
		case out.ok:
			return true, s.write(in)
		}
	case "leave":
		if s.owner == in.executor {
			s.owner = ""
		}
	case "read":
		return out.epoch == s.epoch && out.seq == s.seq, s
	}
	return true, s
}

// never is when what nobody was told of returns.
const never = math.MaxInt64

// beat is one that was answered.
type beat struct{ call, answer time.Duration }

// alive reports whether a client that sent these beats had a lease all the time from one moment
// to the other, whatever their delay.
func alive(beats []beat, lease, from, to time.Duration) bool {
	for _, b := range beats {
		if b.answer <= from && b.call+lease > to {
			return true
		}
	}
	return false
}
