package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The store of SCALE is that of a program which takes orders: most of its runs have ended,
// a quarter sleep, and a few of each thousand are everything else that a run can be.
const (
	scaleQueue      = "letters"
	scaleLetter     = "letter"    // pending, in line in a queue
	scaleExecutor   = "other"     // is alive and owns runs
	scaleGone       = "gone"      // is not, and owns runs
	scaleAttribute  = "region"    // every order has one of three values
	scaleRare       = "tier"      // one order of a thousand has it
	scalePartitions = 100         // of the queue
	scaleLine       = 256         // more runs in line
	scaleReal       = 1000        // of each status that have true checksums
	scaleEvery      = time.Second // between two runs
)

// scaleFates says how many of a thousand runs have which fate, in the order in which they
// stand in each thousand.
var scaleFates = []scaleFate{
	{name: "done", of: 600},
	{name: "fails", of: 47},
	{name: "cancelled", of: 10},
	{name: "sleeps", of: 250},
	{name: "asks", of: 40},
	{name: "line", of: 20, row: func(r *store.Run) {
		r.Workflow, r.Queue, r.Status = scaleLetter, scaleQueue, store.Pending
	}},
	{name: "delayed", of: 10, row: func(r *store.Run) {
		r.Workflow, r.Queue, r.Status, r.WakeAt = scaleLetter, scaleQueue, store.Pending, 1
	}},
	{name: "sleeps owned", like: "sleeps", of: 15, row: func(r *store.Run) { r.Owner = scaleExecutor }},
	{name: "running", like: "sleeps", of: 4, row: func(r *store.Run) { r.Status, r.Owner, r.WakeAt = store.Running, scaleExecutor, 0 }},
	{name: "orphaned", like: "sleeps", of: 1, row: func(r *store.Run) { r.Status, r.Owner, r.WakeAt = store.Running, scaleGone, 0 }},
	{name: "parked", like: "sleeps", of: 1, row: func(r *store.Run) {
		r.Status, r.Code, r.Reason, r.WakeAt = store.Interrupted, durable.CodeDefinitionChanged, "the code has changed", 0
	}},
	{name: "paused", like: "sleeps", of: 1, row: func(r *store.Run) { r.Paused = true }},
	{name: "tier", like: "done", of: 1, row: func(r *store.Run) { r.Attributes = map[string]string{scaleAttribute: "north", scaleRare: "gold"} }},
}

// A scaleFate is what becomes of some runs.
type scaleFate struct {
	name string
	like string           // whose sample it has; empty: name
	of   int              // a thousand
	row  func(*store.Run) // how its row differs from the sample's
}

// newScale makes a store with that many runs and returns its address.
func newScale(ctx context.Context, t *target, runs int) (address string, err error) {
	if address, err = t.create(ctx); err != nil {
		return "", err
	}
	s, err := connect(t.name, t.mode, address)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	samples, err := dashSamples(ctx)
	if err != nil {
		return "", err
	}
	begin := store.TimeOf(time.Now().Add(-time.Duration(runs) * scaleEvery))
	var copied []copies
	at := 0
	for _, f := range scaleFates {
		like := f.like
		if like == "" {
			like = f.name
		}
		d, err := scaleSample(samples, like)
		if err != nil {
			return "", err
		}
		if d.row.Attributes == nil {
			d.row.Attributes = map[string]string{scaleAttribute: "south"}
		}
		if d.row.Owner = ""; f.row != nil {
			f.row(&d.row)
		}
		c := d.copy("sample "+f.name, begin)
		c.Create.Owner = d.row.Owner
		if err := errors.Join(s.Commit(ctx, []store.Change{c})...); err != nil {
			return "", fmt.Errorf("the sample that %s: %w", f.name, err)
		}
		if f.name == "line" {
			// As many as claims take, in a store of any size.
			for i := range scaleLine {
				d.row.Partition = fmt.Sprintf("tenant-%d", i%scalePartitions)
				if err := errors.Join(s.Commit(ctx, []store.Change{d.copy(fmt.Sprintf("line-%d", i), begin)})...); err != nil {
					return "", err
				}
			}
		}
		copied = append(copied, copies{sample: c.RunID, from: at, to: at + f.of})
		at += f.of
	}
	micro := scaleEvery.Microseconds()
	later := func(column string) string {
		return fmt.Sprintf("CASE WHEN t.%s <> 0 THEN t.%[1]s + i * %d ELSE 0 END", column, micro)
	}
	tomorrow := int64(store.TimeOf(time.Now().Add(24 * time.Hour)))
	err = copyMany(ctx, t, address, copied, runs, map[string]string{
		"id":         "'run-' || i",
		"partition":  fmt.Sprintf("CASE WHEN t.queue <> '' THEN 'tenant-' || (i / 1000 %% %d) ELSE '' END", scalePartitions),
		"created_at": fmt.Sprintf("t.created_at + i * %d", micro), "updated_at": fmt.Sprintf("t.updated_at + i * %d", micro),
		"started_at": later("started_at"), "ended_at": later("ended_at"),
		"wake_at": fmt.Sprintf("CASE WHEN t.wake_at <> 0 THEN %d + i ELSE 0 END", tomorrow),
	})
	if err != nil {
		return "", err
	}
	if err := sealNewest(ctx, t, address, s); err != nil {
		return "", err
	}
	return address, t.settle(ctx, address)
}

// scaleSample returns a copy of a sample of DASH, and those that DASH has not.
func scaleSample(samples map[string]*dashSample, name string) (d dashSample, err error) {
	switch name {
	case "cancelled":
		d = *samples["elsewhere"]
		d.row.Workflow, d.row.Status, d.row.EndedAt = dashWorkflow.Name(), store.Cancelled, d.row.CreatedAt
	case "line", "delayed":
		d = *samples["elsewhere"]
	default:
		of, ok := samples[name]
		if !ok {
			return d, fmt.Errorf("there is no sample %q", name)
		}
		d = *of
	}
	return d, nil
}

// sealNewest gives the newest runs of each status true checksums: those of the others are
// still those of the samples, and nothing that is measured looks at them.
func sealNewest(ctx context.Context, t *target, address string, s store.Store) error {
	db, err := openRaw(t, address)
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to undo
	// In SQLite parameters are numbered as they come.
	at := "run_no = (SELECT no FROM durable_runs WHERE id = $2) AND seq = $3"
	if t.name == "sqlite" {
		at = "place = ((SELECT no FROM durable_runs WHERE id = $2) << 28) + $3"
	}
	seal, err := tx.PrepareContext(ctx, "UPDATE durable_events SET sum = $1 WHERE "+at)
	if err != nil {
		return err
	}
	for _, status := range store.Statuses() {
		page, err := s.List(ctx, store.Filter{Statuses: []store.Status{status}, Limit: scaleReal})
		if err != nil {
			return err
		}
		for i := range page.Runs {
			if err := sealRun(ctx, s, seal, page.Runs[i].ID); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

func sealRun(ctx context.Context, s store.Store, seal *sql.Stmt, id string) error {
	h, err := s.Load(ctx, id, store.Cursor{All: true})
	if err != nil {
		return err
	}
	var sum uint32
	for e, err := range h.Events {
		if err != nil {
			return err
		}
		sum = store.Seal(id, sum, &e)
		if _, err := seal.ExecContext(ctx, int64(sum), id, e.Seq); err != nil {
			return err
		}
	}
	return nil
}
