package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/line"
)

// censusAndNamed is the name of a statement made of the one that reads all executors, and named_rows.
const censusAndNamed = "census_and_named"

// composeNamed makes the statement. The executors come with the first row, as JSON.
func composeNamed(all sqlstore.Statements, executors string) string {
	return "WITH census AS (" + all.Text(executors) + "\n), named AS (" + all.Text("named_rows") + "\n) " +
		"SELECT CASE WHEN n.ord = 1 THEN (SELECT pg_catalog.json_agg(c)::text FROM census c) END AS executors, n.* FROM named n"
}

// seen is a run that was read without a lock to be claimed.
type seen struct {
	claimed
	version string // of its row
}

// takeNamed claims those of the named runs that need no place in a queue, most of them by two
// statements: one reads executors and runs, the other claims what has not changed since and nobody
// has locked. The others are claimed under locks, and so are runs whose history the claim may hand over:
// the row of a run does not show that somebody has recorded a branch of it meanwhile. more says that
// some are not decided about.
func (c *claiming) takeNamed(ctx context.Context) (more bool, err error) {
	ids := names(c.claim.IDs...)
	if ids == "{}" {
		return true, nil // the executors come with the first row
	}
	var all *census
	var list []*seen
	err = c.store.again(ctx, func(w *wire) (err error) {
		w.ctx = ctx
		all, list, err = c.see(w, ids)
		return err
	})
	if err != nil {
		return false, err
	}
	if !all.isLive(c.claim.Executor) {
		return false, c.unknown()
	}
	var ready []*seen
	var rest []line.Run
	for _, k := range list {
		switch {
		case !c.claim.MayTake(k.row, k.now, all.isLive(k.row.Owner)):
			c.tried[k.No] = true
		case k.row.NeedsPlace() || len(ready)+len(rest) == min(c.free(), maxBatch):
			more = true
		case k.created != nil && c.claim.Created != nil:
			rest = append(rest, k.Run)
		case c.claim.Spares(k.row, k.row.Last):
			c.tried[k.No] = true
		default:
			ready = append(ready, k)
			sqlstore.TakeClaim(k.row, c.claim, k.now)
		}
	}
	if len(ready) > 0 {
		rest = append(rest, c.takeSeen(ctx, ready, all)...)
		if err := c.settle(ctx); err != nil {
			return false, err
		}
	}
	if len(rest) == 0 {
		return more, nil
	}
	s := &survey{owners: all.free(), now: all.now, queues: map[string]*queue{}}
	if err = c.takeAll(ctx, s.just(rest...), rest, len(rest)); errors.Is(err, errAgain) {
		return true, nil
	}
	return more, err
}

// sort puts the runs that were taken in the order in which the claim names them.
func (c *claiming) sort() {
	place := make(map[string]int, len(c.claim.IDs))
	for i, id := range slices.Backward(c.claim.IDs) {
		place[id] = i
	}
	slices.SortFunc(c.taken, func(a, b store.Run) int { return cmp.Compare(place[a.ID], place[b.ID]) })
}

// see reads executors and runs.
func (c *claiming) see(w *wire, ids driverValue) (all *census, list []*seen, err error) {
	all = newCensus()
	known := map[int64]bool{}
	err = w.query(censusAndNamed, func(v []driverValue) error {
		if v[0] != nil {
			if err := all.addJSON([]byte(v[0].(string))); err != nil {
				return err
			}
		}
		if v = v[2:]; v[3] == nil || known[v[3].(int64)] {
			return nil // no run has the id, or it was named twice
		}
		row, _, err := scanClaimed(v[3:])
		if err != nil {
			return err
		}
		if v[2] != nil {
			if err := json.Unmarshal([]byte(v[2].(string)), &row.Attributes); err != nil {
				return fmt.Errorf("postgres: attributes of run %q: %w", row.ID, err)
			}
		}
		no := v[3].(int64)
		known[no] = true
		k := &seen{version: v[1].(string), claimed: claimed{Run: line.Run{No: no, Queue: row.Queue, Partition: row.Partition, Status: row.Status}, now: store.Time(v[0].(int64)), row: row}}
		if v[3+runColumns+eventColumns].(bool) && row.Status == store.Pending {
			k.created = row.Last
		}
		list = append(list, k)
		return nil
	}, ids)
	if err == nil {
		err = c.store.decideLive(all)
	}
	return all, list, err
}

// takeSeen writes what claims change, of the runs for which nothing speaks against that, and returns
// the others. An error is not told: who claims those under locks meets it again.
func (c *claiming) takeSeen(ctx context.Context, list []*seen, all *census) (left []line.Run) {
	var a claimArrays
	var versions, gone, beats array
	for _, k := range list {
		a.add(&k.claimed)
		versions.text(k.version)
	}
	for i := range all.rows {
		if r := &all.rows[i]; !all.isLive(r.ID) {
			gone.text(r.ID)
			beats.int(r.BeatAt)
		}
	}
	written := map[int64]bool{}
	err := c.store.write(ctx, func(w *wire) error {
		return w.query("take_seen", func(v []driverValue) error {
			written[v[0].(int64)] = true
			return nil
		}, append(a.values(c.claim.Executor), versions.value(), gone.value(), beats.value())...)
	})
	if err != nil {
		clear(written)
	} else {
		c.store.counts.commits.Add(1)
	}
	unknown := unanswered(err)
	for _, k := range list {
		switch {
		case written[k.No]:
			c.tried[k.No] = true
			c.add(k.No, k.row)
			continue
		case unknown:
			c.doubt(unsettledClaim{no: k.No, executor: c.claim.Executor, epoch: k.row.Epoch, seq: k.row.Last.Seq, unbegun: true})
		}
		left = append(left, k.Run)
	}
	return left
}

// addJSON reads the rows of the statement as JSON.
func (c *census) addJSON(list []byte) error {
	var rows []struct {
		Now, Up      int64
		Held, Owners string
		ID           *string
		Name         string
		Host         string
		Boot         string
		PID          int64
		Lease        int64
		Serves       string
		StartedAt    int64 `json:"started_at"`
		BeatAt       int64 `json:"beat_at"`
		Presence     string
	}
	if err := json.Unmarshal(list, &rows); err != nil {
		return fmt.Errorf("postgres: list of executors: %w", err)
	}
	for i := range rows {
		r := &rows[i]
		err := c.add([]driverValue{
			r.Now, r.Up, r.Held, r.Owners, orNull(r.ID), r.Name, r.Host, r.Boot, r.PID, r.Lease, r.Serves, r.StartedAt, r.BeatAt, r.Presence,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
