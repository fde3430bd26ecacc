package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// maxBulk bounds how many runs one request acts on.
const maxBulk = 1000

// A bulkAct is an act on all runs that a filter selects.
type bulkAct struct {
	name     string
	action   Action
	statuses []store.Status // it is for
	// check says what speaks against it for one run, and changes nothing.
	check func(h *handler, ctx context.Context, row *store.Run, req *client.BulkRequest) error
	// do does it. reason has the name of who asks.
	do func(h *handler, ctx context.Context, row *store.Run, req *client.BulkRequest, reason string) error
}

var bulkActs = map[string]bulkAct{
	"resume": {"resume", ActionResume, []store.Status{store.Failed, store.Interrupted},
		func(h *handler, ctx context.Context, row *store.Run, req *client.BulkRequest) error {
			_, err := h.eng.Resume(ctx, row.ID, durable.ResumeOptions{ResetFailures: req.ResetFailures, DryRun: true})
			return err
		},
		func(h *handler, ctx context.Context, row *store.Run, req *client.BulkRequest, _ string) error {
			_, err := h.eng.Resume(ctx, row.ID, durable.ResumeOptions{ResetFailures: req.ResetFailures})
			return err
		}},
	"cancel": {"cancel", ActionCancel, []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted},
		func(*handler, context.Context, *store.Run, *client.BulkRequest) error { return nil },
		func(h *handler, ctx context.Context, row *store.Run, _ *client.BulkRequest, reason string) error {
			return h.eng.Cancel(ctx, row.ID, reason)
		}},
}

// postBulk serves POST /api/bulk/resume and /api/bulk/cancel.
func (h *handler) postBulk(act bulkAct) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var req client.BulkRequest
		if err := readJSON(r, &req); err != nil {
			return err
		}
		out, err := h.bulk(r, act, &req)
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, out)
		return nil
	}
}

// bulk acts on the runs that a request selects, or says what it would do. The
// runs are chosen before the first is acted on; each is authorized by itself, and
// acted on as if it were the only one, so that a crash or the end of the request
// in the middle leaves some that were and others that were not, and no run half.
func (h *handler) bulk(r *http.Request, act bulkAct, req *client.BulkRequest) (client.Bulk, error) {
	// The answer names runs, as a list does.
	if err := h.may(r, ActionList, ""); err != nil {
		return client.Bulk{}, err
	}
	l, err := bulkListing(act, req, time.Now())
	if err != nil {
		return client.Bulk{}, err
	}
	ctx, stop := h.patient(r)
	defer stop()
	out := client.Bulk{DryRun: req.DryRun, Runs: []client.BulkOutcome{}}
	if l == nil { // the filter wants statuses that the act is not for
		return out, nil
	}
	if !req.DryRun && req.After != "" {
		l.filter.Limit = int(min(int64(l.filter.Limit), req.Matching))
	}
	chosen, matching, err := h.choose(ctx, l)
	if err != nil {
		return out, err
	}
	rows := chosen.rows
	if out.Matching = matching; !req.DryRun && req.After != "" {
		out.Matching = req.Matching
	} else if !req.DryRun && matching > req.Matching {
		return out, &requestError{http.StatusConflict, "conflict", fmt.Sprintf("%d runs match now, and the dry run said %d: nothing was done", matching, req.Matching), "make the dry run again"}
	}
	reason := signed(req.Reason, h.user(r))
	for i := range rows {
		if ctx.Err() != nil {
			break // what was not come to is said to remain
		}
		err := h.may(r, act.action, rows[i].ID)
		switch {
		case err != nil:
		case req.DryRun:
			err = act.check(h, ctx, &rows[i], req)
		default:
			err = act.do(h, ctx, &rows[i], req, reason)
		}
		if err != nil && ctx.Err() != nil {
			break // it is not known what it would have said
		}
		h.outcome(&out, &rows[i], err)
	}
	if err := r.Context().Err(); err != nil {
		return out, err
	}
	if out.Next = l.cursorBehind(chosen.from(len(out.Runs))); out.Next != "" && !l.scans() {
		out.Remaining = max(out.Matching-int64(len(out.Runs)), 0)
	}
	if !req.DryRun && req.After != "" && out.Remaining == 0 && !l.scans() {
		out.Next = "" // what still matches has come since the dry run
	}
	if !req.DryRun {
		h.options.Logger.Info("dashboard: acted on many runs", "act", act.name, "filter", req.Filter, "user", h.user(r), "done", out.Done, "refused", out.Refused, "remaining", out.Remaining)
	}
	return out, nil
}

// outcome adds what became of a run.
func (h *handler) outcome(out *client.Bulk, row *store.Run, err error) {
	o := client.BulkOutcome{RunID: row.ID, Status: string(row.Status), Done: err == nil, Recoverable: row.Status == store.Failed && row.Recoverable, Reason: h.line(row.Reason, 200)}
	if err != nil {
		_, p := h.problemOf(err)
		o.Code, o.Message = p.Error.Code, outline.OneLine(p.Error.Message, 500)
		out.Refused++
	} else {
		out.Done++
	}
	out.Runs = append(out.Runs, o)
}

