package client

import "context"

// BulkRequest is an act on all runs that a filter selects.
type BulkRequest struct {
	// Filter has the filters of GET /api/runs by name: {"status": ["failed"]}. One
	// at least is required; order, limit, cursor and counts are none.
	Filter map[string][]string `json:"filter"`
	// DryRun says how many runs match and what would become of each, and changes
	// nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Matching is what the dry run said. If more runs match now, nothing is done.
	// Required but for a dry run.
	Matching int64 `json:"matching,omitempty"`
	// After is the Next of the answer before: go on behind the runs of that one,
	// with the same Filter. Matching is then its Remaining, and no more runs than
	// that are acted on, whatever has come to match since.
	After string `json:"after,omitempty"`
	// Limit of the runs that are acted on, the oldest first; 0: 1,000, the most.
	Limit int `json:"limit,omitempty"`
	// Reason of a cancel.
	Reason string `json:"reason,omitempty"`
	// ResetFailures of a resume: failed steps have all their attempts again.
	ResetFailures bool `json:"reset_failures,omitempty"`
}

// Bulk is what became of it.
type Bulk struct {
	// Matching runs are in a status that the act is for, before it was done. With
	// a search by q, key or error it counts what was found among the rows that one
	// request looks at.
	Matching int64         `json:"matching"`
	Done     int           `json:"done"`    // or, of a dry run, that would be
	Refused  int           `json:"refused"` // each with its reason
	Runs     []BulkOutcome `json:"runs"`
	// Remaining were not come to: the limit or the time was reached. Ask again,
	// with After. With a search it is not known how many they are: 0.
	Remaining int64 `json:"remaining,omitempty"`
	// Next is where that goes on; empty: all were come to, or, with Remaining, the
	// time was over so soon that the dry run is to be made again.
	Next   string `json:"next,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// BulkOutcome is what became of one run.
type BulkOutcome struct {
	// Reason is why the run had failed or was stopped.
	Reason string `json:"reason,omitempty"`
	RunID  string `json:"run_id"`
	Status string `json:"status"` // it was found in
	Done   bool   `json:"done"`
	// Recoverable: it was found failed by what may pass.
	Recoverable bool `json:"recoverable,omitempty"`
	// Code and Message of the refusal, as the act on this run alone would give.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// ResumeAll resumes the failed and interrupted runs that a filter selects, each
// as Resume does. What was resumed when it returns stays resumed, also with an
// error. Make a dry run first: ErrConflict when more runs match than Matching.
func (c *Client) ResumeAll(ctx context.Context, r BulkRequest) (Bulk, error) {
	return post[Bulk](ctx, c, path("api", "bulk", "resume"), r)
}

// CancelAll asks the runs that a filter selects, and that have not ended, to end;
// see ResumeAll.
func (c *Client) CancelAll(ctx context.Context, r BulkRequest) (Bulk, error) {
	return post[Bulk](ctx, c, path("api", "bulk", "cancel"), r)
}
