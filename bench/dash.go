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

// dashes is the size of DASH.
type dashes struct {
	Runs    int // in the store
	Steps   int // of the history whose detail is requested
	Clients int // that watch at once
	Pairs   int // of spells with and without them
	// Spell is how long the steps go on while the list is watched; longer than the
	// interval at which the list's stream reads the store.
	Spell time.Duration
	// Burst is how long the steps of a watched run go on; several times as long as its
	// stream gathers events.
	Burst time.Duration
}

// dash measures how long people wait for a page, on a store with many runs, and what
// watching costs a busy run: its steps while 200 clients watch the list against those
// while none does, and the steps of a run that 200 watch against those of a run that
// none watches. The clients are in this process too, so that their share of the work is
// counted.
func dash(ctx context.Context, t *target, n size) ([]result, error) {
	s, settle, err := dashStore(ctx, t)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	long := durable.Define("long", steps)
	steppers := []*stepper{newStepper(), newStepper(), newStepper()}
	stepping := durable.Define("stepping", func(ctx context.Context, i int) (int, error) { return steppers[i].work(ctx, 0) })
	var results []result
	err = withEngine(ctx, s, func(ctx context.Context, eng *durable.Engine) error {
		if err := errors.Join(dashFill(ctx, s, long, n.dash), settle()); err != nil {
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
		w := watching{workflow: stepping, steppers: steppers, size: n.dash, site: srv.URL}
		for _, watch := range []struct {
			name string
			of   func(context.Context) ([]pair, error)
		}{{"DASH 200 on list", w.list}, {"DASH 200 on run", w.run}} {
			measured, err := watch.of(ctx)
			if err != nil {
				return err
			}
			results = append(results, pairedResult(watch.name, "us/step", false, measured))
		}
		return nil
	}, long, stepping, dashWorkflow)
	return results, err
}

// dashStore opens an empty store, and returns a function that lets its server come to
// rest.
func dashStore(ctx context.Context, t *target) (s store.Store, settle func() error, err error) {
	settle = func() error { return nil }
	if t.isMemory() {
		s, err = t.open()
		return s, settle, err
	}
	address, err := t.create(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err = connect(t.name, t.mode, address)
	return s, func() error { return t.settle(ctx, address) }, err
}

// dashFill makes the runs: many at rest, and one with a long history.
func dashFill(ctx context.Context, s store.Store, long *durable.Workflow[int, int], n dashes) error {
	if err := dashCopies(ctx, s, n.Runs); err != nil {
		return err
	}
	_, err := long.Run(ctx, "long", n.Steps)
	return err
}

// timed requests an address several times, one after the other.
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

// crowdOf opens streams and reads them as messages come. It returns a function that
// ends them.
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
