package history

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

func (a *Audit) ruleID(row *store.Run) *RowFault {
	if a.Asked != "" && row.ID != a.Asked {
		return &RowFault{Field: "ID", Text: fmt.Sprintf("its id is %q, and it is kept as %q", row.ID, a.Asked)}
	}
	return nil
}

// ruleStatus: a repair decides about anything else that is wrong with a status.
func (a *Audit) ruleStatus(row *store.Run) *RowFault {
	switch {
	case !row.Status.Valid():
		return &RowFault{Field: "Status", Text: fmt.Sprintf("its status is %q, which is none", row.Status)}
	case a.Bad == 0 && !a.Unreadable && !a.Agrees(row):
		return &RowFault{Field: "Status", Text: fmt.Sprintf("its status is %s, and the log says otherwise: its last word is %s", row.Status, a.Life.Last)}
	}
	return nil
}

// Agrees reports whether the row has a status that the log allows. A waiting run must
// wait for something.
func (a *Audit) Agrees(row *store.Run) bool {
	return a.Life.agrees(row) && (row.Status != store.Waiting || !a.believed() || a.standstill().any)
}

func (a *Audit) ruleBranch(row *store.Run) *RowFault {
	if row.Branch == a.Branch {
		return nil
	}
	return &RowFault{"Branch", fmt.Sprintf("it is on branch %d, and the log ends on %d", row.Branch, a.Branch), func(p *store.RowPatch) string {
		p.Branch = &a.Branch
		return fmt.Sprintf("current branch: %d, as the log ends, and not %d", a.Branch, row.Branch)
	}}
}

func (a *Audit) ruleGeneration(row *store.Run) *RowFault {
	g := a.Branches[a.Branch].Generation
	if g == row.Generation {
		return nil
	}
	return &RowFault{"Generation", fmt.Sprintf("it is in generation %d, and its branch %d belongs to %d", row.Generation, a.Branch, g), func(p *store.RowPatch) string {
		p.Generation = &g
		return fmt.Sprintf("generation: %d, as its branch says, and not %d", g, row.Generation)
	}}
}

// ruleEnd: if the history has no identity, the row has the moment at which the end was
// about to be recorded, which is a little earlier.
func (a *Audit) ruleEnd(row *store.Run) *RowFault {
	ended, exact := a.Facts.endedAt, a.Facts.born != nil && a.all() && a.Facts.endedAt != 0
	switch {
	case !row.Status.Valid():
		return nil
	case (row.EndedAt != 0) == row.Status.Terminal() && (row.EndedAt == 0 || !exact || row.EndedAt == ended):
		return nil
	}
	return &RowFault{"EndedAt", fmt.Sprintf("it is %s, and its end is %s", row.Status, orNever(row.EndedAt)), func(p *store.RowPatch) string {
		at := store.Time(0)
		switch {
		case row.Status.Terminal() && exact:
			at = ended
		case row.Status.Terminal() && row.Last != nil:
			at = row.Last.At
		}
		p.EndedAt = &at
		return "end: " + orNever(at)
	}}
}

// ruleSeen: if the number is too low, the run is looked at again, which does no harm.
// If it is too high, a run with a message stays asleep.
func (a *Audit) ruleSeen(row *store.Run) *RowFault {
	again := func(p *store.RowPatch) string {
		p.Seen = new(int64)
		return "messages seen: none, so that all are looked at"
	}
	if row.Seen > row.Inbox || row.Seen < 0 {
		return &RowFault{"Seen", fmt.Sprintf("it has seen %s of %d", count.Of(row.Seen, "message"), row.Inbox), again}
	}
	if row.Status != store.Waiting || !a.believed() || !a.standstill().exact {
		return nil
	}
	for i := range a.History.Inbox {
		m := &a.History.Inbox[i]
		if m.Seq > row.Seen || a.Past.Consumed(m) {
			continue
		}
		for key, w := range a.Past.Waits {
			if w.Wants(m, WaitKey(key, a.Branch)) {
				return &RowFault{"Seen", fmt.Sprintf("it has seen %s, and %s waits for message %d", count.Of(row.Seen, "message"), key, m.Seq), again}
			}
		}
	}
	return nil
}

func (a *Audit) ruleEpoch(row *store.Run) *RowFault {
	if last := row.Last; last != nil && last.Epoch != row.Epoch {
		return &RowFault{Field: "Epoch", Text: fmt.Sprintf("its epoch is %d, and that of its last event %d", row.Epoch, last.Epoch)}
	}
	return nil
}

