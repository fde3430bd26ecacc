package docs_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/conformance/recovery"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// What pages show of the use of a package, and no example has. It is compiled, and not
// called: TestWhatAPageShowsIsCompiled finds it here.
var _ = []any{keepArchive, restoreArchive, startFromArchive, nightly, day, repair, goBack, vet, oneTree, mount, traceIDs, resumeAll, handler, mine{}.TestConformance, mine{}.TestMain, mine{}.TestRecovery}

type order struct{ ID string }

func keepArchive(ctx context.Context, st store.Store, defs []durable.Definition) (*durable.Engine, error) {
	var keep archive.Archive
	keep, err := archive.OpenGit(ctx, "/srv/runs.git", archive.GitOptions{}) // or archive.OpenDir
	if err != nil {
		keep = archive.Unavailable(err) // a warning now; what is not archived is made up for later
	}
	history := archive.Hydrate(ctx, keep, nil)
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: defs, Archive: history})
	return eng, err
}

func restoreArchive(ctx context.Context, eng *durable.Engine, history *archive.History) error {
	restored, err := archive.RestoreWaiting(ctx, eng, history)
	fmt.Println(restored)
	return err
}

func startFromArchive(ctx context.Context, history *archive.History, checkout *durable.Workflow[order, string], in order) error {
	entry, err := history.Get(ctx, "order-1")
	if err != nil {
		return err
	}
	run, err := checkout.Start(ctx, "order-1", in, archive.BuildSnapshot(entry).Option())
	if err != nil {
		return err
	}
	_, err = run.Wait(ctx)
	return err
}

func nightly(ctx context.Context, report *durable.Workflow[string, int], st store.Store) (*durable.Engine, error) {
	return durable.Open(ctx, st, durable.Options{
		Workflows: []durable.Definition{report},
		Schedules: []durable.Schedule{
			report.Schedule("nightly", durable.Cron("0 0 2 * * *").In("Europe/Berlin"), "sales"),
			report.Schedule("quarterly", durable.Every(15*time.Minute).Jitter(time.Minute), "stock").
				Overlap(durable.OverlapQueue).Missed(durable.MissedSkip),
		},
	})
}

func day(ctx context.Context) string {
	return durable.ScheduledAt(ctx).AddDate(0, 0, -1).Format(time.DateOnly) // the day before, also when it is made up for later
}

func repair(ctx context.Context, op *operate.Operator) error {
	list, err := op.Schedules(ctx) // timetable, pause, next five times, last ten fires with their runs
	if err != nil {
		return err
	}
	for _, s := range list {
		fmt.Println(s.Name, s.Timetable, s.Next, s.MissedFires)
	}
	if err := op.PauseSchedule(ctx, "nightly", "month end"); err != nil {
		return err
	}
	if err := op.ResumeSchedule(ctx, "nightly"); err != nil { // times that passed meanwhile do not fire
		return err
	}
	if _, err := op.TriggerSchedule(ctx, "nightly", "ticket-4711"); err != nil { // the run nightly@now-ticket-4711
		return err
	}
	until := time.Now().Truncate(24 * time.Hour)
	_, err = op.BackfillSchedule(ctx, "nightly", until.AddDate(0, 0, -7), until) // starts what is missing of a week
	return err
}

func goBack(ctx context.Context, backup string) (string, error) {
	sc, err := sqlite.OpenSchema("app.db", sqlite.Options{}) // or postgres.OpenSchema
	if err != nil {
		return "", err
	}
	kept, err := sc.Restore(ctx, backup)
	return kept, err
}

func vet(ctx context.Context, dir string) error {
	ws := &shell.Workspace{Dir: dir, Env: []string{"GOFLAGS"}, Output: os.Stdout}
	if _, err := ws.Run(ctx, "vet", "go", "vet", "./..."); err != nil {
		return err
	}
	if _, err := ws.Retry(ctx, "test", durable.Policy{MaxAttempts: 5}, "go", "test", "./..."); err != nil {
		return err
	}
	return nil
}

func oneTree(ctx context.Context, release *durable.Workflow[order, string], dir string, in order) (*durable.Run[string], error) {
	opts, err := shell.Worktree(dir)
	if err != nil {
		return nil, err
	}
	run, err := release.Start(ctx, "release-7", in, opts...)
	return run, err
}

func resumeAll(ctx context.Context, eng *durable.Engine) {
	f := store.Filter{Workflows: []string{"checkout"}, Codes: []string{durable.CodeDefinitionChanged}}
	for plan, err := range operate.On(eng).ResumeAll(ctx, f, operate.ResumeOptions{}) { // DryRun: true only lists them
		fmt.Println(plan.RunID, plan, err)
	}
}

func handler(eng *durable.Engine, flow *durable.Workflow[int, string]) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /refunds/{id}", func(w http.ResponseWriter, r *http.Request) {
		ctx := durable.NewContext(r.Context(), eng)
		if _, err := flow.Start(ctx, r.PathValue("id"), 30); err != nil { // durable when it returns
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("POST /refunds/{id}/approve", func(w http.ResponseWriter, r *http.Request) {
		if err := eng.Signal(r.Context(), r.PathValue("id"), "approved", true); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("GET /refunds/{id}", func(w http.ResponseWriter, r *http.Request) {
		run, err := flow.Handle(durable.NewContext(r.Context(), eng), r.PathValue("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		paid, done, err := run.Result(r.Context()) // err: the run has failed, or there is none
		fmt.Fprintln(w, paid, done, err)
	})
	return mux
}

func mount(root *cobra.Command, eng *durable.Engine) int {
	root.AddCommand(cli.Command(eng))
	return cli.ExitCode(root.Execute())
}

func traceIDs() *sdktrace.TracerProvider {
	tracing := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(durable.SpanIDs{}))
	return tracing
}

// mystore is the package of a store that is being written.
var mystore struct {
	Open func(path string) (*memory.Store, error)
}

// mine has the tests of that store as methods, so that they are compiled and do not run.
type mine struct{}

func (mine) TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness{
		New: func(t testing.TB) conformance.Data {
			path := filepath.Join(t.TempDir(), "app.db") // a database of its own for each case
			return conformance.Data{
				Open: func() (store.Store, error) { return mystore.Open(path) },
			}
		},
		Has: []conformance.Capability{conformance.Meter},
	})
}

func (mine) TestMain(m *testing.M) {
	conformance.Main(func(place string) (store.Store, error) { return mystore.Open(place) })
	os.Exit(m.Run())
}

func (mine) TestRecovery(t *testing.T) {
	recovery.Run(t, recovery.Harness{New: func(t testing.TB) func() (store.Store, error) {
		path := filepath.Join(t.TempDir(), "app.db")
		return func() (store.Store, error) { return mystore.Open(path) }
	}})
}
