package durable

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A rowRule decides about fields of store.Run: either the events say what they must
// be, and check compares; or nothing does, and then no wrong value of them can make a
// resume wrong, which why explains. docs/adr/0016-rows.md tells how each was decided.
type rowRule struct {
	fields []string
	check  func(a *audit, row *store.Run) *rowFault
	why    string
}

// A rowFault is a field that is not what the events say.
type rowFault struct {
	field string
	text  string
	// mend puts it right and says what was done; nil: no patch of a row can.
	mend func(p *store.RowPatch) (did string)
}

// rowRules are the rules for every field of store.Run, in the order of the findings.
// Not in them, because no store keeps it: Last.
var rowRules = []rowRule{
	{fields: []string{"ID"}, check: (*audit).ruleID},
	{fields: []string{"Status"}, check: (*audit).ruleStatus},
	{fields: []string{"Branch"}, check: (*audit).ruleBranch},
	{fields: []string{"Generation"}, check: (*audit).ruleGeneration},
	{fields: []string{"EndedAt"}, check: (*audit).ruleEnd},
	{fields: []string{"Seen"}, check: (*audit).ruleSeen},
	{fields: []string{"Epoch"}, check: (*audit).ruleEpoch},
	{fields: []string{"DeadlineAt"}, check: (*audit).ruleDeadline},
	{fields: []string{"Attributes"}, check: (*audit).ruleAttributes},

	{fields: []string{"Workflow"}, check: sameAsBorn("Workflow", func(r *store.Run, b *history.Identity) (have, want any) { return r.Workflow, b.Workflow })},
	{fields: []string{"InitialVersion"}, check: sameAsBorn("InitialVersion", func(r *store.Run, b *history.Identity) (have, want any) { return r.InitialVersion, b.Version })},
	{fields: []string{"Version"}, check: (*audit).ruleVersion},
	{fields: []string{"Parent"}, check: sameAsBorn("Parent", func(r *store.Run, b *history.Identity) (have, want any) { return r.Parent, b.Parent })},
	{fields: []string{"ParentKey"}, check: sameAsBorn("ParentKey", func(r *store.Run, b *history.Identity) (have, want any) { return r.ParentKey, b.ParentKey })},
	{fields: []string{"ForkedFrom"}, check: sameAsBorn("ForkedFrom", func(r *store.Run, b *history.Identity) (have, want any) { return r.ForkedFrom, b.ForkedFrom })},
	{fields: []string{"InputHash"}, check: (*audit).ruleInputHash},
	{fields: []string{"Queue"}, check: sameAsBorn("Queue", func(r *store.Run, b *history.Identity) (have, want any) { return r.Queue, b.Queue })},
	{fields: []string{"Partition"}, check: sameAsBorn("Partition", func(r *store.Run, b *history.Identity) (have, want any) { return r.Partition, b.Partition })},
	{fields: []string{"Dedup"}, check: sameAsBorn("Dedup", func(r *store.Run, b *history.Identity) (have, want any) { return r.Dedup, b.Dedup })},
	{fields: []string{"Trace"}, check: sameAsBorn("Trace", func(r *store.Run, b *history.Identity) (have, want any) { return r.Trace, b.Trace })},
	{fields: []string{"CreatedAt"}, check: sameAsBorn("CreatedAt", func(r *store.Run, b *history.Identity) (have, want any) { return r.CreatedAt, b.CreatedAt })},
	{fields: []string{"Priority"}, check: (*audit).rulePriority},

	{fields: []string{"Code", "Reason"}, check: (*audit).ruleReason},
	{fields: []string{"Recoverable"}, check: (*audit).ruleRecoverable},
	{fields: []string{"Owner"}, check: (*audit).ruleOwner},
	{fields: []string{"Resumes"}, check: (*audit).ruleResumes},
	{fields: []string{"Strikes"}, check: (*audit).ruleStrikes},
	{fields: []string{"CancelAsked"}, check: (*audit).ruleCancelAsked},
	{fields: []string{"Paused"}, check: (*audit).rulePaused},
	{fields: []string{"StartedAt"}, check: (*audit).ruleStarted},
	{fields: []string{"WakeAt"}, check: (*audit).ruleWake},
	{fields: []string{"ArchivedSeq"}, check: (*audit).ruleArchived},

	{fields: []string{"Inbox"}, why: "checkInbox compares it with the messages that are there"},
	{fields: []string{"UpdatedAt"}, why: "a store sets it as it likes; people see it, and an execution does not look at it"},
}

// checkRow compares the row with what the events say.
func (a *audit) checkRow() {
	row := &a.h.Run
	if row.Code == history.CodeImporting {
		a.rowFinding("the import of this run did not finish: import it again")
		return
	}
	for i := range rowRules {
		if check := rowRules[i].check; check != nil {
			if f := check(a, row); f != nil {
				a.faults = append(a.faults, *f)
				a.rowFinding("%s", f.text)
			}
		}
	}
}

// believed reports whether the history can be believed as far as a resume reads it,
// and all whether all of the log can.
func (a *audit) believed() bool { return a.bad == 0 && !a.unreadable && a.past.Created.Seq != 0 }
func (a *audit) all() bool      { return a.believed() && !a.facts.lost && a.facts.whole }

// fault is the finding that a field is not what the log says.
func fault[T any](field string, have, want T, mend func(p *store.RowPatch, want T)) *rowFault {
	f := &rowFault{field: field, text: fmt.Sprintf("its %s is %s, and the log says %s", wordOf(field), shown(have), shown(want))}
	if mend != nil {
		f.mend = func(p *store.RowPatch) string {
			mend(p, want)
			return fmt.Sprintf("%s: %s, as the log says, and not %s", wordOf(field), shown(want), shown(have))
		}
	}
	return f
}

// shown is a value of a field in a sentence.
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

// wordOf is the name of a field in a sentence.
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

// sameAsBorn is the rule for a field that the first event says. No patch changes it.
func sameAsBorn(field string, of func(r *store.Run, b *history.Identity) (have, want any)) func(*audit, *store.Run) *rowFault {
	return func(a *audit, row *store.Run) *rowFault {
		if a.facts.born == nil {
			return nil
		}
		if have, want := of(row, a.facts.born); have != want {
			return fault(field, have, want, nil)
		}
		return nil
	}
}
