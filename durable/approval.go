package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Approval is a wait for a person that nobody has answered yet.
type Approval struct {
	RunID    string
	Workflow string
	Key      string     // of the wait
	Name     string     // it was asked for under
	Prompt   string     // what the person is asked
	Answer   string     // the signal name that answers this wait and no other; see WaitKey
	AskedAt  store.Time // when it was asked first
	Until    store.Time // when it ends by itself; 0: never
	Seq      int64      // of wait_requested

	// Sample is the JSON of the zero value of what the workflow waits for; nil:
	// not known.
	Sample json.RawMessage
}

// Approvals returns what runs ask of people at the moment, whoever executes
// them, the runs that began to wait first before the others.
func (e *Engine) Approvals(ctx context.Context) ([]Approval, error) {
	var open []Approval
	for row, err := range e.askingRuns(ctx) {
		if err != nil {
			return nil, fmt.Errorf("durable: listing approvals: %w", storeError(err))
		}
		of, err := e.pendingApprovals(ctx, row)
		if err != nil {
			return nil, err
		}
		open = append(open, of...)
	}
	return open, nil
}

// askingRuns yields the runs whose row says that a person is asked.
func (e *Engine) askingRuns(ctx context.Context) func(func(*store.Run, error) bool) {
	return e.runsOf(ctx, store.Filter{Statuses: []store.Status{store.Waiting}, Codes: []string{CodeApproval}, OldestFirst: true})
}

// announceApprovals reports the waits for a person of runs that nobody alive
// owns.
func (rc *recovery) announceApprovals(ctx context.Context, rep *Report) error {
	e := rc.eng
	live, err := e.liveExecutors(ctx)
	if err != nil {
		return err
	}
	for row, err := range e.askingRuns(ctx) {
		if err != nil {
			return fmt.Errorf("durable: recovery could not list waiting runs: %w", storeError(err))
		}
		if live[row.Owner] {
			continue
		}
		open, err := e.pendingApprovals(ctx, row)
		if err != nil {
			rep.Stuck = append(rep.Stuck, stuckOf(row, CodeDamaged, err.Error()))
			continue
		}
		for _, a := range open {
			e.log.aboutRun(slog.LevelInfo, row, "durable: approval restored", append(e.promptAttrs(a.Prompt), slog.String("wait", a.Key))...)
		}
		rep.Approvals = append(rep.Approvals, open...)
	}
	return nil
}

// pendingApprovals returns what a run asks of a person, but for what has an
// answer in the inbox that the run has not taken yet.
func (e *Engine) pendingApprovals(ctx context.Context, row *store.Run) ([]Approval, error) {
	h, err := e.store.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return nil, fmt.Errorf("durable: approvals of run %s: %w", row.ID, storeError(err))
	}
	p, err := readPast(row.ID, h.Events, 16)
	if err != nil {
		return nil, err
	}
	waits, err := openWaits(h)
	if err != nil {
		return nil, fmt.Errorf("durable: approvals of run %s: %w", row.ID, storeError(err))
	}
	var open []Approval
	for i := range waits {
		ev := &waits[i]
		d, err := history.DataOf(ev)
		if err != nil {
			return nil, &DamagedError{RunID: row.ID, Seq: ev.Seq, Err: err}
		}
		a := Approval{
			RunID: row.ID, Workflow: row.Workflow, Key: ev.Key, Name: d.Name, Prompt: d.Prompt,
			Answer: history.WaitKey(ev.Key, h.Run.Branch), AskedAt: ev.At, Until: d.Until,
			Seq: ev.Seq, Sample: d.Sample,
		}
		if d.Prompt != "" && !a.answeredBy(h.Inbox, p) {
			open = append(open, a)
		}
	}
	return open, nil
}

// answeredBy reports whether an answer is among the messages that were not
// taken.
func (a *Approval) answeredBy(inbox []store.Message, p *history.Past) bool {
	for i := range inbox {
		m := &inbox[i]
		if m.Kind == store.KindSignal && (m.Name == a.Name || m.Name == a.Answer) && !p.Consumed(m) {
			return true
		}
	}
	return false
}
