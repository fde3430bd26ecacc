package target

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/cli/internal/looking"
	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Which selects the runs of ResumeAll. Without Statuses they are those that are interrupted or
// have failed.
type Which struct {
	IDs, Workflows, Codes []string
	Statuses              []store.Status
}

// Resume implements Target.
func (l *Local) Resume(ctx context.Context, id string, o operate.ResumeOptions) (operate.Plan, error) {
	if err := looking.Refuses(l.Store); err != nil && !o.DryRun {
		return operate.Plan{}, err
	}
	p, err := operate.On(l.Engine).Resume(ctx, id, o)
	return p, l.Lost(id, err)
}

// ResumeAll implements Target.
func (l *Local) ResumeAll(ctx context.Context, w Which, o operate.ResumeOptions, each func(id string, refused error)) error {
	if err := looking.Refuses(l.Store); err != nil && !o.DryRun {
		return err
	}
	f := store.Filter{IDs: w.IDs, Workflows: w.Workflows, Codes: w.Codes, Statuses: w.Statuses}
	for plan, err := range operate.On(l.Engine).ResumeAll(ctx, f, o) {
		if plan.RunID == "" && err != nil {
			return err
		}
		each(plan.RunID, err)
	}
	return ctx.Err()
}

// ResumeAll implements Target.
func (r *Remote) ResumeAll(ctx context.Context, w Which, o operate.ResumeOptions, each func(id string, refused error)) error {
	if o.Force {
		return show.Usage("over a server, --force takes one run at a time")
	}
	filter := map[string][]string{"status": {string(store.Interrupted), string(store.Failed)}}
	if len(w.Statuses) > 0 {
		filter["status"] = nil
		for _, s := range w.Statuses {
			filter["status"] = append(filter["status"], string(s))
		}
	}
	for name, values := range map[string][]string{"id": w.IDs, "workflow": w.Workflows, "code": w.Codes} {
		for _, v := range values {
			filter[name] = append(filter[name], client.FilterValue(v))
		}
	}
	return r.onAll(ctx, r.c.ResumeAll, client.BulkRequest{Filter: filter, DryRun: o.DryRun, ResetFailures: o.ResetFailures}, each)
}

// refusal returns why a server has not acted on a run; nil: it has.
func refusal(o *client.BulkOutcome) error {
	switch {
	case o.Done:
		return nil
	case o.Code == "not_resumable" && strings.HasSuffix(o.Next, "/unpause"):
		return &durable.NotResumableError{RunID: o.RunID, Status: store.Status(o.Status), Reason: "it is paused", Paused: true}
	}
	return errors.New(o.Message)
}

// onAll acts on all runs that req selects, some at a time. The server refuses to act on more than
// have matched when it is asked first.
func (r *Remote) onAll(ctx context.Context, act func(context.Context, client.BulkRequest) (client.Bulk, error), req client.BulkRequest, each func(id string, refused error)) error {
	if !req.DryRun {
		count := req
		count.DryRun, count.Limit = true, 1
		out, err := act(ctx, count)
		if err != nil || out.Matching == 0 {
			return r.said(err)
		}
		req.Matching = out.Matching
	}
	for {
		out, err := act(ctx, req)
		if err != nil {
			return r.said(err)
		}
		for _, o := range out.Runs {
			each(o.RunID, refusal(&o))
		}
		switch {
		case out.Remaining == 0:
			return nil
		case out.Next == "":
			return fmt.Errorf("the server ran out of time with %d left: run the command again", out.Remaining)
		}
		req.After, req.Matching = out.Next, out.Remaining
	}
}
