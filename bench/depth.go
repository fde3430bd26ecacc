package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// depths say how much stands in the deep store and in the shallow one of DEPTH.
type depths struct {
	Shallow    int // queued runs
	Queued     int
	Delayed    int
	Partitions int
	Pairs      int
}

// depthClaim is how many runs a claim takes.
const depthClaim = 16

var depthServes = []store.Served{{Workflow: "deep", Versions: []string{"1"}}}

// depth compares a claim and a beat of a store in which very many runs are in line, and
// are delayed, with those of a store with few.
func depth(ctx context.Context, t *target, n size) ([]result, error) {
	few, err := newDepth(ctx, t, n.depths.Shallow, 0, 1)
	if err != nil {
		return nil, err
	}
	defer few.Close()
	many, err := newDepth(ctx, t, n.depths.Queued, n.depths.Delayed, n.depths.Partitions)
	if err != nil {
		return nil, err
	}
	defer many.Close()
	var claims, beats []pair
	for range n.depths.Pairs {
		var claim, beat pair
		for _, side := range []struct {
			s           store.Store
			claim, beat *float64
		}{{few, &claim.floor, &beat.floor}, {many, &claim.ours, &beat.ours}} {
			began := time.Now()
			runs, err := side.s.Claim(ctx, store.Claim{Executor: "e", Serves: depthServes, Max: depthClaim, AnyQueue: true})
			if err != nil {
				return nil, err
			}
			if len(runs) != depthClaim {
				return nil, fmt.Errorf("a claim took %d runs and not %d", len(runs), depthClaim)
			}
			*side.claim = micros(time.Since(began))
			began = time.Now()
			if _, err := side.s.Beat(ctx, store.Executor{ID: "e", Lease: time.Hour, Serves: depthServes}); err != nil {
				return nil, err
			}
			*side.beat = micros(time.Since(began))
		}
		claims, beats = append(claims, claim), append(beats, beat)
	}
	return []result{
		pairedResult("DEPTH claim", "us/claim", false, claims),
		pairedResult("DEPTH beat", "us/beat", false, beats),
	}, nil
}

// newDepth opens a new store, with an executor and these runs.
func newDepth(ctx context.Context, t *target, queued, delayed, partitions int) (s store.Store, err error) {
	address, err := t.create(ctx)
	if err != nil {
		return nil, err
	}
	if s, err = connect(t.name, t.mode, address); err != nil {
		return nil, err
	}
	opened := s // what is returned with an error is nil
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	now := store.TimeOf(time.Now())
	for no, kind := range []struct {
		n      int
		wakeAt store.Time
	}{{queued, 0}, {delayed, now + store.Time(time.Hour.Microseconds())}} {
		if kind.n == 0 {
			continue
		}
		row := &store.Run{
			ID: fmt.Sprintf("sample-%d", no), Workflow: "deep", InitialVersion: "1", Version: "1", Status: store.Pending,
			Queue: queueName, Partition: "tenant-0000", CreatedAt: now, WakeAt: kind.wakeAt, Epoch: int64(now),
		}
		e := store.Event{Seq: 1, Type: store.WorkflowCreated, At: row.CreatedAt}
		e.Sum = store.Seal(row.ID, 0, &e)
		if err := errors.Join(s.Commit(ctx, []store.Change{{RunID: row.ID, Expect: store.Expect{Absent: true}, Create: row, Events: []store.Event{e}}})...); err != nil {
			return nil, err
		}
		copied := map[string]string{
			"id": fmt.Sprintf("'run-%d-' || i", no), "created_at": fmt.Sprintf("%d + i", now),
			"partition": fmt.Sprintf("'tenant-' || i %% %d", partitions),
		}
		if kind.wakeAt != 0 {
			copied["wake_at"] = fmt.Sprintf("%d + i", kind.wakeAt)
		}
		if err := copyRuns(ctx, t, address, row.ID, kind.n-1, copied); err != nil {
			return nil, err
		}
	}
	if err := t.settle(ctx, address); err != nil {
		return nil, err
	}
	_, err = s.Beat(ctx, store.Executor{ID: "e", Lease: time.Hour, Serves: depthServes})
	return s, err
}
