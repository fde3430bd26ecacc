package pages

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// cardsView is what people come for: it is shown above the list.
type cardsView struct {
	Approvals     []waitRow
	MoreApprovals int
	OtherWaits    int64
	Stuck         []stuckView
	MoreStuck     int
	Failed        int64
	Recoverable   int
	Alike         int
	AlikeError    string
	AlikeURL      string
	FailedURL     string
	Ready         string // why not; empty: it is
	Processes     string
	Executing     int
	Backlog       int64
	Beat          string
	CommitP99     string
	Late          int // runs whose timer is overdue

	byStatus map[string]int64 // runs of the store
	stuck    map[string]bool  // by run id
}

// cards fills in what is shown above the list, and the numbers of the navigation.
func (li *Lists) cards(ctx context.Context, c *cardsView, l *layout) error {
	var err error
	if c.byStatus, err = li.Engine.Store().Count(ctx, store.Filter{}, store.ByStatus); err != nil {
		return fmt.Errorf("dashboard: counting runs: %w", err)
	}
	asking, approvals, err := li.read.Asked(ctx, askedOnCard)
	if err != nil {
		return err
	}
	c.OtherWaits = max(c.byStatus[string(store.Waiting)]-asking, 0)
	for i := range approvals[:min(len(approvals), 3)] {
		row := li.waitRow(&approvals[i])
		row.Prompt = outline.OneLine(row.Prompt, 300)
		c.Approvals = append(c.Approvals, row)
	}
	l.Approvals, c.MoreApprovals = int(asking), max(int(asking)-len(c.Approvals), 0)

	stuck, err := operate.On(li.Engine).Stuck(ctx, 100)
	if err != nil {
		return err
	}
	c.stuck = map[string]bool{}
	for i := range stuck {
		c.stuck[stuck[i].RunID] = true
	}
	for i := range stuck[:min(len(stuck), 2)] {
		c.Stuck = append(c.Stuck, li.stuckRow(&stuck[i]))
	}
	l.Stuck, c.MoreStuck = len(stuck), max(len(stuck)-2, 0)
	if c.byStatus[string(store.Failed)] > 0 {
		if err := li.failures(ctx, c); err != nil {
			return err
		}
	}
	return li.healthCard(ctx, c)
}

// failures groups the runs that failed in the last day by their errors.
func (li *Lists) failures(ctx context.Context, c *cardsView) error {
	f := store.Filter{Statuses: []store.Status{store.Failed}, EndedFrom: view.Now().Add(-24 * time.Hour)}
	f.Limit = 200
	p, err := li.Engine.List(ctx, f)
	if err != nil {
		return err
	}
	c.Failed, c.FailedURL = int64(len(p.Runs)), li.Site.List("status:failed")
	if p.Next != "" {
		n, err := li.Engine.Store().Count(ctx, f, "")
		if err != nil {
			return fmt.Errorf("dashboard: counting failures: %w", err)
		}
		c.Failed = n[""]
	}
	if c.Failed == 0 {
		return nil
	}
	alike := map[string]int{}
	for i := range p.Runs {
		if p.Runs[i].Recoverable {
			c.Recoverable++
		}
		alike[li.Redact.Line(errorOf(p.Runs[i].Reason), 200)]++
	}
	for reason, n := range alike {
		if n > c.Alike || n == c.Alike && cmp.Compare(reason, c.AlikeError) < 0 {
			c.Alike, c.AlikeError = n, reason
		}
	}
	c.AlikeURL = li.Site.List("status:failed" + errorTerm(li.Redact.Text, c.AlikeError))
	return nil
}

func (li *Lists) healthCard(ctx context.Context, c *cardsView) error {
	health, err := li.Engine.Health(ctx)
	if err != nil {
		return err
	}
	executors, err := li.Engine.Store().Executors(ctx)
	if err != nil {
		return fmt.Errorf("dashboard: listing processes: %w", err)
	}
	live := 0
	for _, x := range executors {
		if x.Live {
			live++
		}
	}
	c.Processes = fmt.Sprintf("%d of %d", live, len(executors))
	c.Executing, c.Backlog, c.Beat = health.Executing, health.Backlog, outline.About(health.BeatAge)
	c.CommitP99, c.Late = "none yet", health.TimersLate
	if health.Commits > 0 {
		c.CommitP99 = view.Millis(health.CommitP99)
	}
	if err := health.Ready(); err != nil {
		c.Ready = err.Error()
	}
	return nil
}
