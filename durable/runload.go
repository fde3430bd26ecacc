package durable

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
	"go.opentelemetry.io/otel/baggage"
)

// load reads the history of a run that was claimed, or is loaded again.
func (r *run) load() error {
	r.log.follow(&r.row) // so that an interruption can be recorded at any time
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := r.readHistory()
		var future *history.FutureEventError
		switch {
		case err == nil:
		case errors.Is(err, store.ErrCorrupt):
			return r.die(&death{kind: deathParked, code: CodeDamaged, err: err})
		case errors.As(err, &future):
			return r.die(&death{kind: deathParked, code: CodeUndecodable, err: err})
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrClosed):
			return r.die(&death{kind: deathLost, err: fmt.Errorf("%w: reading the history of run %s: %w", ErrLost, r.id, err)})
		default:
			// The run is ours, and nobody else will take it: try on.
			r.logLine(slog.LevelWarn, "durable: a history could not be read; it is tried again", slog.Any("error", err))
			select {
			case <-time.After(pause):
				continue
			case <-r.gone:
				return r.deathOf()
			}
		}
		break
	}
	r.log.followPast(&r.row, r.past)
	r.eng.metrics.count(r.ctx, r.eng.metrics.replayed, int(r.past.Steps), r.row.Workflow)
	if err := r.adopt(&r.past.Created); err != nil {
		return err
	}
	return r.unpauseClaimed()
}

func (r *run) readHistory() error {
	h, past, err := r.loadLineage()
	if err != nil {
		return err
	}
	r.past = past
	if err := r.checkRow(h); err != nil {
		return err
	}
	if err := r.checkMail(h.Inbox); err != nil {
		return err
	}
	r.spans.reenter()
	for i := range h.Branches {
		r.decided.lastBranch = max(r.decided.lastBranch, h.Branches[i].N)
	}
	if r.past.Cancel != nil {
		d, err := history.DataOf(r.past.Cancel)
		if err != nil {
			return &DamagedError{RunID: r.id, Seq: r.past.Cancel.Seq, Err: err}
		}
		r.stop.cancel(d.Reason)
	}
	r.inbox.expect(r.past.Waits, r.row.Branch)
	r.inbox.skip(past.Floor())
	r.deliver(h.Inbox)
	return nil
}

// unpauseClaimed ends the pause of a run that was claimed although it is paused,
// which a store allows when a cancel was asked for: from here on it is a run like
// any other, that can be recovered by its id.
func (r *run) unpauseClaimed() error {
	if !r.row.Paused {
		return nil
	}
	no := false
	return r.write(&write{
		events: []store.Event{{Type: store.WorkflowUnpaused, Data: (&history.Data{Reason: "cancelled", Message: r.inbox.seen(), Executor: r.eng.id}).Encode()}},
		row:    &store.RowPatch{Paused: &no},
	})
}

// adopt takes over what the creation recorded.
func (r *run) adopt(created *store.Event) error {
	d, err := history.DataOf(created)
	if err != nil {
		return r.damaged(created.Seq, err)
	}
	seed, err := hex.DecodeString(d.Seed)
	if err != nil || len(seed) != 8 {
		return r.damaged(created.Seq, errors.New("its seed is not readable"))
	}
	r.origin.seed = binary.BigEndian.Uint64(seed)
	r.origin.maxPayload = r.eng.sealer.LimitOf(d.MaxPayload)
	if d.Fork != nil {
		r.origin.forkSeeds = d.Fork.Seeds
	}
	r.origin.headers, r.origin.exclusive, r.origin.trace = d.Headers, d.Exclusive, startTraceOf(&d)
	r.carry(d.Baggage)
	r.compareEnvironment(&d)
	r.origin.deadline = d.Deadline // the row is a cache
	r.decided.adoptAttributes(d.Attributes)
	r.decided.answers = r.past.Answers
	r.origin.input, r.origin.inputAt = created.Payload, payload.PlaceOf(r.id, created)
	if r.origin.input == nil {
		r.origin.input = []byte{}
	}
	return nil
}

// A prefetch is the history of a run, or of its current generation, read just before
// the run is claimed to be executed here. The execution reads only what was recorded
// since, at least its claim; the whole is checked like any other.
type prefetch struct {
	branch int32
	events []store.Event
}

// loadRest completes what was read of r's history. ok is false when it is of no
// use: somebody has turned to another branch since.
func (r *run) loadRest(k *prefetch) (h *store.History, p *history.Past, ok bool, err error) {
	if k.branch != r.row.Branch {
		return nil, nil, false, nil
	}
	last := k.events[len(k.events)-1].Seq
	h, err = r.eng.store.Load(r.ctx, r.id, store.Cursor{After: last, AfterMessage: math.MaxInt64})
	if err != nil || h.Run.Branch != k.branch {
		return nil, nil, false, err
	}
	h.Events = both(k.events, h.Events)
	if p, err = readPast(r.id, r.gapless(h), len(k.events)+16); err != nil {
		return h, p, true, err
	}
	mail, err := r.eng.store.Load(r.ctx, r.id, store.Cursor{NoEvents: true, AfterMessage: p.Floor()})
	if err != nil {
		return nil, nil, true, err
	}
	h.Inbox, h.Run.CancelAsked = mail.Inbox, mail.Run.CancelAsked
	return h, p, true, nil
}

// both yields the events of a list, and then the others.
func both(list []store.Event, others iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for i := range list {
			if !yield(list[i], nil) {
				return
			}
		}
		others(yield)
	}
}

// carry gives the run's context the baggage that it was started with, in every
// process.
func (r *run) carry(kept string) {
	if kept == "" {
		return
	}
	if b, err := baggage.Parse(kept); err == nil {
		r.ctx = baggage.ContextWithBaggage(r.ctx, b)
	}
}
