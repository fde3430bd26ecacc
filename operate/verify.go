package operate

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// Verification is what Verify found out about one run.
type Verification struct {
	RunID    string
	Workflow string
	Status   store.Status // as the row says
	Events   int          // how many were checked, over all branches
	Payloads int          // of events and messages, opened
	// Findings in the order of the log, followed by those about the row, the branches
	// and the inbox. Empty: nothing is wrong.
	Findings []Finding
	// More is how many findings there were beyond MaxFindings.
	More int
}

// MaxFindings is how many findings Verify keeps for one run.
const MaxFindings = history.MaxFaults

// FindingKind says how bad a finding is.
type FindingKind string

// The kinds of findings.
const (
	// FoundCorrupt: what is stored is not what was written. Repair may help.
	FoundCorrupt FindingKind = history.Corrupt
	// FoundIncompatible: what is stored is sound, but this engine cannot read it,
	// because it lacks a key, a codec or a version. Another program can.
	FoundIncompatible FindingKind = history.Incompatible
	// FoundOrphan: nothing refers to it any more. It harms nothing.
	FoundOrphan FindingKind = history.Orphan
	// FoundStranded: the run waits for a child that is not in the store, or that
	// has ended without the run getting its outcome. The text says what to do.
	FoundStranded FindingKind = "stranded"
)

// FindingPart says what a finding is about.
type FindingPart string

// The parts of a run.
const (
	PartEvent   FindingPart = "event"
	PartPayload FindingPart = "payload" // of an event
	PartRow     FindingPart = "row"
	PartBranch  FindingPart = "branch"
	PartMessage FindingPart = "message"
)

// Finding is one thing that Verify has found.
type Finding struct {
	Kind FindingKind
	Part FindingPart
	Seq  int64  // of the event or message, number of the branch; 0: of the row
	Key  string // of the event
	// Behind: it is in a part of the history that was left behind, for example by a
	// repair, or in a closed generation: no resume reads it.
	Behind bool
	Text   string
}

// String returns the finding on one line.
func (f Finding) String() string {
	s := string(f.Kind) + ": " + string(f.Part)
	if f.Seq != 0 {
		s += fmt.Sprintf(" %d", f.Seq)
	}
	if f.Key != "" {
		s += " (" + f.Key + ")"
	}
	s += ": " + f.Text
	if f.Behind {
		s += " (left behind: no resume reads it)"
	}
	return s
}

// Sound reports whether the run can be read and continued: nothing that a
// resume needs is corrupt or incompatible.
func (v *Verification) Sound() bool { return !v.needs(FoundCorrupt) && !v.needs(FoundIncompatible) }

// Corrupt reports whether something that a resume needs is damaged.
func (v *Verification) Corrupt() bool { return v.needs(FoundCorrupt) }

// Incompatible reports whether something that a resume needs is sound but cannot be
// read by this engine.
func (v *Verification) Incompatible() bool { return v.needs(FoundIncompatible) }

func (v *Verification) needs(k FindingKind) bool {
	for i := range v.Findings {
		if v.Findings[i].Kind == k && !v.Findings[i].Behind {
			return true
		}
	}
	return false
}

// verificationOf returns the findings of an audit in the form for people.
func verificationOf(v *history.Verdict) Verification {
	out := Verification{RunID: v.RunID, Workflow: v.Workflow, Status: v.Status, Events: v.Events, Payloads: v.Payloads, More: v.More}
	for _, f := range v.Faults {
		out.Findings = append(out.Findings, Finding{Kind: FindingKind(f.Kind), Part: FindingPart(f.Part), Seq: f.Seq, Key: f.Key, Behind: f.Behind, Text: f.Text})
	}
	return out
}

// Verify reads all of a run and reports what is wrong with it. It checks the sums of
// its events, over all branches and generations, and that none is missing; whether
// its history makes sense; whether its payloads can be opened with this engine's keys
// and codecs (it does not decode them into the program's types); and the row, the
// branches and the inbox against the events. It changes nothing, may be called while
// the run is executed, and reads the run as it was at the moment of the call.
//
// It cannot detect that the end of a log was cut off, as long as the row agrees. Sums
// are no protection against an attacker who can write to the store.
//
// The error is about the reading, not about the run: durable.ErrNotFound,
// durable.ErrUnavailable. A damaged run is a Verification with findings.
func (op *Operator) Verify(ctx context.Context, id string) (Verification, error) {
	h, err := op.store.Load(ctx, id, store.Cursor{All: true})
	return op.verify(ctx, id, store.Loaded{History: h, Err: err})
}

