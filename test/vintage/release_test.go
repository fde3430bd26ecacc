package vintage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Of each release, testdata/RELEASE keeps what a process of it has left behind when it was
// killed: a store of each backend, exported runs and an archive. They are made once, by
//
//	go test -trimpath ./test/vintage -run TestTheStoresOfThisReleaseAreKept -update
//	go test ./test/vintage -run TestWhatWasKeptOfAFormatIsNeverChangedOrTakenAway -update
//
// while the release is being prepared, and never again: later releases continue what is there.
const releases = "testdata"

// bookings is the program's own table, in the database of the store.
const bookings = "CREATE TABLE bookings (amount integer NOT NULL)"

func workflowOf(id string) string {
	workflow, _, _ := strings.Cut(id, "-")
	return workflow
}

func TestTheStoresOfThisReleaseAreKept(t *testing.T) {
	number, _, _ := strings.Cut(durable.Release(), "-dev")
	dir := filepath.Join(releases, number)
	for name, c := range cellars(t) {
		file := filepath.Join(dir, name+c.ext)
		if !*update {
			require.FileExists(t, file, "release %s has no store kept yet: go test ./test/vintage -update", durable.Release())
			continue
		}
		if _, err := os.Stat(file); err == nil {
			t.Logf("%s is there, and stays as it is", file)
			continue
		}
		keepRelease(t, name, c, dir)
	}
}

func keepRelease(t *testing.T, name string, c cellar, dir string) {
	_, here, _, _ := runtime.Caller(0)
	require.False(t, filepath.IsAbs(here), "a difference names a line of this file: build it with -trimpath, or a path of this machine is kept")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	base := filepath.Join(dir, name)
	dsn, keep := c.empty(t)
	c.table(t, dsn, bookings)
	copies := t.TempDir()
	leftBehind(t, name, dsn, copies)
	b, err := json.MarshalIndent(read(t, c.open(t, dsn)), "", " ")
	require.NoError(t, err)
	keep(base + c.ext)
	if c.ext == ".sql" {
		text, err := os.ReadFile(base + c.ext)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(base+c.ext, append([]byte(bookings+";\n\n"), text...), 0o644))
	}
	require.NoError(t, os.WriteFile(base+".json", append(b, '\n'), 0o644))
	if _, err := os.Stat(filepath.Join(dir, "archive")); err == nil {
		return // the other backend has left them
	}
	require.NoError(t, os.CopyFS(filepath.Join(dir, "archive"), os.DirFS(copies)))
	require.NoError(t, os.Remove(filepath.Join(dir, "archive", ".lock")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "exports"), 0o755))
	op := operate.On(looker(t, c.open(t, dsn)))
	for _, id := range ids(t, c.open(t, dsn)) {
		var file bytes.Buffer
		require.NoError(t, op.Export(t.Context(), id, &file), id)
		name := strings.ReplaceAll(id, ":", "") + ".jsonl" // times are in ids of schedules
		require.NoError(t, os.WriteFile(filepath.Join(dir, "exports", name), file.Bytes(), 0o644))
	}
}

// looker is an engine that has no code, and so executes nothing.
func looker(t *testing.T, st store.Store) *durable.Engine {
	t.Helper()
	o := (&market{}).options()
	o.Workflows, o.Schedules, o.Queues = nil, nil, nil
	return opened(t, st, o)
}

func opened(t *testing.T, st store.Store, o durable.Options) *durable.Engine {
	t.Helper()
	eng, err := durable.Open(t.Context(), st, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	return eng
}

func ids(t *testing.T, st store.Store) (all []string) {
	t.Helper()
	page, err := st.List(t.Context(), store.Filter{OldestFirst: true, Limit: 1000})
	require.NoError(t, err)
	for _, r := range page.Runs {
		all = append(all, r.ID)
	}
	require.Empty(t, page.Next)
	return all
}

// onEveryRelease calls f with each store that was kept, by a copy.
func onEveryRelease(t *testing.T, f func(t *testing.T, c cellar, dir, file string)) {
	for name, c := range cellars(t) {
		files, err := filepath.Glob(filepath.Join(releases, "*", name+c.ext))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(filepath.Base(filepath.Dir(file))+"/"+name, func(t *testing.T) { f(t, c, filepath.Dir(file), file) })
		}
	}
}

