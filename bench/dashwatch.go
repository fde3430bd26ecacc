package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// watching compares the steps of runs that are watched and runs that are not.
type watching struct {
	workflow *durable.Workflow[int, int]
	steppers []*stepper
	size     dashes
	site     string
}

// start starts the run of the stepper with the number i; end ends it.
func (w *watching) start(ctx context.Context, i int) (run *durable.Run[int], end func(), err error) {
	run, err = w.workflow.Start(ctx, fmt.Sprintf("stepping-%d", i), i)
	return run, func() { close(w.steppers[i].blocks) }, err
}

// list measures spells of one run in turn: with no watchers, and with a crowd that
// watches the list. The crowd comes and goes while the clock is stopped.
func (w *watching) list(ctx context.Context) ([]pair, error) {
	run, end, err := w.start(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer end()
	alone := func() (float64, error) { return w.spell(ctx, 0, run, w.size.Spell) }
	watched := func() (float64, error) {
		leave, err := crowdOf(ctx, w.site+"/api/stream", w.size.Clients)
		if err != nil {
			return 0, err
		}
		us, err := w.spell(ctx, 0, run, w.size.Spell)
		leave()
		if err != nil {
			return 0, err
		}
		return us, w.deserted(ctx)
	}
	return pairs(w.size.Pairs, alone, watched)
}

// spell returns how long a step of stepper i takes, measured over d.
func (w *watching) spell(ctx context.Context, i int, run *durable.Run[int], d time.Duration) (float64, error) {
	var took time.Duration
	const at = 50
	steps := 0
	for took < d {
		t, err := w.steppers[i].block(ctx, run, at)
		if err != nil {
			return 0, err
		}
		took += t
		steps += at
	}
	return micros(took) / float64(steps), nil
}

// deserted waits until the server has noticed that the crowd is gone.
func (w *watching) deserted(ctx context.Context) error {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.site+"/api/health", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		var health struct {
			Streams *int `json:"streams"`
		}
		err = json.NewDecoder(resp.Body).Decode(&health)
		_ = resp.Body.Close()
		switch {
		case err != nil:
			return err
		case health.Streams == nil:
			return errors.New("/api/health does not say how many streams are open")
		case *health.Streams == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// run measures spells of two runs in turn. A crowd watches one of them all the time, so
// it is sent only what the steps of that run cause.
func (w *watching) run(ctx context.Context) ([]pair, error) {
	sides := [2]block{}
	for i := range sides {
		run, end, err := w.start(ctx, 1+i)
		if err != nil {
			return nil, err
		}
		defer end()
		sides[i] = func() (float64, error) { return w.spell(ctx, 1+i, run, w.size.Burst) }
	}
	leave, err := crowdOf(ctx, w.site+"/api/runs/stepping-2/stream", w.size.Clients)
	if err != nil {
		return nil, err
	}
	defer leave()
	return pairs(w.size.Pairs, sides[0], sides[1])
}
