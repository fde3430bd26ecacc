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

const (
	depthBatch = 512
	depthClaim = 16 // runs of a claim
)

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
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	now := store.TimeOf(time.Now())
	var batch []store.Change
	for i := range queued + delayed {
		row := &store.Run{
			ID: fmt.Sprintf("run-%07d", i), Workflow: "deep", InitialVersion: "1", Version: "1", Status: store.Pending,
			Queue: queueName, Partition: fmt.Sprintf("tenant-%03d", i%partitions), CreatedAt: now + store.Time(i), Epoch: int64(now),
		}
		if i >= queued {
			row.WakeAt = now + store.Time(time.Hour.Microseconds())
		}
		e := store.Event{Seq: 1, Type: store.WorkflowCreated, At: row.CreatedAt}
		e.Sum = store.Seal(row.ID, 0, &e)
		batch = append(batch, store.Change{RunID: row.ID, Expect: store.Expect{Absent: true}, Create: row, Events: []store.Event{e}})
		if len(batch) == depthBatch || i == queued+delayed-1 {
			if err := errors.Join(s.Commit(ctx, batch)...); err != nil {
				return nil, err
			}
			batch = batch[:0]
		}
	}
	if t.settle != nil {
		if err := t.settle(ctx, address); err != nil {
			return nil, err
		}
	}
	_, err = s.Beat(ctx, store.Executor{ID: "e", Lease: time.Hour, Serves: depthServes})
	return s, err
}