// bulkListing makes of a request what selects its runs; nil: nothing can match.
// It is a pure function of its arguments.
func bulkListing(act bulkAct, req *client.BulkRequest, now time.Time) (*listing, error) {
	if len(req.Filter) == 0 {
		return nil, badRequest("filter is missing: say which runs, such as {\"workflow\": [\"checkout\"]}")
	}
	for _, name := range []string{"order", "limit", "cursor", "counts"} {
		if _, has := req.Filter[name]; has {
			return nil, badRequest("%s is no filter here", name)
		}
	}
	for name, values := range req.Filter {
		if len(values) == 0 {
			return nil, badRequest("the filter %s has no value", name)
		}
		if slices.ContainsFunc(values, func(v string) bool { return hasEmpty(name, v) }) {
			return nil, badRequest("the filter %s has an empty value, which would select every run", name)
		}
	}
	switch {
	case req.Limit < 0 || req.Limit > maxBulk:
		return nil, badRequest("limit=%d is no number from 1 to %d", req.Limit, maxBulk)
	case !req.DryRun && req.Matching <= 0:
		return nil, badRequest("matching is missing: make a dry run, and send the number of runs that it says")
	}
	after, now := splitCursor(req.After, now)
	l, err := parseListing(url.Values(req.Filter), now)
	if err != nil {
		return nil, err
	}
	l.filter.After = after
	l.filter.WithLast = l.key != ""
	l.filter.OldestFirst = true
	if l.filter.Limit = req.Limit; req.Limit == 0 {
		l.filter.Limit = maxBulk
	}
	if len(l.filter.Statuses) == 0 {
		l.filter.Statuses = act.statuses
	} else if l.filter.Statuses = slices.DeleteFunc(l.filter.Statuses, func(s store.Status) bool { return !slices.Contains(act.statuses, s) }); len(l.filter.Statuses) == 0 {
		return nil, nil
	}
	return l, nil
}

// hasEmpty reports whether a value of a filter, or a part of one that is a list, is
// empty: a list of runs leaves it out, and an act must not.
func hasEmpty(name, value string) bool {
	if !splits[name] {
		return strings.TrimSpace(value) == ""
	}
	for part := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(part) == "" {
			return true
		}
	}
	return false
}

// A selection is the runs of one request. A place to go on from is known at the
// beginning of each page of the store.
type selection struct {
	rows  []store.Run
	pages []selectedPage
	next  string // behind all; empty: there are no more
}

type selectedPage struct {
	first  int // row
	cursor string
}

// from returns where to go on once the first n rows were come to: rows of a page
// that was begun are come to again.
func (s *selection) from(n int) string {
	if n >= len(s.rows) {
		return s.next
	}
	at := ""
	for _, p := range s.pages {
		if p.first <= n {
			at = p.cursor
		}
	}
	return at
}

// bulkRead is how many rows are read at a time.
const bulkRead = 100

// choose reads the runs to act on, and how many match in all: from the first on,
// or, behind a cursor, as far as was looked.
func (h *handler) choose(ctx context.Context, l *listing) (*selection, int64, error) {
	if err := l.searchable(h.redact); err != nil {
		return nil, 0, err
	}
	s, f, limit := &selection{}, l.filter, l.filter.Limit
	for scanned, done := 0, false; !done; {
		// Whole pages are taken of what a search finds, so that none is left out.
		f.Limit = min(limit, bulkRead)
		if !l.scans() {
			f.Limit = min(limit-len(s.rows), bulkRead)
		}
		s.pages = append(s.pages, selectedPage{len(s.rows), f.After})
		p, err := h.eng.List(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		for i := range p.Runs {
			if l.match(&p.Runs[i], h.redact) {
				s.rows = append(s.rows, p.Runs[i])
			}
		}
		scanned += len(p.Runs)
		f.After, s.next = p.Next, p.Next
		if done = p.Next == "" || len(s.rows) >= limit; l.scans() {
			done = done || len(s.rows)+f.Limit > limit || scanned >= maxScanned
		}
	}
	matching := int64(len(s.rows))
	if !l.scans() && l.filter.After == "" {
		n, err := h.eng.Store().Count(ctx, l.filter, "")
		if err != nil {
			return nil, 0, unavailable(err)
		}
		matching = max(n[""], matching)
	}
	return s, matching, nil
}

// signed is a reason with the name of who gives it.
func signed(reason, by string) string {
	switch {
	case by == "":
		return reason
	case reason == "":
		return "by " + by
	}
	return reason + " (" + by + ")"
}

// bulkRequest makes of the terms of the list's filter a request.
func bulkRequest(ts terms) *client.BulkRequest {
	req := &client.BulkRequest{Filter: map[string][]string{}}
	for _, t := range ts {
		name, value := ts.split(t)
		req.Filter[name] = append(req.Filter[name], value)
	}
	return req
}

var errNoBulk = errors.New("there is no such act on many runs: there are resume and cancel")