func TestStoresOfEveryReleaseReadBackAsTheyWereWritten(t *testing.T) {
	onEveryRelease(t, func(t *testing.T, c cellar, dir, file string) {
		st := c.open(t, c.uncork(t, file))
		b, err := os.ReadFile(strings.TrimSuffix(file, c.ext) + ".json")
		require.NoError(t, err)
		var want any
		require.NoError(t, json.Unmarshal(b, &want))
		contains(t, "runs", want, asJSON(t, read(t, st)))

		eng := looker(t, st)
		op := operate.On(eng)
		listed := func(f store.Filter) (found []string) {
			page, err := eng.List(t.Context(), f)
			require.NoError(t, err)
			for _, r := range page.Runs {
				found = append(found, r.ID)
			}
			slices.Sort(found)
			return found
		}
		require.Equal(t, []string{"mail-1", "mail-2", "mail-3", "mail-4"}, listed(store.Filter{Queues: []string{"mail"}}))
		require.Equal(t, []string{"told-1"}, listed(store.Filter{Attributes: map[string]string{"customer": "Zoë", "region": "north"}}))
		require.Equal(t, []string{"changed-1"}, listed(store.Filter{Codes: []string{durable.CodeDefinitionChanged}}))
		require.Equal(t, []string{"family-1-one", "family-1-two"}, listed(store.Filter{Parents: []string{"family-1"}}))
		require.Equal(t, []string{"list-1", "mail-1", "order-1", "pay-1", "saga-1", "stream-1"}, listed(store.Filter{Orphaned: true, Statuses: []store.Status{store.Running}}))
		require.Equal(t, []string{"broken-1"}, listed(store.Filter{Statuses: []store.Status{store.Failed}}))
		require.Equal(t, []string{"told-1"}, listed(store.Filter{Paused: true}))
		require.Equal(t, []string{"approval-2"}, listed(store.Filter{Statuses: []store.Status{store.Cancelled}}))
		for v, err := range op.VerifyAll(t.Context(), store.Filter{}) {
			require.NoError(t, err)
			require.True(t, v.Sound(), "%s: %v", v.RunID, v.Findings)
		}
		asked, err := op.Approvals(t.Context())
		require.NoError(t, err)
		require.Len(t, asked, 1)
		require.Equal(t, "Ship it?", asked[0].Prompt)
		generations, err := op.Generations(t.Context(), "renew-1")
		require.NoError(t, err)
		require.Len(t, generations, 3)
		branches, err := op.Branches(t.Context(), "steps-1")
		require.NoError(t, err)
		require.Len(t, branches, 2)
		queues, err := op.Queues(t.Context())
		require.NoError(t, err)
		require.Len(t, queues, 1)
		schedules, err := op.Schedules(t.Context())
		require.NoError(t, err)
		require.Len(t, schedules, 1)
	})
}

func TestRunsOfEveryReleaseAreContinuedToTheirEnd(t *testing.T) {
	onEveryRelease(t, func(t *testing.T, c cellar, dir, file string) {
		dsn := c.uncork(t, file)
		before := read(t, c.open(t, dsn))
		m := &market{}
		eng := opened(t, c.open(t, dsn), m.options())
		ctx := durable.NewContext(t.Context(), eng)
		report, err := durable.Recover(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"changed-1"}, report.Unparked)
		require.NoError(t, eng.Unpause(ctx, "told-1"))
		m.finish(t, ctx, eng)

		for _, once := range []string{"reserve", "look", "pay", "work of a child", "fruit 0", "fruit 1", "undo hotel", "quick", "old", "one", "two", "three"} {
			require.Zero(t, m.times(once), "%s was done before", once)
		}
		for _, again := range []string{"fruit 3", "fruit 4", "square", "undo flight", "pack", "book"} {
			require.Equal(t, 1, m.times(again), again)
		}
		require.Less(t, slices.Index(m.bodies(), "mail 2"), slices.Index(m.bodies(), "mail 3"), "by priority")
		require.Eventually(t, func() bool { return m.times("tick 7 false") > 0 }, 20*time.Second, time.Millisecond, "the schedule fires")

		after := map[string]record{}
		for _, r := range read(t, c.open(t, dsn)) {
			after[r.Run.ID] = r
		}
		for _, r := range before {
			require.Equal(t, r.Events, after[r.Run.ID].Events[:len(r.Events)], r.Run.ID)
		}
	})
}

