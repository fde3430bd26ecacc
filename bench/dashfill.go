package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// dashWorkflow is the workflow of most runs of DASH: an order that completes, fails,
// sleeps or asks a person, as its input says.
var dashWorkflow = durable.Define("order", dashOrder)

func dashOrder(ctx context.Context, fate string) (string, error) {
	for _, step := range []string{"reserve", "charge"} {
		if _, err := durable.Step(ctx, step, func(context.Context) ([]byte, error) { return make([]byte, 512), nil }); err != nil {
			return "", err
		}
	}
	switch fate {
	case "fails":
		return "", durable.Do(ctx, "ship", func(context.Context) error { return errors.New("carrier: 503 Service Unavailable") })
	case "sleeps":
		return "", durable.Sleep(ctx, 1000*time.Hour)
	case "asks":
		_, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship it?"))
		return "", err
	}
	return "sent", durable.Do(ctx, "ship", func(context.Context) error { return nil })
}

// dashFates says how many of a thousand runs have which fate; the rest complete. No
// process serves the last of them.
var dashFates = []struct {
	name string
	of   int
}{{"fails", 50}, {"sleeps", 280}, {"asks", 5}, {"done", 663}, {"elsewhere", 2}}

// dashCopies writes as many runs as n says into s: copies of runs that were
// executed on a store in memory, a second apart, the last one now.
func dashCopies(ctx context.Context, s store.Store, n int) error {
	samples, err := dashSamples(ctx)
	if err != nil {
		return err
	}
	const batch = 256
	begin := time.Now().Add(-time.Duration(n) * time.Second)
	var changes []store.Change
	for i := range n {
		fate, at := "", i*37%1000 // spreads the fates evenly
		for _, f := range dashFates {
			if fate = f.name; at < f.of {
				break
			}
			at -= f.of
		}
		changes = append(changes, samples[fate].copy(fmt.Sprintf("order-%06d", i), store.TimeOf(begin.Add(time.Duration(i)*time.Second))))
		if len(changes) < batch && i < n-1 {
			continue
		}
		if err := errors.Join(s.Commit(ctx, changes)...); err != nil {
			return err
		}
		changes = changes[:0]
	}
	return nil
}

// A dashSample is a run to copy.
type dashSample struct {
	row    store.Run
	events []store.Event
}

// copy creates a run like the sample under another id.
func (d *dashSample) copy(id string, at store.Time) store.Change {
	row, later := d.row, at-d.row.CreatedAt
	row.ID, row.Owner, row.Last = id, "", nil
	for _, t := range []*store.Time{&row.CreatedAt, &row.StartedAt, &row.UpdatedAt, &row.EndedAt} {
		if *t != 0 {
			*t += later
		}
	}
	events := make([]store.Event, len(d.events))
	var sum uint32
	for i, e := range d.events {
		e.At += later
		e.Sum = store.Seal(id, sum, &e)
		events[i], sum = e, e.Sum
	}
	return store.Change{RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: events}
}

// dashSamples executes one run of each fate.
func dashSamples(ctx context.Context) (map[string]*dashSample, error) {
	s := memory.Open()
	defer s.Close()
	samples := map[string]*dashSample{}
	elsewhere := durable.Ref[string, string]("elsewhere")
	o := durable.Options{Workflows: []durable.Definition{dashWorkflow}, Logger: slog.New(slog.DiscardHandler)}
	return samples, withOptions(ctx, s, o, func(ctx context.Context, eng *durable.Engine) error {
		for _, f := range dashFates {
			var err error
			if f.name == "elsewhere" {
				_, err = elsewhere.Start(ctx, f.name, f.name)
			} else {
				_, err = dashWorkflow.Start(ctx, f.name, f.name)
			}
			if err != nil {
				return err
			}
			if samples[f.name], err = dashSampleOf(ctx, s, f.name); err != nil {
				return err
			}
		}
		return nil
	})
}

// dashSampleOf reads a run once it is at rest.
func dashSampleOf(ctx context.Context, s store.Store, id string) (*dashSample, error) {
	for {
		h, err := s.Load(ctx, id, store.Cursor{All: true})
		if err != nil {
			return nil, err
		}
		if st := h.Run.Status; !st.Terminal() && st != store.Waiting && (id != "elsewhere" || st != store.Pending) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(10 * time.Millisecond):
				continue
			}
		}
		d := &dashSample{row: h.Run}
		for e, err := range h.Events {
			if err != nil {
				return nil, err
			}
			d.events = append(d.events, e)
		}
		return d, nil
	}
}