// verify is Verify of a run that was loaded.
func (op *Operator) verify(ctx context.Context, id string, loaded store.Loaded) (Verification, error) {
	a, err := op.auditOf(id, loaded, false)
	if err != nil {
		return Verification{}, fmt.Errorf("durable: verifying run %s: %w", id, storeError(err))
	}
	if err := op.verifyChildren(ctx, a); err != nil {
		return Verification{}, fmt.Errorf("durable: verifying run %s: %w", id, storeError(err))
	}
	return verificationOf(&a.Verdict), nil
}

// verifyChildren checks the children whose outcome a has not recorded.
func (op *Operator) verifyChildren(ctx context.Context, a *history.Audit) error {
	if a.Unreadable || a.Bad != 0 || a.History.Run.Status.Terminal() {
		return nil
	}
	for _, calls := range a.Past.Scopes {
		for _, rec := range calls {
			if rec.Child == "" || !rec.Opened || rec.Outcome.Seq != 0 {
				continue
			}
			lost, err := op.desk.Unheard(ctx, &a.History.Run, rec.Child)
			if err != nil {
				return err
			}
			if lost != nil {
				a.Verdict.Add(history.Fault{Kind: string(FoundStranded), Part: history.PartRow, Key: rec.Key, Text: lost.Text + ": " + lost.Advice})
			}
		}
	}
	return nil
}

// VerifyAll verifies every matching run in the order of the listing. It loads some at a time.
// It skips a run that is deleted meanwhile. It ends after an error, which is about
// the reading. Errors are those of Verify.
func (op *Operator) VerifyAll(ctx context.Context, f store.Filter) iter.Seq2[Verification, error] {
	return func(yield func(Verification, error) bool) {
		var set []store.RunCursor
		verify := func() bool {
			for i, loaded := range store.LoadAll(ctx, op.store, set) {
				v, err := op.verify(ctx, set[i].RunID, loaded)
				if errors.Is(err, store.ErrNotFound) {
					continue
				}
				if !yield(v, err) || err != nil {
					return false
				}
			}
			set = set[:0]
			return true
		}
		for row, err := range op.desk.Runs(ctx, f) {
			if err != nil {
				if verify() {
					yield(Verification{}, fmt.Errorf("durable: verifying: listing runs: %w", storeError(err)))
				}
				return
			}
			if set = append(set, store.RunCursor{RunID: row.ID, Cursor: store.Cursor{All: true}}); len(set) == verifySet && !verify() {
				return
			}
		}
		verify()
	}
}

// verifySet is how many runs VerifyAll loads at a time.
const verifySet = 50

// auditOf checks all of a run that was loaded. With keeps it holds the lineage in memory, for a
// cut.
func (op *Operator) auditOf(id string, loaded store.Loaded, keeps bool) (*history.Audit, error) {
	h, err := loaded.History, loaded.Err
	if errors.Is(err, store.ErrCorrupt) {
		a := &history.Audit{Verdict: history.Verdict{RunID: id}, History: &store.History{Run: store.Run{ID: id}}, Unreadable: true}
		a.Verdict.Add(history.Fault{Kind: history.Corrupt, Part: history.PartRow, Text: err.Error()})
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	a := history.NewAudit(h, op.payloadsOf(&h.Run))
	a.Asked, a.Keeps = id, keeps
	for ev, err := range h.Events {
		if errors.Is(err, store.ErrCorrupt) {
			a.Unreadable = true
			a.Damage(a.Before.Seq+1, "", history.PartEvent, "it cannot be read: "+err.Error())
			break
		}
		if err != nil {
			return nil, err
		}
		a.Add(&ev)
	}
	a.Finish()
	return a, nil
}

// kindOfDecode distinguishes damage from what another program could read.
func kindOfDecode(err error) string {
	if payload.IsDamage(err) {
		return history.Corrupt
	}
	return history.Incompatible
}

// payloadsOf opens the payloads of a run with the keys and codecs of this engine and,
// if it has the workflow's code, the versions of its types.
func (op *Operator) payloadsOf(row *store.Run) history.Payloads {
	served := op.desk.Serves(row.Workflow)
	return history.Payloads{
		Event: func(run string, ev *store.Event) error {
			return op.sealer.Check(payload.PlaceOf(run, ev), ev.Payload, served)
		},
		Message: func(run string, m *store.Message) error {
			return op.sealer.Check(payload.PlaceOfMessage(run, m), m.Payload, served)
		},
		Input: func(run string, ev *store.Event) (hash [16]byte, ok bool) {
			env, err := op.sealer.Unseal(payload.PlaceOf(run, ev), ev.Payload)
			if err != nil {
				return hash, false // a finding, or for another program
			}
			return payload.InputHash(env), true
		},
		Kind: kindOfDecode,
	}
}