// finish answers what the runs wait for, and compares their results.
func (m *market) finish(t *testing.T, ctx context.Context, eng *durable.Engine) {
	t.Helper()
	stands, ok, err := durable.Published[cart](ctx, "told-1", "state")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, cart{4}, stands)
	for _, id := range []string{"family-1-two", "renew-1", "inbox-1", "together-1", "priced-1", "bank-1", "told-1", "steps-1", "steps-2", "steps-3"} {
		require.NoError(t, durable.Signal(ctx, id, "go", "gone"), id)
	}
	double, err := durable.Request[int](ctx, "ask-1", "double", 21)
	require.NoError(t, err)
	require.Equal(t, 42, double)
	asked, err := operate.On(eng).Approvals(ctx)
	require.NoError(t, err)
	require.Len(t, asked, 1)
	require.NoError(t, operate.On(eng).Answer(ctx, asked[0], "yes"))

	for id, want := range map[string]string{
		"order-1":      `3 items: attempt 3 in session s-3, after "answer 2", true`,
		"pay-1":        "paid, says the bank",
		"family-1":     "work of a child, gone",
		"family-1-one": "work of a child",
		"family-1-two": "gone",
		"list-1":       "fruit 0 fruit 1  fruit 3 fruit 4; fruit[2] is dead after 1",
		"stream-1":     "30",
		"renew-1":      "generation 3 gone",
		"inbox-1":      "gone one two",
		"ask-1":        "replied",
		"approval-1":   "yes",
		"late-1":       "late: true",
		"together-1":   "quick before gone",
		"changed-1":    "pack",
		"priced-1":     "version 1: 11 gone",
		"mail-1":       "mail 1", "mail-2": "mail 2", "mail-3": "mail 3", "mail-4": "mail 4",
		"bank-1":   "booked twice",
		"told-1":   "gone seven",
		"steps-1":  "stepped gone",
		"steps-2":  "stepped gone",
		"steps-3":  "stepped gone",
		"broken-0": strings.Repeat("a large result; ", 5000),
	} {
		require.Equal(t, want, result(t, ctx, id), id)
	}
	for _, id := range []string{"saga-1", "broken-1"} {
		_, err = outcome(t, ctx, id)
		require.ErrorIs(t, err, errBank, id)
	}
	_, err = outcome(t, ctx, "approval-2")
	var ended *durable.RunError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, store.Cancelled, ended.Status)
}

func TestExportsOfEveryReleaseFitTheCodeAndAreImportedAndFinished(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(releases, "*", "exports"))
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, dir := range dirs {
		o := (&market{}).options()
		durabletest.Replays(t, filepath.Join(dir, "*.jsonl"), o.Workflows, durabletest.Engine(durable.Options{Types: o.Types, Errors: o.Errors}))
		files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		require.NoError(t, err)
		for name, c := range cellars(t) {
			t.Run(fmt.Sprint(filepath.Base(filepath.Dir(dir)), "/", name), func(t *testing.T) {
				dsn, _ := c.empty(t)
				c.table(t, dsn, bookings)
				m := &market{}
				eng := opened(t, c.open(t, dsn), m.options())
				ctx := durable.NewContext(t.Context(), eng)
				_, err := durable.Recover(ctx)
				require.NoError(t, err)
				op := operate.On(eng)
				for _, file := range files {
					b, err := os.ReadFile(file)
					require.NoError(t, err)
					_, err = op.Import(ctx, bytes.NewReader(b), operate.ImportOptions{})
					require.NoError(t, err, file)
				}
				require.NoError(t, eng.Unpause(ctx, "told-1"))
				for _, err := range op.ResumeAll(ctx, store.Filter{Codes: []string{durable.CodeImported, durable.CodeDefinitionChanged}}, operate.ResumeOptions{}) {
					require.NoError(t, err)
				}
				m.finish(t, ctx, eng)
			})
		}
	}
}

func TestArchivesOfEveryReleaseAreRestored(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(releases, "*", "archive"))
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, kept := range dirs {
		copied := t.TempDir()
		require.NoError(t, os.CopyFS(copied, os.DirFS(kept)))
		dir, err := archive.OpenDir(copied)
		require.NoError(t, err)
		defer dir.Close()
		for name, c := range cellars(t) {
			t.Run(name, func(t *testing.T) {
				dsn, _ := c.empty(t)
				c.table(t, dsn, bookings)
				m := &market{}
				eng := opened(t, c.open(t, dsn), m.options())
				ctx := durable.NewContext(t.Context(), eng)
				restored, err := archive.RestoreWaiting(ctx, eng, dir)
				require.NoError(t, err)
				require.Subset(t, restored.Runs, []string{"renew-1", "inbox-1", "bank-1", "steps-1"})
				for id, want := range map[string]string{"renew-1": "generation 3 gone", "inbox-1": "gone one two", "bank-1": "booked twice", "steps-1": "stepped gone"} {
					require.NoError(t, durable.Signal(ctx, id, "go", "gone"), id)
					require.Equal(t, want, result(t, ctx, id), id)
				}
				_, err = archive.Restore(ctx, eng, dir, "broken-0")
				require.NoError(t, err)
				require.Equal(t, strings.Repeat("a large result; ", 5000), result(t, ctx, "broken-0"))
			})
		}
	}
}
