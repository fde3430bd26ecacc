package history

import (
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// RowFacts are what a whole log, over all branches and generations, says of the row.
// Unlike a Past, they include what a cut has left behind: that a run was paused, or who
// claimed it, remains true when the history is cut.
//
// For example, after 1 workflow_created, 2 workflow_started, 3 workflow_failed, 4
// failures_reset, 5 run_resumed, the row has been resumed once, has the owner that 5
// names as long as its epoch is that of 5, and has no code and no reason, because 4 took
// them away.
type RowFacts struct {
	// lost: an event cannot be believed, and so no count over all events can.
	lost  bool
	whole bool // the log begins with its first event

	born    *Identity // nil: the history is from before identities
	fork    *Fork
	hash    [16]byte // hash of the input, if hashed
	hashed  bool
	started store.Time // of workflow_started; 0: never
	startAt store.Time // before which the run was not to begin; 0: it may begin at once

	cuts    []store.Branch // as the events that begin them say
	version string         // to which it was pinned since it was created
	resumes int32
	claims  int32 // in a row, up to the last one: it has at most as many strikes
	claimed bool  // the previous event was a claim
	owner   string
	owned   int64 // the epoch under which
	pause   pauseState
	says    []said            // what code and reason may be
	prompts map[string]string // of waits, by their key
	left    bool              // it was claimed, or acted on, since it was created
	acted   bool              // the previous event is that of an act, of which the next is part
	endedAt store.Time
	mayGoOn bool // it failed, and Resume is offered
	Copied  bool // the row was copied (from a file), without its owner
}

// said is a code and a reason that belong together.
type said struct{ code, reason string }

// unclaimedFork reports whether the events so far are those that a fork was made with.
func (f *RowFacts) unclaimedFork() bool { return f.fork != nil && !f.left }

// take files the next event of the log; executing says that an executor executed the run,
// or had left it so, when the event was recorded.
func (f *RowFacts) take(e *store.Event, executing bool) {
	_, role := RoleOf(e.Type)
	claims := e.Type.Claims()
	switch {
	case e.Type == store.AttributesSet && e.Key == "", f.acted:
		// Set from outside, as part of the previous act: what the row says stays.
	case role == RoleCall || role == RoleItem:
		f.says = quiet
		if f.pause == pauseUnknown {
			f.pause = pauseOff // it was executed since then
		}
	}
	f.acted = e.Type == store.Edited
	f.left = f.left || role == RoleRun && e.Type != store.WorkflowCreated
	if f.pause = f.pause.After(e.Type); role != RoleRun && e.Type != store.WaitRequested {
		f.claimed = false
		return
	}
	said, err := Decode(e)
	if err != nil {
		f.lost = true
		return
	}
	if b, ok := branchOf(e, said); ok {
		f.cuts = append(f.cuts, b)
	}
	switch d := said.(type) {
	case *WaitBegun:
		f.prompts = put(f.prompts, e.Key, d.Prompt)
	case *Claim:
		f.claim(e, d, executing)
	case *Beginning:
		f.begin(e, d)
	case *Replacement:
		f.startAt = d.StartAt
	case *End:
		f.end(e, d)
	case *Stop:
		f.stop(e, d, executing)
	case *Act:
		f.act(e, d)
	case *Recovery:
		f.recover(d)
	case *Cancelling, *Marker, nil: // nil: compensated
		f.says = quiet
	}
	f.claimed = claims
}

// claim files a claim.
func (f *RowFacts) claim(e *store.Event, d *Claim, executing bool) {
	switch {
	case e.Type == store.WorkflowStarted:
		f.claims = 0
	case f.claimed:
		f.claims++
	case e.Type == store.RunResumed && executing:
		f.claims = 1
	default:
		f.claims = 0
	}
	f.owner, f.owned = d.Executor, e.Epoch
	switch {
	case e.Type == store.RunResumed:
		f.resumes++
	case e.Type == store.WorkflowStarted && f.started == 0:
		f.started = e.At
	case e.Type == store.WorkflowStarted:
		f.says = quiet
	}
	if d.Version != "" {
		f.version = d.Version
	}
}

// begin files the first event of the run, or of a later generation: that is no claim, but
// looks like one to the claim that follows (S21).
func (f *RowFacts) begin(e *store.Event, d *Beginning) {
	f.says = quiet
	if e.Type == store.WorkflowStarted {
		f.claims, f.owner, f.owned = 0, d.Executor, e.Epoch
	}
}

// quiet is the code and reason of a run that goes on, or was never stopped: none.
var quiet = []said{{}}

// end files the end of the run.
func (f *RowFacts) end(e *store.Event, d *End) {
	f.endedAt, f.mayGoOn = e.At, false
	switch e.Type {
	case store.WorkflowCompleted:
		f.says = quiet
	case store.WorkflowCancelled:
		f.says = []said{{reason: d.Reason}}
	case store.WorkflowFailed:
		f.says = []said{{d.Code, d.Reason}}
		f.mayGoOn = d.Recoverable != nil && *d.Recoverable
	}
}

// stop files that the run was stopped, or is let go on.
func (f *RowFacts) stop(e *store.Event, d *Stop, executing bool) {
	switch {
	case e.Type == store.WorkflowInterrupted && len(e.Data) == 0: // given back by the executor that had just claimed it
		f.or(said{})
	case e.Type == store.WorkflowInterrupted && d.Code == "":
		f.says = quiet
	case e.Type == store.WorkflowInterrupted:
		f.says = []said{{d.Code, d.Reason}}
	case e.Type == store.WorkflowPaused:
		if executing { // a waiting run goes on waiting, and its waits say the rest
			f.says = []said{{reason: PausedReason(d.Reason)}}
		}
	case d.Reason != "": // unpaused by the executor that has claimed it to cancel it, or has found it orphaned
		f.or(said{})
	default:
		f.says = slices.Clone(f.says)
		for i := range f.says {
			if f.says[i].code == "" {
				f.says[i].reason = ""
			}
		}
	}
}

// act files what somebody did to the run.
func (f *RowFacts) act(e *store.Event, d *Act) {
	switch e.Type {
	case store.JumpActivated, store.FailuresReset:
		f.says = quiet
	case store.JumpRequested:
		f.or(said{CodeJump, JumpReason(d.Cutoff)})
	case store.Edited:
		f.says = []said{{}, {CodeEdited, EditedReason(e.Key)}}
	}
}

// recover files that recovery, or a repair, changed the run.
func (f *RowFacts) recover(d *Recovery) {
	if d.Version != "" {
		f.version = d.Version
	}
	f.or(said{}, said{CodeRecovered, d.Reason})
	if d.Code == CodeRepaired {
		f.or(said{CodeRepaired, RepairedReason(store.Failed)}, said{CodeRepaired, RepairedReason(store.Cancelled)})
	}
}

// or adds to what the row may say.
func (f *RowFacts) or(more ...said) {
	for _, s := range more {
		if !slices.Contains(f.says, s) {
			f.says = append(f.says[:len(f.says):len(f.says)], s)
		}
	}
}

// A standstill is what keeps a run waiting, according to the lineage.
type standstill struct {
	any     bool
	wakes   []store.Time // when each ends by itself
	looks   bool         // one is for a child, at which the run may look before any of these times
	prompts []string
	// exact: a goroutine waits for each of them. Otherwise some may be left over from
	// calls around them that have ended.
	exact bool
}

// standstill returns what the run may wait for. It is called once the whole log is filed,
// and computes the answer once.
func (a *Audit) standstill() standstill {
	if a.stands == nil {
		o := a.findStandstill()
		a.stands = &o
	}
	return *a.stands
}

func (a *Audit) findStandstill() (o standstill) {
	p := a.Past
	o.exact = p.Cancel == nil && len(p.Scopes[UndoScope]) == 0
	for path, calls := range p.Scopes {
		over := p.isOver(path)
		for _, rec := range calls {
			if rec.Kind == CallFirst {
				o.exact = false // the branches that lost are left behind
			}
			if !rec.Opened || rec.Outcome.Seq != 0 {
				continue
			}
			if over {
				o.exact = false
			}
			o.any, o.looks = true, o.looks || rec.Kind == CallChild
			if rec.Until != 0 {
				o.wakes = append(o.wakes, rec.Until)
			}
			if text := a.Facts.prompts[rec.Key]; text != "" {
				o.prompts = append(o.prompts, text)
			}
		}
	}
	if at, ok := a.deadline(); ok && at != 0 {
		o.wakes = append(o.wakes, at)
	}
	slices.Sort(o.wakes)
	slices.Sort(o.prompts)
	return o
}
