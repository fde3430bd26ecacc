package act

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// MaxBulk is how many runs one request acts on at most.
const MaxBulk = 1000

// A BulkAct is an act on all runs that a filter selects.
type BulkAct struct {
	Name     string
	Action   string
	Statuses []store.Status // that it is for
	// check returns why the act would be refused for one run, and changes nothing.
	check func(ac *Acts, ctx context.Context, row *store.Run, req *client.BulkRequest) error
	// do carries the act out. reason has the name of the caller.
	do func(ac *Acts, ctx context.Context, row *store.Run, req *client.BulkRequest, reason string) error
}

// BulkActs are the acts on many runs, by name.
var BulkActs = map[string]BulkAct{
	"resume": {"resume", web.ActionResume, []store.Status{store.Failed, store.Interrupted},
		func(ac *Acts, ctx context.Context, row *store.Run, req *client.BulkRequest) error {
			_, err := operate.On(ac.Engine).Resume(ctx, row.ID, operate.ResumeOptions{ResetFailures: req.ResetFailures, DryRun: true})
			return err
		},
		func(ac *Acts, ctx context.Context, row *store.Run, req *client.BulkRequest, _ string) error {
			_, err := operate.On(ac.Engine).Resume(ctx, row.ID, operate.ResumeOptions{ResetFailures: req.ResetFailures})
			return err
		}},
	"retry": {"retry", web.ActionResume, []store.Status{store.Failed},
		func(ac *Acts, ctx context.Context, row *store.Run, _ *client.BulkRequest) error {
			_, err := operate.On(ac.Engine).RetryDeadLetter(ctx, row.ID, operate.RetryOptions{DryRun: true})
			return err
		},
		func(ac *Acts, ctx context.Context, row *store.Run, _ *client.BulkRequest, _ string) error {
			_, err := operate.On(ac.Engine).RetryDeadLetter(ctx, row.ID, operate.RetryOptions{})
			return err
		}},
	"cancel": {"cancel", web.ActionCancel, []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted},
		func(*Acts, context.Context, *store.Run, *client.BulkRequest) error { return nil },
		func(ac *Acts, ctx context.Context, row *store.Run, _ *client.BulkRequest, reason string) error {
			return ac.Engine.Cancel(ctx, row.ID, reason)
		}},
}

// Bulk serves POST /api/bulk/resume, /api/bulk/retry and /api/bulk/cancel.
func (ac *Acts) Bulk(name string) func(http.ResponseWriter, *http.Request) error {
	act := BulkActs[name]
	return func(w http.ResponseWriter, r *http.Request) error {
		var req client.BulkRequest
		if err := web.ReadJSON(r, &req); err != nil {
			return err
		}
		out, err := ac.OnMany(r, act, &req)
		if err != nil {
			return err
		}
		web.WriteJSON(w, http.StatusOK, out)
		return nil
	}
}

// OnMany acts on the runs that a request selects, or says what it would do. The runs are
// chosen before it acts on the first. Each is authorized separately, and acted on as if
// it were the only one: a crash, or the end of the request, may leave some runs
// untouched, but none half done.
func (ac *Acts) OnMany(r *http.Request, act BulkAct, req *client.BulkRequest) (client.Bulk, error) {
	// The answer names runs, as a list does.
	if err := ac.May(r, web.ActionList, ""); err != nil {
		return client.Bulk{}, err
	}
	l, err := bulkListing(act, req, time.Now())
	if err != nil {
		return client.Bulk{}, err
	}
	ctx, stop := ac.patient(r)
	defer stop()
	out := client.Bulk{DryRun: req.DryRun, Runs: []client.BulkOutcome{}}
	if l == nil { // the filter wants statuses that the act is not for
		return out, nil
	}
	if !req.DryRun && req.After != "" {
		l.Filter.Limit = int(min(int64(l.Filter.Limit), req.Matching))
	}
	chosen, matching, err := ac.choose(ctx, l, req.After)
	if err != nil {
		return out, err
	}
	rows := chosen.rows
	if out.Matching = matching; !req.DryRun && req.After != "" {
		out.Matching = req.Matching
	} else if !req.DryRun && matching > req.Matching {
		return out, web.NewError(http.StatusConflict, "conflict", fmt.Sprintf("%s %s now, and the dry run said %d: nothing was done", count.Of(matching, "run"), count.Verb(matching, "matches", "match"), req.Matching), "make the dry run again")
	}
	reason := signed(req.Reason, ac.Who(r))
	for i := range rows {
		if ctx.Err() != nil {
			break // the others are counted as remaining
		}
		err := ac.May(r, act.Action, rows[i].ID)
		switch {
		case err != nil:
		case req.DryRun:
			err = act.check(ac, ctx, &rows[i], req)
		default:
			err = act.do(ac, ctx, &rows[i], req, reason)
		}
		if err != nil && ctx.Err() != nil {
			break // the outcome for this run is not known
		}
		ac.outcome(&out, &rows[i], err)
	}
	if err := r.Context().Err(); err != nil {
		return out, err
	}
	out.Next = chosen.from(len(out.Runs), l)
	out.Remaining = remaining(&out, l, len(rows))
	if !req.DryRun && req.After != "" && out.Remaining == 0 && !l.Scans() {
		out.Next = "" // the runs that still match have appeared since the dry run
	}
	if !req.DryRun {
		ac.Log.Info("dashboard: acted on many runs", "act", act.Name, "filter", req.Filter, "user", ac.Who(r), "done", out.Done, "refused", out.Refused, "remaining", out.Remaining)
	}
	return out, nil
}

