package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// RunSnapshot is a run at a checkpoint, which is a wait, with everything needed to
// go on from there: its input, the results of its steps, and what it waits for.
type RunSnapshot struct {
	RunID      string          `json:"run_id"`
	WorkflowID string          `json:"workflow_id"`
	Input      json.RawMessage `json:"input,omitempty"`
	// CompletedSteps are the results of the steps that have completed, by key. A
	// result that cannot be shown (see Run.Hidden) is null here; the run still has
	// it.
	CompletedSteps map[string]json.RawMessage `json:"completed_steps"`
	// StepsInProgress are the steps that were in progress, by key, with the
	// progress they have saved (durable.SaveProgress), such as the session of an
	// agent: their bodies find it when they run again. Progress saved under a name
	// is only in the Trace.
	StepsInProgress map[string]json.RawMessage `json:"step_in_progress,omitempty"`
	ResumeAt        string                     `json:"resume_at"` // key of the last wait
	Prompt          string                     `json:"checkpoint_prompt,omitempty"`
	Trace           []Event                    `json:"trace"`

	file []byte
}

// BuildSnapshot returns the snapshot of an archived run at its last
// checkpoint_waiting event, nil if there is none. What a jump or a repair left
// behind does not count, and neither do generations that durable.Continue has
// closed: their steps are not those of the current one.
func BuildSnapshot(e *Entry) *RunSnapshot {
	s := &RunSnapshot{RunID: e.ID, WorkflowID: e.Workflow, Input: e.Input, Trace: e.Trace, file: e.File}
	s.begin()
	for i := range e.Trace {
		ev := &e.Trace[i]
		var d said
		_ = json.Unmarshal(ev.Data, &d) // unreadable data has no prompt
		switch {
		case ev.Abandoned:
		case ev.Type == store.WorkflowContinued:
			s.begin()
		case ev.Type == store.ProgressSaved && d.Slot == "":
			s.StepsInProgress[ev.Key] = ev.Value
		case ev.Type == store.StepCompleted:
			s.CompletedSteps[ev.Key] = ev.Value
			delete(s.StepsInProgress, ev.Key)
		case ev.Type == store.StepFailed:
			delete(s.StepsInProgress, ev.Key)
		case ev.Type == store.WaitRequested:
			s.ResumeAt, s.Prompt = ev.Key, d.Prompt
		}
	}
	if s.ResumeAt == "" {
		return nil
	}
	return s
}

// begin forgets the results of an earlier generation.
func (s *RunSnapshot) begin() {
	s.CompletedSteps, s.StepsInProgress = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	s.ResumeAt, s.Prompt = "", ""
}

// Option returns the snapshot as an option of Start: the run begins with the
// content of the snapshot instead of from nothing. See operate.FromExport. With no
// snapshot, a nil s, the run begins from nothing.
func (s *RunSnapshot) Option() durable.StartOption {
	if s == nil {
		return operate.FromExport(nil)
	}
	return operate.FromExport(s.file)
}

// Restore brings an archived run back into a store that does not have it, under
// its id and with its events, and resumes it unless it had ended. The run goes on
// where it was: recorded steps are skipped, a wait waits again and is answered as
// usual. It is for a store that was lost; make sure that no process still executes
// the run elsewhere.
//
// A process killed in between leaves the run parked, as imported: calling Restore
// again does the rest.
//
// Errors: store.ErrExists when the store has the run, which is then the truth;
// *durable.NotResumableError when it has half of it, of another file; those of a.Get, and of Import and Resume of operate.Operator. After an error
// of Resume the run is in the store, and Restore or Resume can be called again.
func Restore(ctx context.Context, eng *durable.Engine, a Archive, runID string) (operate.Imported, error) {
	e, err := a.Get(ctx, runID)
	if err != nil {
		return operate.Imported{}, err
	}
	in, err := operate.On(eng).Import(ctx, bytes.NewReader(e.File), operate.ImportOptions{})
	if errors.Is(err, store.ErrExists) {
		half, lookErr := halfRestored(ctx, eng, e)
		if lookErr != nil {
			return in, lookErr
		}
		if half != nil {
			in, err = *half, nil
		}
	}
	if err != nil {
		return in, err
	}
	if in.Status.Terminal() {
		return in, nil
	}
	if _, err := operate.On(eng).Resume(ctx, runID, operate.ResumeOptions{}); err != nil {
		return in, fmt.Errorf("archive: run %s was restored, and is not resumed: %w", runID, err)
	}
	return in, nil
}

// halfRestored returns the imported run if the store has exactly this copy, not
// yet resumed: the first half of a Restore.
func halfRestored(ctx context.Context, eng *durable.Engine, e *Entry) (*operate.Imported, error) {
	page, err := eng.List(ctx, store.Filter{IDs: []string{e.ID}, WithLast: true})
	if err != nil || len(page.Runs) == 0 {
		return nil, err
	}
	row := &page.Runs[0]
	if row.Code == durable.CodeImporting {
		return nil, &durable.NotResumableError{RunID: row.ID, Status: row.Status, Reason: row.Reason + ", from its own file, or delete it first"}
	}
	if row.Status != store.Interrupted || row.Code != durable.CodeImported || row.Last == nil || row.Last.Seq != e.Seq || row.Last.Sum != e.Sum {
		return nil, nil
	}
	return &operate.Imported{RunID: row.ID, Workflow: row.Workflow, Status: row.Status, Events: len(e.Trace)}, nil
}

// Restored is the result of RestoreWaiting.
type Restored struct {
	Runs   []string         // restored and resumed
	Failed map[string]error // why the others could not be restored
}

// RestoreWaiting restores every archived run that has not ended and that the
// store does not have. Call it on boot after the store was lost. A run that cannot
// be restored does not stop the others. If the process is killed in between, the
// next call does the rest. The error says that the archive could not be listed.
//
// A run that was deleted from the store before it ended is brought back if the
// archive has a copy. operate.Operator.Clean deletes such a run only with Force:
// cancel it, and the archive knows that it has ended.
func RestoreWaiting(ctx context.Context, eng *durable.Engine, a Archive) (Restored, error) {
	out := Restored{Failed: map[string]error{}}
	var ids []string
	for run, err := range a.List(ctx) {
		switch {
		case errors.Is(err, ErrUnreadable):
			out.Failed[run.ID] = err
		case err != nil:
			return out, err
		case !run.Status.Terminal():
			ids = append(ids, run.ID)
		}
	}
	for _, id := range ids {
		switch _, err := Restore(ctx, eng, a, id); {
		case errors.Is(err, store.ErrExists): // the store's run is the truth
		case err != nil:
			out.Failed[id] = err
		default:
			out.Runs = append(out.Runs, id)
		}
	}
	return out, nil
}
