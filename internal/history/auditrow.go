package history

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// A rowRule decides about fields of store.Run: either the events say what they must
// be, and check compares; or nothing does, and why explains that no wrong value of
// them can make a resume wrong. docs/adr/0016-rows.md has the reasons for each.
type rowRule struct {
	fields []string
	check  func(a *Audit, row *store.Run) *RowFault
	why    string
}

// A RowFault is a field that is not what the events say.
type RowFault struct {
	Field string
	Text  string
	// Mend corrects the field and says what was done; nil: no patch of a row can.
	Mend func(p *store.RowPatch) (did string)
}

// rowRules are the rules for every field of store.Run except Last, which no store
// keeps, in the order of the findings.
var rowRules = []rowRule{
	{fields: []string{"ID"}, check: (*Audit).ruleID},
	{fields: []string{"Status"}, check: (*Audit).ruleStatus},
	{fields: []string{"Branch"}, check: (*Audit).ruleBranch},
	{fields: []string{"Generation"}, check: (*Audit).ruleGeneration},
	{fields: []string{"EndedAt"}, check: (*Audit).ruleEnd},
	{fields: []string{"Seen"}, check: (*Audit).ruleSeen},
	{fields: []string{"Epoch"}, check: (*Audit).ruleEpoch},
	{fields: []string{"DeadlineAt"}, check: (*Audit).ruleDeadline},
	{fields: []string{"Attributes"}, check: (*Audit).ruleAttributes},

	{fields: []string{"Workflow"}, check: sameAsBorn("Workflow", func(r *store.Run, b *Identity) (have, want any) { return r.Workflow, b.Workflow })},
	{fields: []string{"InitialVersion"}, check: sameAsBorn("InitialVersion", func(r *store.Run, b *Identity) (have, want any) { return r.InitialVersion, b.Version })},
	{fields: []string{"Version"}, check: (*Audit).ruleVersion},
	{fields: []string{"Parent"}, check: sameAsBorn("Parent", func(r *store.Run, b *Identity) (have, want any) { return r.Parent, b.Parent })},
	{fields: []string{"ParentKey"}, check: sameAsBorn("ParentKey", func(r *store.Run, b *Identity) (have, want any) { return r.ParentKey, b.ParentKey })},
	{fields: []string{"ForkedFrom"}, check: sameAsBorn("ForkedFrom", func(r *store.Run, b *Identity) (have, want any) { return r.ForkedFrom, b.ForkedFrom })},
	{fields: []string{"InputHash"}, check: (*Audit).ruleInputHash},
	{fields: []string{"Queue"}, check: sameAsBorn("Queue", func(r *store.Run, b *Identity) (have, want any) { return r.Queue, b.Queue })},
	{fields: []string{"Partition"}, check: sameAsBorn("Partition", func(r *store.Run, b *Identity) (have, want any) { return r.Partition, b.Partition })},
	{fields: []string{"Dedup"}, check: sameAsBorn("Dedup", func(r *store.Run, b *Identity) (have, want any) { return r.Dedup, b.Dedup })},
	{fields: []string{"Trace"}, check: sameAsBorn("Trace", func(r *store.Run, b *Identity) (have, want any) { return r.Trace, b.Trace })},
	{fields: []string{"CreatedAt"}, check: sameAsBorn("CreatedAt", func(r *store.Run, b *Identity) (have, want any) { return r.CreatedAt, b.CreatedAt })},
	{fields: []string{"Priority"}, check: (*Audit).rulePriority},

	{fields: []string{"Code", "Reason"}, check: (*Audit).ruleReason},
	{fields: []string{"Recoverable"}, check: (*Audit).ruleRecoverable},
	{fields: []string{"Owner"}, check: (*Audit).ruleOwner},
	{fields: []string{"Resumes"}, check: (*Audit).ruleResumes},
	{fields: []string{"Strikes"}, check: (*Audit).ruleStrikes},
	{fields: []string{"CancelAsked"}, check: (*Audit).ruleCancelAsked},
	{fields: []string{"Paused"}, check: (*Audit).rulePaused},
	{fields: []string{"StartedAt"}, check: (*Audit).ruleStarted},
	{fields: []string{"WakeAt"}, check: (*Audit).ruleWake},
	{fields: []string{"ArchivedSeq"}, check: (*Audit).ruleArchived},

	{fields: []string{"Inbox"}, why: "checkInbox compares it with the messages that are there"},
	{fields: []string{"UpdatedAt"}, why: "a store sets it as it likes; people see it, and an execution does not look at it"},
}

// checkRow compares the row with what the events say.
func (a *Audit) checkRow() {
	row := &a.History.Run
	if row.Code == CodeImporting {
		a.rowFinding("the import of this run did not finish: import it again")
		return
	}
	for i := range rowRules {
		if check := rowRules[i].check; check != nil {
			if f := check(a, row); f != nil {
				a.Faults = append(a.Faults, *f)
				a.rowFinding("%s", f.Text)
			}
		}
	}
}

// believed reports whether the history can be believed as far as a resume reads it,
// and all whether all of the log can.
func (a *Audit) believed() bool { return a.Bad == 0 && !a.Unreadable && a.Past.Created.Seq != 0 }
func (a *Audit) all() bool      { return a.believed() && !a.Facts.lost && a.Facts.whole }

// fault returns the finding that a field is not what the log says.
func fault[T any](field string, have, want T, mend func(p *store.RowPatch, want T)) *RowFault {
	f := &RowFault{Field: field, Text: fmt.Sprintf("its %s is %s, and the log says %s", wordOf(field), shown(have), shown(want))}
	if mend != nil {
		f.Mend = func(p *store.RowPatch) string {
			mend(p, want)
			return fmt.Sprintf("%s: %s, as the log says, and not %s", wordOf(field), shown(want), shown(have))
		}
	}
	return f
}

// shown returns the value of a field for use in a sentence.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case store.Time:
		return orNever(v)
	case [16]byte:
		return fmt.Sprintf("%x", v)
	}
	return fmt.Sprint(v)
}

// wordOf returns the name of a field for use in a sentence.
func wordOf(field string) string {
	if w := fieldWords[field]; w != "" {
		return w
	}
	b := []byte(field)
	b[0] |= 'a' - 'A'
	return string(b)
}

var fieldWords = map[string]string{
	"ID": "id", "InitialVersion": "initial version", "ParentKey": "parent key", "ForkedFrom": "source", "InputHash": "input hash", "CreatedAt": "creation",
	"StartedAt": "beginning", "EndedAt": "end", "WakeAt": "timer", "CancelAsked": "cancel asked for", "Resumes": "number of resumes", "Trace": "trace context",
}

// sameAsBorn returns the rule for a field that the first event says. No patch changes
// it.
func sameAsBorn(field string, of func(r *store.Run, b *Identity) (have, want any)) func(*Audit, *store.Run) *RowFault {
	return func(a *Audit, row *store.Run) *RowFault {
		if a.Facts.born == nil {
			return nil
		}
		if have, want := of(row, a.Facts.born); have != want {
			return fault(field, have, want, nil)
		}
		return nil
	}
}