// remaining says how many of the runs that match were not reached, of which chosen were read.
func remaining(out *client.Bulk, l *read.Listing, chosen int) int64 {
	reached := int64(len(out.Runs))
	switch {
	case out.Next != "" && !l.Scans():
		return max(out.Matching-reached, 0)
	case out.Next == "" && len(out.Runs) < chosen: // the time ended within the first page
		return max(out.Matching, int64(chosen)) - reached
	}
	return 0
}

// outcome adds the outcome for a run.
func (ac *Acts) outcome(out *client.Bulk, row *store.Run, err error) {
	o := client.BulkOutcome{RunID: row.ID, Status: string(row.Status), Done: err == nil, Recoverable: row.Status == store.Failed && row.Recoverable, Reason: ac.Redact.Line(row.Reason, 200)}
	if err != nil {
		_, p := ac.Problem(err)
		o.Code, o.Message, o.Next = p.Error.Code, outline.OneLine(p.Error.Message, 500), p.Error.Next
		out.Refused++
	} else {
		out.Done++
	}
	out.Runs = append(out.Runs, o)
}

// bulkListing turns a request into the listing that selects its runs; nil: nothing can
// match.
func bulkListing(act BulkAct, req *client.BulkRequest, now time.Time) (*read.Listing, error) {
	if len(req.Filter) == 0 {
		return nil, web.BadRequest("filter is missing: say which runs, such as {\"workflow\": [\"checkout\"]}")
	}
	for _, name := range []string{"order", "limit", "cursor", "counts"} {
		if _, has := req.Filter[name]; has {
			return nil, web.BadRequest("%s is no filter here", name)
		}
	}
	for name, values := range req.Filter {
		if len(values) == 0 {
			return nil, web.BadRequest("the filter %s has no value", name)
		}
		if slices.ContainsFunc(values, func(v string) bool { return hasEmpty(name, v) }) {
			return nil, web.BadRequest("the filter %s has an empty value, which would select every run", name)
		}
	}
	switch {
	case req.Limit < 0 || req.Limit > MaxBulk:
		return nil, web.BadRequest("limit=%d is no number from 1 to %d", req.Limit, MaxBulk)
	case !req.DryRun && req.Matching <= 0:
		return nil, web.BadRequest("matching is missing: make a dry run, and send the number of runs that it says")
	}
	after, now := read.SplitCursor(behind(req.After), now)
	l, err := read.ParseListing(url.Values(req.Filter), now)
	if err != nil {
		return nil, err
	}
	l.Filter.After = after
	l.Filter.WithLast = l.Key != ""
	l.Filter.OldestFirst = true
	if l.Filter.Limit = req.Limit; req.Limit == 0 {
		l.Filter.Limit = MaxBulk
	}
	if len(l.Filter.Statuses) == 0 {
		l.Filter.Statuses = act.Statuses
	} else if l.Filter.Statuses = slices.DeleteFunc(l.Filter.Statuses, func(s store.Status) bool { return !slices.Contains(act.Statuses, s) }); len(l.Filter.Statuses) == 0 {
		return nil, nil
	}
	return l, nil
}

// hasEmpty reports whether a value of a filter, or an element of one that is a list, is
// empty. A list of runs ignores those; an act must not.
func hasEmpty(name, value string) bool {
	if !read.Splits[name] {
		return strings.TrimSpace(value) == ""
	}
	for _, part := range read.Names(value) {
		if strings.TrimSpace(part) == "" {
			return true
		}
	}
	return false
}

// choose reads the runs to act on, and counts how many match: all of them, or, after a
// cursor or in a search, of those that were read. Runs that the request before has reached, as
// the cursor says, are left out.
func (ac *Acts) choose(ctx context.Context, l *read.Listing, after string) (*selection, int64, error) {
	if err := l.Searchable(ac.Redact.Text); err != nil {
		return nil, 0, err
	}
	s, f, limit := &selection{}, l.Filter, l.Filter.Limit
	reached := reachedBefore(after)
	for scanned, done := 0, false; !done; {
		// A search takes whole pages, so that none of its finds is left out.
		f.Limit = min(limit, bulkRead)
		if !l.Scans() {
			f.Limit = min(limit-len(s.rows), bulkRead)
		}
		page := selectedPage{first: len(s.rows), cursor: f.After}
		p, err := ac.Engine.List(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		for i := range p.Runs {
			switch mark := markOf(p.Runs[i].ID); {
			case reached[mark]:
				page.reached = append(page.reached, mark)
			case l.Match(&p.Runs[i], ac.Redact.Text):
				s.rows = append(s.rows, p.Runs[i])
			}
		}
		s.pages = append(s.pages, page)
		scanned += len(p.Runs)
		f.After, s.next = p.Next, p.Next
		if done = p.Next == "" || len(s.rows) >= limit; l.Scans() {
			done = done || len(s.rows)+f.Limit > limit || scanned >= read.MaxScanned
		}
	}
	matching := int64(len(s.rows))
	if !l.Scans() && l.Filter.After == "" {
		n, err := ac.Engine.Store().Count(ctx, l.Filter, "")
		if err != nil {
			return nil, 0, web.Unavailable(err)
		}
		matching = max(n[""], matching)
	}
	return s, matching, nil
}
