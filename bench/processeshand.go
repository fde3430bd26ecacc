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

// processesByHandChild is one of the processes of PROCESSES by hand: each of its commits is a
// checkpoint of each of its runs. It has an engine that does nothing, so that it is seen.
func processesByHandChild(ctx context.Context, o orders, s store.Store, in io.Reader, out io.Writer) error {
	var all share
	err := unrecovered(ctx, s, func(context.Context, *durable.Engine) error {
		from, to, err := o.told(in)
		if err != nil {
			return err
		}
		h := hand{s: s, name: o.Name}
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
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(all)
}