func (a *Audit) ruleDeadline(row *store.Run) *RowFault {
	want, ok := a.deadline()
	if !ok || want == row.DeadlineAt {
		return nil
	}
	return &RowFault{"DeadlineAt", fmt.Sprintf("its deadline is %s, and was set to %s", orNever(row.DeadlineAt), orNever(want)), func(p *store.RowPatch) string {
		p.DeadlineAt = &want
		return "deadline: " + orNever(want)
	}}
}

func (a *Audit) ruleAttributes(row *store.Run) *RowFault {
	want, ok := a.attributes()
	if !ok || maps.Equal(want, row.Attributes) {
		return nil
	}
	return &RowFault{"Attributes", fmt.Sprintf("its attributes are %v, and were set to %v", row.Attributes, want), func(p *store.RowPatch) string {
		if p.Attributes = want; want == nil {
			p.Attributes = map[string]string{}
		}
		return fmt.Sprintf("attributes: %v", want)
	}}
}

// ruleVersion: a run that was created without a version is pinned by its first claim.
// A crash may come between that and the row.
func (a *Audit) ruleVersion(row *store.Run) *RowFault {
	b := a.Facts.born
	if b == nil || !a.all() {
		return nil
	}
	want := b.Version
	if a.Facts.version != "" {
		want = a.Facts.version
	}
	if row.Version == want || row.Version == "" && b.Version == "" {
		return nil
	}
	return fault("Version", row.Version, want, func(p *store.RowPatch, want string) { p.Version = &want })
}

func (a *Audit) ruleInputHash(row *store.Run) *RowFault {
	if a.Facts.born == nil || !a.Facts.hashed || row.InputHash == a.Facts.hash {
		return nil
	}
	return fault("InputHash", row.InputHash, a.Facts.hash, nil)
}

func (a *Audit) rulePriority(row *store.Run) *RowFault {
	if b := a.Facts.born; b != nil && row.Priority != b.Priority {
		return fault("Priority", row.Priority, b.Priority, func(p *store.RowPatch, want int32) { p.Priority = &want })
	}
	return nil
}

// ruleReason: for a run that waits, the waits decide; for any other, the last event
// that changes code and reason.
func (a *Audit) ruleReason(row *store.Run) *RowFault {
	if !a.all() || !row.Status.Valid() || !a.Agrees(row) {
		return nil
	}
	may := a.Facts.says
	switch {
	case row.Status == store.Interrupted && row.Code == CodeImported:
		was := a.Life.may // the statuses in the store from which it was exported
		if may = nil; len(was) == 0 {
			was = store.Statuses()
		}
		for _, s := range was {
			may = append(may, said{CodeImported, ImportedReason(s)})
		}
	case row.Status == store.Waiting:
		may = nil
		o := a.standstill()
		if len(o.prompts) > 0 {
			may = append(may, said{CodeApproval, o.prompts[0]})
		}
		if len(o.prompts) == 0 || !o.exact {
			may = append(may, said{})
		}
		if !o.exact {
			for _, text := range o.prompts {
				may = append(may, said{CodeApproval, text})
			}
		}
	}
	have := said{row.Code, row.Reason}
	if slices.Contains(may, have) {
		return nil
	}
	want := may[0]
	field := "Reason"
	if have.code != want.code {
		field = "Code"
	}
	return &RowFault{field, fmt.Sprintf("its code is %q and its reason %q, and the log says %q and %q", have.code, have.reason, want.code, want.reason), func(p *store.RowPatch) string {
		p.Code, p.Reason = &want.code, &want.reason
		return fmt.Sprintf("code and reason: %q and %q, as the log says", want.code, want.reason)
	}}
}

func (a *Audit) ruleRecoverable(row *store.Run) *RowFault {
	want := row.Status == store.Failed && a.Facts.mayGoOn
	if !a.all() || !a.Agrees(row) || row.Recoverable == want {
		return nil
	}
	return fault("Recoverable", row.Recoverable, want, func(p *store.RowPatch, want bool) { p.Recoverable = &want })
}

// ruleOwner: the executor that has claimed the run has it as long as the epoch lasts.
func (a *Audit) ruleOwner(row *store.Run) *RowFault {
	want := ""
	if a.Facts.owned == row.Epoch && slices.Contains(executed, row.Status) {
		want = a.Facts.owner
	}
	if a.Facts.owned != 0 && a.Facts.owner == "" {
		return nil // claimed by something other than an engine
	}
	if a.Facts.Copied || !a.all() || !a.Agrees(row) || row.Last == nil || row.Last.Epoch != row.Epoch || row.Owner == want {
		return nil
	}
	f := fault("Owner", row.Owner, want, nil)
	if !row.Status.Terminal() {
		// The act that records the repair leaves the run without an owner.
		f.Mend = func(*store.RowPatch) string { return "owner: nobody, so that it can be claimed" }
	}
	return f
}

