package store

// Run is the row of a run: identity, and a cache of what its events say.
type Run struct {
	// Identity. Never changes after creation.
	ID             string
	Workflow       string
	InitialVersion string // the version it was created with
	Parent         string // run id of the parent, empty for a root run
	ParentKey      string // key of the call in the parent that started it
	ForkedFrom     string // run id it was copied from
	InputHash      [16]byte
	Queue          string
	Partition      string // within the queue
	Dedup          string // within the queue: at most one unfinished run per value
	Trace          string // trace context of the root span: W3C traceparent, a blank and tracestate if there is one
	CreatedAt      Time

	// Cache of the log, changed by RowPatch, Claim, Send.
	Version     string // the version it is pinned to
	Status      Status
	Code        string // why it is interrupted or failed, for programs, at most MaxName bytes; empty: no reason
	Reason      string // the same for people
	Recoverable bool   // of a failed run: Resume is offered
	Owner       string // executor id; empty: no owner
	Epoch       int64  // fencing token; starts at the creation time in µs
	Branch      int32  // current branch
	Generation  int32
	Resumes     int32 // how often it was claimed after an interruption
	Strikes     int32 // ungraceful ends in a row with nothing recorded in between (S21)
	Priority    int32 // higher first
	Inbox       int64 // messages received so far: the Seq of the last one
	Seen        int64 // messages the owner has noticed
	CancelAsked bool  // a cancel message was delivered and not consumed yet
	Paused      bool  // not claimable until unpaused
	ArchivedSeq int64 // the log is archived up to here; an incoming message lowers it (S13)
	StartedAt   Time
	UpdatedAt   Time
	EndedAt     Time
	WakeAt      Time // when to check the run next; 0: no timer
	DeadlineAt  Time // 0: none
	Attributes  map[string]string

	// Last is the last event of the log over all branches. Claim, Load and
	// List(Filter.WithLast) fill it; it is ignored where a Run is passed to the
	// store.
	Last *Event
}

// RowPatch says which fields of a row change; a nil field stays as it is.
type RowPatch struct {
	Version     *string
	Status      *Status
	Code        *string
	Reason      *string
	Recoverable *bool
	Branch      *int32
	Generation  *int32
	Strikes     *int32
	Priority    *int32
	Seen        *int64
	CancelAsked *bool
	Paused      *bool
	ArchivedSeq *int64
	StartedAt   *Time
	EndedAt     *Time
	WakeAt      *Time
	DeadlineAt  *Time
	// Attributes replaces the whole set; nil keeps it, an empty map clears it.
	Attributes map[string]string
}

// Apply changes r as p says. It leaves UpdatedAt to the store.
func (p *RowPatch) Apply(r *Run) {
	if p == nil {
		return
	}
	set(&r.Version, p.Version)
	set(&r.Status, p.Status)
	set(&r.Code, p.Code)
	set(&r.Reason, p.Reason)
	set(&r.Recoverable, p.Recoverable)
	set(&r.Branch, p.Branch)
	set(&r.Generation, p.Generation)
	set(&r.Strikes, p.Strikes)
	set(&r.Priority, p.Priority)
	set(&r.Seen, p.Seen)
	set(&r.CancelAsked, p.CancelAsked)
	set(&r.Paused, p.Paused)
	set(&r.ArchivedSeq, p.ArchivedSeq)
	set(&r.StartedAt, p.StartedAt)
	set(&r.EndedAt, p.EndedAt)
	set(&r.WakeAt, p.WakeAt)
	set(&r.DeadlineAt, p.DeadlineAt)
	if p.Attributes != nil {
		r.Attributes = p.Attributes
	}
}

// Over returns p with every field that q sets taken from q. It changes neither;
// both may be nil.
func (p *RowPatch) Over(q *RowPatch) *RowPatch {
	if p == nil || q == nil {
		if p == nil {
			return q
		}
		return p
	}
	m := *p
	over(&m.Version, q.Version)
	over(&m.Status, q.Status)
	over(&m.Code, q.Code)
	over(&m.Reason, q.Reason)
	over(&m.Recoverable, q.Recoverable)
	over(&m.Branch, q.Branch)
	over(&m.Generation, q.Generation)
	over(&m.Strikes, q.Strikes)
	over(&m.Priority, q.Priority)
	over(&m.Seen, q.Seen)
	over(&m.CancelAsked, q.CancelAsked)
	over(&m.Paused, q.Paused)
	over(&m.ArchivedSeq, q.ArchivedSeq)
	over(&m.StartedAt, q.StartedAt)
	over(&m.EndedAt, q.EndedAt)
	over(&m.WakeAt, q.WakeAt)
	over(&m.DeadlineAt, q.DeadlineAt)
	if q.Attributes != nil {
		m.Attributes = q.Attributes
	}
	return &m
}

func over[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// NextStrikes returns what Strikes becomes when r is claimed and the last event
// of its log is of type last (S21). A strike is an ungraceful end of a process
// that executed the run and recorded nothing since it claimed it.
//
// For example, a run whose log ends "step_completed, run_resumed" has been
// claimed and then lost: with 1 strike in the row the next claim makes it 2. A
// checkpoint in between would make it 1 again.
func (r *Run) NextStrikes(last Type) int32 {
	switch {
	case r.Status != Running && r.Status != Resuming:
		return 0
	case last.Claims():
		return r.Strikes + 1
	default:
		return 1
	}
}

// Executing reports whether an executor is executing r, or was until it died.
func (r *Run) Executing() bool { return r.Status == Running || r.Status == Resuming }

// Parked reports whether r was interrupted for a reason that only an outside
// action removes.
func (r *Run) Parked() bool {
	return r.Status == Interrupted && r.Code != "" && r.Code != CodeNotRegistered
}

// Due reports whether a claim without ids may take r at now. It does not check the
// owner of r, what the executor serves, or how full the queue is: see Claim.MayTake.
func (r *Run) Due(now Time) bool {
	if r.Paused && !r.CancelAsked {
		return false
	}
	switch r.Status {
	case Pending:
		return r.WakeAt <= now
	case Interrupted:
		return !r.Parked()
	case Waiting:
		return (r.WakeAt != 0 && r.WakeAt <= now) || r.Inbox > r.Seen || r.CancelAsked
	}
	return false
}

// Claimable reports whether a claim that names r may take it, whatever its
// WakeAt: r has not ended and is neither parked nor paused. What Due does not
// check, Claimable does not check either.
func (r *Run) Claimable() bool { return !r.Status.Terminal() && !r.Parked() && !r.Paused }
