package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// withoutEngine has a child write by hand in the time that it is told, and says what its share was.
// It has an engine that does nothing, so that it is seen.
func withoutEngine(ctx context.Context, o orders, s store.Store, in io.Reader, out io.Writer, write func(h *hand, all *share, from, to time.Time) error) error {
	var all share
	err := unrecovered(ctx, s, func(context.Context, *durable.Engine) error {
		from, to, err := o.told(in)
		if err != nil {
			return err
		}
		return write(&hand{s: s, name: o.Name}, &all, from, to)
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(all)
}

// processesByHandChild is one of the processes of PROCESSES by hand: each of its commits is a
// checkpoint of each of its runs.
func processesByHandChild(ctx context.Context, o orders, s store.Store, in io.Reader, out io.Writer) error {
	return withoutEngine(ctx, o, s, in, out, func(h *hand, all *share, from, to time.Time) (err error) {
		logs := make([]*log, o.Runs)
		for i := range logs {
			if logs[i], err = h.create(); err != nil {
				return err
			}
		}
		batch := make([]store.Change, o.Runs)
		for now := time.Now(); now.Before(to); {
			for i, l := range logs {
				batch[i] = store.Change{RunID: l.id, Expect: expect, Events: []store.Event{l.event(store.StepCompleted, "step", nil, byHandPayload)}}
			}
			if err := errors.Join(s.Commit(ctx, batch)...); err != nil {
				return fmt.Errorf("by hand: %w", err)
			}
			began := now
			if now = time.Now(); began.After(from) && now.Before(to) {
				all.Steps, all.Commits = all.Steps+int64(o.Runs), all.Commits+1
			}
		}
		return nil
	})
}

// processesAlikeChild is one of the processes of PROCESSES alike: the runs of PROCESSES from their start
// to their end, with so many changes to a commit, of one run after the other.
func processesAlikeChild(ctx context.Context, o orders, s store.Store, in io.Reader, out io.Writer) error {
	return withoutEngine(ctx, o, s, in, out, func(h *hand, all *share, from, to time.Time) error {
		var line []*next // those whose next change has waited longest come first
		for range o.Runs {
			log, create := h.creation()
			line = append(line, &next{log: log, change: create})
		}
		var before spent
		for now := time.Now(); now.Before(to); {
			turn, batch := line[:min(o.Batch, len(line))], []store.Change(nil)
			steps := int64(0)
			for _, n := range turn {
				batch = append(batch, n.change)
				if n.isStep() {
					steps++
				}
			}
			if err := errors.Join(s.Commit(ctx, batch)...); err != nil {
				return fmt.Errorf("alike: %w", err)
			}
			began := now
			if now = time.Now(); began.Before(from) {
				before = spending(s)
			} else if now.Before(to) {
				all.Steps += steps
				all.since(before, s)
			}
			line = line[len(turn):]
			for _, n := range turn {
				if n.made(); n.log == nil {
					log, create := h.creation()
					n = &next{log: log, change: create}
				}
				line = append(line, n)
			}
		}
		return nil
	})
}
