package durable

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// load reads the history of a run that was claimed, or is loaded again.
func (r *run) load() error {
	r.log.Follow(&r.row) // so that an interruption can be recorded at any time
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
			// The run is ours, and no other executor will take it: keep trying.
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
	r.log.FollowPast(&r.row, r.past)
	r.eng.metrics.StepsReplayed(r.ctx, r.row.Workflow, int(r.past.Steps))
	if err := r.adopt(&r.past.Created); err != nil {
		return err
	}
	return r.unpauseClaimed()
}

func (r *run) readHistory() error {
	h, past, err := r.source.lineage()
	if err != nil {
		return err
	}
	r.past = past
	if err := checkRow(r.eng.sealer, &r.row, r.def.version, r.past, h); err != nil {
		return err
	}
	if err := checkMail(r.id, r.past, h.Inbox); err != nil {
		return err
	}
	if !r.claimed.counts { // a claim has entered a segment, or nobody traces
		r.ctx = r.spans.Reenter(r.ctx, &r.row, r.past)
	}
	for i := range h.Branches {
		r.decided.lastBranch = max(r.decided.lastBranch, h.Branches[i].N)
	}
	if r.past.Cancel != nil {
		d, err := history.Of[history.Cancelling](r.past.Cancel)
		if err != nil {
			return &DamagedError{RunID: r.id, Seq: r.past.Cancel.Seq, Err: err}
		}
		r.stop.cancel(d.Reason)
	}
	r.inbox.Expect(r.past.Waits, r.row.Branch)
	r.inbox.Skip(past.Floor())
	r.inbox.deliver(h.Inbox)
	return nil
}

// unpauseClaimed ends the pause of a run that was claimed although it is paused,
// which a store allows when a cancel was asked for. From here on it is a run like
// any other, and can be recovered by its id.
func (r *run) unpauseClaimed() error {
	if !r.row.Paused {
		return nil
	}
	no := false
	return kept(r, "the end of its pause", r.write(&commit.Write{
		Events: []store.Event{{Type: store.WorkflowUnpaused, Data: history.Encode(&history.Stop{Reason: "cancelled", Message: r.inbox.Seen(), Executor: r.eng.id})}},
		Row:    &store.RowPatch{Paused: &no},
	}))
}

// adopt takes over what the creation recorded.
func (r *run) adopt(created *store.Event) error {
	d, err := history.Of[history.Beginning](created)
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
	r.origin.headers, r.origin.exclusive, r.origin.trace = d.Headers, d.Exclusive, telemetry.StartOf(&d)
	r.origin.scheduled = d.Scheduled
	r.ctx = telemetry.WithBaggage(r.ctx, d.Baggage)
	if last := r.row.Last; last != nil && last.Type == store.RunResumed {
		// The run is not stopped for that: the program is to judge it.
		if list := environmentOf(&d).Differences(r.eng.program.environment); len(list) > 0 {
			r.logLine(slog.LevelWarn, "durable: the run is resumed in another environment than it was started in", slog.Any("differences", list))
		}
	}
	r.origin.deadline = d.Deadline // the row is a cache
	r.decided.adoptAttributes(d.Attributes)
	r.decided.answers = r.past.Answers
	in := r.past.Input()
	r.origin.input, r.origin.inputAt = in.Payload, payload.PlaceOf(r.id, in)
	if r.origin.input == nil {
		r.origin.input = []byte{}
	}
	return nil
}

// pin records in the row which version executes a run that was started without
// one, by a Ref of a program without the workflow's code: an executor that
// continues it must have the same version. The version is written before the
// function is called, so that no call of another version can come first.
func (r *run) pin() error {
	if r.row.Version != "" || r.def.version == "" {
		return nil
	}
	v := r.def.version
	if err := kept(r, "its version", r.write(&commit.Write{Row: &store.RowPatch{Version: &v}})); err != nil {
		return err
	}
	r.row.Version = v
	return nil
}
