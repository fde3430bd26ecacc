package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

var (
	flat    = goal{flat: true}
	quickly = within(200 * time.Millisecond)
)

// curves are what SCALE measures, in this order: those that change the store come after those that
// look at it, and those that have a store of their own come last.
var curves = slices.Concat(
	[]curve{
		{name: "beat", goal: flat, run: func(ctx context.Context, s *scaled) error {
			_, err := s.Beat(ctx, scaleBeat("bench"))
			return err
		}},
		{name: "claim of none", goal: flat, run: func(ctx context.Context, s *scaled) error {
			_, err := s.Claim(ctx, store.Claim{Executor: "bench", Serves: []store.Served{{Workflow: dashWorkflow.Name(), Versions: []string{"1"}}}, Max: depthClaim, AnyQueue: true})
			return err
		}},
	},
	listings(map[string]store.Filter{
		"first page":                    {},
		"page of a status, common":      {Statuses: []store.Status{store.Completed}},
		"page of a status, rare":        {Statuses: []store.Status{store.Interrupted}},
		"page of two statuses":          {Statuses: []store.Status{store.Interrupted, store.Running}},
		"page of a workflow":            {Workflows: []string{dashWorkflow.Name()}},
		"page of a workflow, rare":      {Workflows: []string{scaleLetter}},
		"page of a workflow, none":      {Workflows: []string{"nothing"}},
		"page of a workflow and status": {Workflows: []string{scaleLetter}, Statuses: []store.Status{store.Completed}},
		"page of a code":                {Codes: []string{durable.CodeDefinitionChanged}},
		"page of an owner":              {Owners: []string{scaleExecutor}},
		"page of an owner, none":        {Owners: []string{"nobody"}},
		"page of orphaned":              {Orphaned: true},
		"page of paused":                {Paused: true},
		"page of a queue":               {Queues: []string{scaleQueue}},
		"page of a queue, none":         {Queues: []string{"nothing"}},
		"page of mail":                  {Mail: true},
		"page of an attribute, common":  {Attributes: map[string]string{scaleAttribute: "south"}},
		"page of an attribute, rare":    {Attributes: map[string]string{scaleRare: "gold"}},
		"page of an attribute, none":    {Attributes: map[string]string{scaleAttribute: "nowhere"}},
		"page of created in a time":     {CreatedFrom: scaleFrom, CreatedTo: scaleFrom + 60_000_000},
		"page of ended in a time":       {EndedFrom: scaleFrom, EndedTo: scaleFrom + 60_000_000},
		"page of ended before all":      {EndedTo: 1},
		// No index is about that time: it changes with the row.
		"page of updated in a time":      {UpdatedFrom: scaleFrom, UpdatedTo: scaleFrom + 60_000_000},
		"page of a prefix":               {IDPrefix: "run-77"},
		"page of a prefix, common":       {IDPrefix: "run-"},
		"oldest page of a status, rare":  {Statuses: []store.Status{store.Interrupted}, OldestFirst: true},
		"oldest page of resting, paused": {Statuses: []store.Status{store.Pending, store.Waiting, store.Interrupted}, Paused: true, OldestFirst: true},
	}),
	[]curve{
		{name: "Stuck(100)", goal: quickly, run: func(ctx context.Context, s *scaled) error {
			_, err := operate.On(s.engine).Stuck(ctx, 100)
			return err
		}},
		{name: "retention that finds nothing", goal: quickly, run: func(ctx context.Context, s *scaled) error {
			c, err := operate.On(s.engine).Clean(ctx, operate.CleanOptions{Retention: &durable.Retention{KeepFor: 10 * 365 * 24 * time.Hour}})
			if err == nil && c.Runs > 0 {
				err = fmt.Errorf("%d runs were deleted", c.Runs)
			}
			return err
		}},
		{name: "durable stuck", goal: quickly, run: terminal("stuck")},
		{name: "durable doctor", goal: quickly, run: terminal("doctor")},
		{name: "durable runs ls", goal: quickly, run: terminal("runs", "ls")},
		{name: "durable runs ls --resumable", goal: quickly, run: terminal("runs", "ls", "--resumable")},
		{name: "claim of 16 in a queue", goal: flat, run: func(ctx context.Context, s *scaled) error {
			got, err := s.Claim(ctx, store.Claim{Executor: "bench", Serves: scaleServes, Max: depthClaim, AnyQueue: true})
			if err == nil && len(got) != depthClaim {
				err = fmt.Errorf("a claim took %d runs and not %d", len(got), depthClaim)
			}
			return err
		}},
		{name: "Start", goal: flat, run: func(ctx context.Context, s *scaled) error {
			_, err := durable.Ref[string, string](scaleLetter).Start(durable.NewContext(ctx, s.engine), durable.AutoID, "")
			return err
		}},
	},
	openCurves,
	workCurves,
	waiterCurves,
	processCurves,
	asleepCurves,
	liveCurves,
)

// scaleFrom is a time at which a minute's worth of runs were created, in a store of any size.
var scaleFrom = store.TimeOf(time.Now().Add(-10 * time.Minute))

var scaleServes = []store.Served{
	{Workflow: dashWorkflow.Name(), Versions: []string{"1"}}, {Workflow: scaleLetter, Versions: []string{""}},
}

// scaleBeat is the beat of an executor that lives as long as the measurement.
func scaleBeat(id string) store.Executor {
	return store.Executor{ID: id, Name: id, Lease: 24 * time.Hour, Serves: scaleServes}
}

func listings(filters map[string]store.Filter) (list []curve) {
	for name, f := range filters {
		f.WithLast = true
		g := quickly
		if f.UpdatedFrom != 0 {
			g = within(time.Second)
		}
		list = append(list, curve{name: name, goal: g, run: func(ctx context.Context, s *scaled) error {
			_, err := s.List(ctx, f)
			return err
		}})
	}
	slices.SortFunc(list, func(a, b curve) int { return strings.Compare(a.name, b.name) })
	return list
}

// terminal executes a command of the terminal, in this process.
func terminal(args ...string) func(context.Context, *scaled) error {
	return func(ctx context.Context, s *scaled) error {
		cmd := cli.Command(nil, cli.Stores(cli.Backend{
			Name: s.t.name, Takes: func(string) bool { return true },
			Open: func(context.Context, string) (store.Store, error) { return connect(s.t.name, s.t.mode, s.address) },
		}))
		cmd.SetArgs(append([]string{"--store", "scale", "--json"}, args...))
		cmd.SetOut(io.Discard)
		var complaint strings.Builder
		cmd.SetErr(&complaint)
		err := cmd.ExecuteContext(ctx)
		if code := cli.ExitCode(err); code != 0 && code != cli.ExitFound {
			return fmt.Errorf("durable %s: %s: %w", strings.Join(args, " "), complaint.String(), err)
		}
		return nil
	}
}
