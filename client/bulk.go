package client

import "context"

// BulkRequest is an act on all runs that a filter selects.
type BulkRequest struct {
	// Filter has the filters of GET /api/runs by name: {"status": ["failed"]}. At least
	// one is required; order, limit, cursor and counts are not filters. A name that may have
	// a comma in it goes through FilterValue.
	Filter map[string][]string `json:"filter"`
	// DryRun says how many runs match and what would happen to each, and changes
	// nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Matching is the number from the dry run. If more runs match now, nothing is done.
	// Required unless DryRun is set.
	Matching int64 `json:"matching,omitempty"`
	// After is the Next of the answer before, to continue after its runs with the same
	// Filter. Matching is then its Remaining, and no more runs than that are acted on,
	// even if more match by now.
	After string `json:"after,omitempty"`
	// Limit is how many runs are acted on, the oldest first; 0: 1,000, the maximum.
	Limit int `json:"limit,omitempty"`
	// Reason is why the runs are cancelled.
	Reason string `json:"reason,omitempty"`
	// ResetFailures gives the failed steps of resumed runs all their attempts again.
	ResetFailures bool `json:"reset_failures,omitempty"`
}

// Bulk is the answer to a BulkRequest.
type Bulk struct {
	// Matching is how many runs were in a status that the act applies to before it was
	// done. With a search by q, key or error it counts what was found among the rows
	// that one request reads.
	Matching int64         `json:"matching"`
	Done     int           `json:"done"`    // or, in a dry run, would be
	Refused  int           `json:"refused"` // each with its reason
	Runs     []BulkOutcome `json:"runs"`
	// Remaining is how many runs were not reached within the limit or the time. Ask
	// again, with After. With a search and a Next their number is not known, and is 0.
	Remaining int64 `json:"remaining,omitempty"`
	// Next is the After of the next request. It is empty if all were reached, or, with
	// Remaining, if the time ended so early that the dry run must be made again.
	Next   string `json:"next,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// BulkOutcome is the outcome for one run.
type BulkOutcome struct {
	// Reason is why the run had failed or was stopped.
	Reason string `json:"reason,omitempty"`
	RunID  string `json:"run_id"`
	Status string `json:"status"` // in which the run was found
	Done   bool   `json:"done"`
	// Recoverable says that the run had failed for a reason that may pass.
	Recoverable bool `json:"recoverable,omitempty"`
	// Code and Message are those with which the act on this run alone would be refused.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Next is what to do about that, as a route; empty: nothing is known to help.
	Next string `json:"next,omitempty"`
}

// ResumeAll resumes the failed and interrupted runs that a filter selects, each as
// Resume does. Runs that it has resumed stay resumed, even if it returns an error. Make
// a dry run first: ErrConflict if more runs match than Matching.
func (c *Client) ResumeAll(ctx context.Context, r BulkRequest) (Bulk, error) {
	return post[Bulk](ctx, c, path("api", "bulk", "resume"), r)
}

// CancelAll asks the runs that a filter selects, and that have not ended, to end;
// see ResumeAll.
func (c *Client) CancelAll(ctx context.Context, r BulkRequest) (Bulk, error) {
	return post[Bulk](ctx, c, path("api", "bulk", "cancel"), r)
}
