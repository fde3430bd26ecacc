package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// dashes is how large DASH is.
type dashes struct {
	Runs    int // in the store
	Steps   int // of the history whose detail is asked for
	Clients int // that watch at once
	Block   int // steps; some times as long as a stream gathers events for
}

// dash measures what people wait for when they look, on a store with many runs,
// and what it costs a run in full flight that many look at it: its steps with
// 200 streams open against those of a run nobody watches. The clients are in this
// process too, so that their part of the work is counted.
func dash(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	long := durable.Define("long", steps)
	steppers := []*stepper{newStepper(), newStepper(), newStepper(), newStepper()}
	stepping := durable.Define("stepping", func(ctx context.Context, i int) (int, error) { return steppers[i].work(ctx, 0) })
	var results []result
	err = withEngine(ctx, s, func(ctx context.Context, eng *durable.Engine) error {
		if err := dashFill(ctx, s, long, n.dash); err != nil {
			return err
		}
		srv := httptest.NewServer(dashboard.Handler(eng, dashboard.Options{Logger: slog.New(slog.DiscardHandler)}))
		defer srv.Close()
		defer srv.CloseClientConnections()
		for _, look := range [][2]string{
			{"DASH list", "/api/runs?limit=50&counts=1"},
			{"DASH by status", "/api/runs?limit=50&status=completed"},
			{"DASH search", "/api/runs?limit=50&q=no-such-run"},
			{"DASH detail", "/api/runs/long/events?all=1&limit=10000"},
			{"DASH detail head", "/api/runs/long"},
			{"DASH list page", "/"},
			{"DASH failed page", "/?q=status:failed"},
			{"DASH search page", "/?q=no-such-run"},
			{"DASH run page", "/runs/long"},
		} {
			r, err := timed(ctx, look[0], srv.URL+look[1], n.rounds)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
		for i, watch := range [][2]string{{"DASH 200 on list", "/api/stream"}, {"DASH 200 on run", "/api/runs/stepping-3/stream"}} {
			w := watching{workflow: stepping, steppers: steppers, size: n.dash, first: 2 * i, url: srv.URL + watch[1]}
			measured, err := w.measure(ctx, n.fanPairs)
			if err != nil {
				return err
			}
			results = append(results, pairedResult(watch[0], "us/step", false, measured))
		}
		return nil
	}, long, stepping, dashWorkflow)
	return results, err
}

// dashFill makes the runs: many that rest, and one with a long history.
func dashFill(ctx context.Context, s store.Store, long *durable.Workflow[int, int], n dashes) error {
	if err := dashCopies(ctx, s, n.Runs); err != nil {
		return err
	}
	_, err := long.Run(ctx, "long", n.Steps)
	return err
}

// timed asks for an address some times, one after the other.
func timed(ctx context.Context, name, url string, rounds int) (result, error) {
	var took []float64
	for range rounds {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return result{}, err
		}
		if !strings.HasPrefix(r.URL.Path, "/api/") {
			r.Header.Set("Accept", "text/html") // as a browser asks
		}
		began := time.Now()
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return result{}, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return result{}, err
		}
		if resp.StatusCode != http.StatusOK {
			return result{}, fmt.Errorf("%s answers %s", url, resp.Status)
		}
		took = append(took, float64(time.Since(began))/float64(time.Millisecond))
	}
	return plainResult(name, "ms/request", took), nil
}

// watching is a comparison of two runs, one of which is watched.
type watching struct {
	workflow *durable.Workflow[int, int]
	steppers []*stepper
	size     dashes
	first    int // number of the stepper that nobody watches; the next one is watched
	url      string
}

// measure takes blocks of the two runs in turn.
func (w *watching) measure(ctx context.Context, rounds int) ([]pair, error) {
	var runs [2]*durable.Run[int]
	for i := range runs {
		run, err := w.workflow.Start(ctx, fmt.Sprintf("stepping-%d", w.first+i), w.first+i)
		if err != nil {
			return nil, err
		}
		defer close(w.steppers[w.first+i].blocks)
		runs[i] = run
	}
	leave, err := crowdOf(ctx, w.url, w.size.Clients)
	if err != nil {
		return nil, err
	}
	defer leave()
	side := func(i int) block {
		return func() (float64, error) {
			d, err := w.steppers[w.first+i].block(ctx, runs[i], w.size.Block)
			return micros(d) / float64(w.size.Block), err
		}
	}
	return pairs(rounds, side(0), side(1))
}

// crowdOf opens streams that are read as they come, and returns what ends them.
func crowdOf(ctx context.Context, url string, n int) (leave func(), err error) {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	leave = func() {
		stop()
		all.Wait()
	}
	for range n {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			leave()
			return nil, err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			leave()
			return nil, err
		}
		all.Go(func() {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
		if resp.StatusCode != http.StatusOK {
			leave()
			return nil, fmt.Errorf("%s answers %s", url, resp.Status)
		}
	}
	return leave, nil
}