func (a *Audit) ruleResumes(row *store.Run) *RowFault {
	if !a.all() || row.Resumes == a.Facts.resumes {
		return nil
	}
	return fault("Resumes", row.Resumes, a.Facts.resumes, nil)
}

// ruleStrikes: if there are too few, the run is tried once more, which does no harm.
func (a *Audit) ruleStrikes(row *store.Run) *RowFault {
	if a.Facts.Copied || !a.all() || row.Strikes >= 0 && row.Strikes <= a.Facts.claims {
		return nil
	}
	return &RowFault{"Strikes", fmt.Sprintf("it has %d strikes, and the log allows %d", row.Strikes, a.Facts.claims), func(p *store.RowPatch) string {
		p.Strikes = new(int32)
		return "strikes: none"
	}}
}

func (a *Audit) ruleCancelAsked(row *store.Run) *RowFault {
	want := row.Status != store.Cancelled && a.Past.cancelAsked(a.History.Inbox)
	if !a.believed() || !a.Agrees(row) || row.CancelAsked == want {
		return nil
	}
	return fault("CancelAsked", row.CancelAsked, want, func(p *store.RowPatch, want bool) { p.CancelAsked = &want })
}

func (a *Audit) rulePaused(row *store.Run) *RowFault {
	want := a.Facts.pause == pauseOn
	if !a.all() || a.Facts.pause == pauseUnknown || row.Paused == want {
		return nil
	}
	return fault("Paused", row.Paused, want, func(p *store.RowPatch, want bool) { p.Paused = &want })
}

// ruleStarted: a run that is executed where it is created begins at that moment, a
// little before its event is recorded. The same holds for a fork.
func (a *Audit) ruleStarted(row *store.Run) *RowFault {
	if !a.all() || a.Facts.born == nil && row.StartedAt == 0 {
		return nil
	}
	want, created := a.Facts.started, row.CreatedAt
	if a.Facts.born != nil {
		created = a.Facts.born.CreatedAt
	}
	if want == 0 && a.Facts.fork != nil {
		want = created
	}
	if row.StartedAt == want || want != 0 && row.StartedAt == created {
		return nil
	}
	return fault("StartedAt", row.StartedAt, want, func(p *store.RowPatch, want store.Time) { p.StartedAt = &want })
}

// ruleWake: if the timer is too early, the run is looked at once more. If it is too
// late, or missing, the run stays asleep.
func (a *Audit) ruleWake(row *store.Run) *RowFault {
	want := store.Time(0)
	switch {
	case !a.believed() || !a.Agrees(row):
		return nil
	case row.Status == store.Waiting:
		o := a.standstill()
		if len(o.wakes) > 0 {
			want = o.wakes[0]
		}
		if o.looks && row.WakeAt != 0 && (want == 0 || row.WakeAt < want) {
			return nil
		}
		if !o.exact && (row.WakeAt == 0 || slices.Contains(o.wakes, row.WakeAt)) {
			return nil
		}
	case row.Status == store.Pending && row.CancelAsked && row.WakeAt == 0:
		return nil // it no longer waits for its time (S15)
	case row.Status == store.Pending:
		want = a.Facts.startAt
	case row.Status == store.Interrupted, row.Status == store.Resuming, row.WakeAt == a.Facts.startAt:
		return nil // nothing looks at it
	}
	if row.WakeAt == want {
		return nil
	}
	return fault("WakeAt", row.WakeAt, want, func(p *store.RowPatch, want store.Time) { p.WakeAt = &want })
}

// ruleArchived: no event says what is in an archive. If the number is too low, the run
// is archived again.
func (a *Audit) ruleArchived(row *store.Run) *RowFault {
	if a.Facts.Copied || row.Last == nil || row.ArchivedSeq >= 0 && row.ArchivedSeq <= row.Last.Seq {
		return nil
	}
	return &RowFault{"ArchivedSeq", fmt.Sprintf("it is archived up to event %d, and its last one is %d", row.ArchivedSeq, row.Last.Seq), func(p *store.RowPatch) string {
		p.ArchivedSeq = new(int64)
		return "archived: nothing, so that it is archived again"
	}}
}
