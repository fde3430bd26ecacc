package sqlstore

import (
	"github.com/holdfast-dev/holdfast/store"
)

// RunColumns are the columns of the runs table that RunRow holds, in the order
// of its fields: for a column list in statements written with fmt, and as the
// allow-list of column names.
const RunColumns = `no, id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace, created_at,
 version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen, cancel_asked,
 paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes`

// RunRow is a row of the runs table. Attributes is the number of attributes the
// run has in the attributes table; with 0 that table need not be read.
type RunRow struct {
	No             int64  `db:"no"`
	ID             string `db:"id"`
	Workflow       string `db:"workflow"`
	InitialVersion string `db:"initial_version"`
	Parent         string `db:"parent"`
	ParentKey      string `db:"parent_key"`
	ForkedFrom     string `db:"forked_from"`
	InputHash      []byte `db:"input_hash"`
	Queue          string `db:"queue"`
	Partition      string `db:"partition"`
	Dedup          string `db:"dedup"`
	Trace          string `db:"trace"`
	CreatedAt      int64  `db:"created_at"`
	Version        string `db:"version"`
	Status         string `db:"status"`
	Code           string `db:"code"`
	Reason         string `db:"reason"`
	Recoverable    bool   `db:"recoverable"`
	Owner          string `db:"owner"`
	Epoch          int64  `db:"epoch"`
	Branch         int32  `db:"branch"`
	Generation     int32  `db:"generation"`
	Resumes        int32  `db:"resumes"`
	Strikes        int32  `db:"strikes"`
	Priority       int32  `db:"priority"`
	Inbox          int64  `db:"inbox"`
	Seen           int64  `db:"seen"`
	CancelAsked    bool   `db:"cancel_asked"`
	Paused         bool   `db:"paused"`
	ArchivedSeq    int64  `db:"archived_seq"`
	StartedAt      int64  `db:"started_at"`
	UpdatedAt      int64  `db:"updated_at"`
	EndedAt        int64  `db:"ended_at"`
	WakeAt         int64  `db:"wake_at"`
	DeadlineAt     int64  `db:"deadline_at"`
	Attributes     int64  `db:"attributes"`
}

// Run returns the record, without attributes and last event.
func (r *RunRow) Run() store.Run {
	run := store.Run{
		ID: r.ID, Workflow: r.Workflow, InitialVersion: r.InitialVersion, Parent: r.Parent, ParentKey: r.ParentKey,
		ForkedFrom: r.ForkedFrom, Queue: r.Queue, Partition: r.Partition, Dedup: r.Dedup, Trace: r.Trace,
		CreatedAt: store.Time(r.CreatedAt), Version: r.Version, Status: store.Status(r.Status), Code: r.Code, Reason: r.Reason,
		Recoverable: r.Recoverable, Owner: r.Owner, Epoch: r.Epoch, Branch: r.Branch, Generation: r.Generation,
		Resumes: r.Resumes, Strikes: r.Strikes, Priority: r.Priority, Inbox: r.Inbox, Seen: r.Seen,
		CancelAsked: r.CancelAsked, Paused: r.Paused, ArchivedSeq: r.ArchivedSeq, StartedAt: store.Time(r.StartedAt),
		UpdatedAt: store.Time(r.UpdatedAt), EndedAt: store.Time(r.EndedAt), WakeAt: store.Time(r.WakeAt),
		DeadlineAt: store.Time(r.DeadlineAt),
	}
	copy(run.InputHash[:], r.InputHash)
	return run
}

// RunValues returns the values of a row to insert, in the order of RunColumns
// without no, which the database assigns.
func RunValues(r *store.Run) []any {
	return []any{
		r.ID, r.Workflow, r.InitialVersion, r.Parent, r.ParentKey, r.ForkedFrom, r.InputHash[:], r.Queue, r.Partition, r.Dedup, r.Trace,
		int64(r.CreatedAt), r.Version, string(r.Status), r.Code, r.Reason, r.Recoverable, r.Owner, r.Epoch, int64(r.Branch),
		int64(r.Generation), int64(r.Resumes), int64(r.Strikes), int64(r.Priority), r.Inbox, r.Seen, r.CancelAsked, r.Paused,
		r.ArchivedSeq, int64(r.StartedAt), int64(r.UpdatedAt), int64(r.EndedAt), int64(r.WakeAt), int64(r.DeadlineAt),
		int64(len(r.Attributes)),
	}
}

// Assignment is one column of an UPDATE and its new value. Column is always a
// constant of this package.
type Assignment struct {
	Column string
	Value  any
}

// Patch returns the assignments of a row patch, in a fixed order. Of the
// attributes it includes only their number.
func Patch(p *store.RowPatch) []Assignment {
	if p == nil {
		return nil
	}
	var as []Assignment
	as = assign(as, "version", p.Version)
	if p.Status != nil {
		as = append(as, Assignment{"status", string(*p.Status)})
	}
	as = assign(as, "code", p.Code)
	if p.Reason != nil {
		as = append(as, Assignment{"reason", store.CleanText(*p.Reason)})
	}
	as = assign(as, "recoverable", p.Recoverable)
	as = assignInt(as, "branch", p.Branch)
	as = assignInt(as, "generation", p.Generation)
	as = assignInt(as, "strikes", p.Strikes)
	as = assignInt(as, "priority", p.Priority)
	as = assignInt(as, "seen", p.Seen)
	as = assign(as, "cancel_asked", p.CancelAsked)
	as = assign(as, "paused", p.Paused)
	as = assignInt(as, "archived_seq", p.ArchivedSeq)
	as = assignInt(as, "started_at", p.StartedAt)
	as = assignInt(as, "ended_at", p.EndedAt)
	as = assignInt(as, "wake_at", p.WakeAt)
	as = assignInt(as, "deadline_at", p.DeadlineAt)
	if p.Attributes != nil {
		as = append(as, Assignment{"attributes", int64(len(p.Attributes))})
	}
	return as
}

func assign[T string | bool](as []Assignment, column string, v *T) []Assignment {
	if v == nil {
		return as
	}
	return append(as, Assignment{column, *v})
}

func assignInt[T ~int32 | ~int64](as []Assignment, column string, v *T) []Assignment {
	if v == nil {
		return as
	}
	return append(as, Assignment{column, int64(*v)})
}
