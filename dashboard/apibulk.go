package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
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
			return h.eng.CheckResume(ctx, row.ID, durable.ResumeOptions{ResetFailures: req.ResetFailures})
		},
		func(h *handler, ctx context.Context, row *store.Run, req *client.BulkRequest, _ string) error {
			o := durable.ResumeOptions{ResetFailures: req.ResetFailures}
			if err := h.eng.CheckResume(ctx, row.ID, o); err != nil {
				return err
			}
			_, err := h.eng.Resume(ctx, row.ID, o)
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
	rows, matching, err := h.chosen(ctx, l)
	if err != nil {
		return out, err
	}
	if out.Matching = matching; !req.DryRun && matching > req.Matching {
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
	out.Remaining = max(matching-int64(len(out.Runs)), 0)
	if !req.DryRun {
		h.options.Logger.Info("dashboard: acted on many runs", "act", act.name, "filter", req.Filter, "user", h.user(r), "done", out.Done, "refused", out.Refused, "remaining", out.Remaining)
	}
	return out, nil
}

// outcome adds what became of a run.
func (h *handler) outcome(out *client.Bulk, row *store.Run, err error) {
	o := client.BulkOutcome{RunID: row.ID, Status: string(row.Status), Done: err == nil}
	if err != nil {
		_, p := h.problemOf(err)
		o.Code, o.Message = p.Error.Code, p.Error.Message
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
	}
	switch {
	case req.Limit < 0 || req.Limit > maxBulk:
		return nil, badRequest("limit=%d is no number from 1 to %d", req.Limit, maxBulk)
	case !req.DryRun && req.Matching <= 0:
		return nil, badRequest("matching is missing: make a dry run, and send the number of runs that it says")
	}
	l, err := parseListing(url.Values(req.Filter), now)
	if err != nil {
		return nil, err
	}
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

// chosen reads the runs to act on, and how many match in all.
func (h *handler) chosen(ctx context.Context, l *listing) (rows []store.Run, matching int64, err error) {
	limit := l.filter.Limit
	if rows, _, err = h.matching(ctx, l); err != nil {
		return nil, 0, err
	}
	matching = int64(len(rows))
	if !l.scans() {
		n, err := h.eng.Store().Count(ctx, l.filter, "")
		if err != nil {
			return nil, 0, unavailable(err)
		}
		matching = max(n[""], matching)
	}
	return rows[:min(len(rows), limit)], matching, nil
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
