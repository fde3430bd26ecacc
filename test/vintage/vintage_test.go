package vintage_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A store is kept as every schema version leaves it, from the day that version
// is released, and each later program opens all of them. To keep one of a new
// version:
//
//	go test ./test/vintage -update
//
// It never replaces a file: what was released stays as it was.
var update = flag.Bool("update", false, "keep a store of the present schema version")

// cellar is where a backend's stores are kept.
type cellar struct {
	dir string // its testdata
	ext string
	// empty makes place for a new store; keep writes it to a file once it is closed.
	empty func(t *testing.T) (dsn string, keep func(to string))
	// uncork makes a copy of a file that was kept.
	uncork func(t *testing.T, file string) (dsn string)
	open   func(t *testing.T, dsn string) store.Store
	// table executes a statement of the program's own in the database of a store.
	table func(t *testing.T, dsn, statement string)
	// version of the schema this program knows.
	version int
}

// record is all that is read of a run.
type record struct {
	Run      store.Run
	Branches []store.Branch
	Inbox    []store.Message
	Events   []store.Event
}

// read returns all runs of a store, and checks that each log is as it was
// sealed.
func read(t *testing.T, st store.Store) []record {
	t.Helper()
	var all []record
	for f := (store.Filter{OldestFirst: true, Limit: 7}); ; {
		page, err := st.List(t.Context(), f)
		require.NoError(t, err)
		for _, r := range page.Runs {
			h, err := st.Load(t.Context(), r.ID, store.Cursor{All: true})
			require.NoError(t, err)
			rec := record{Run: h.Run, Branches: h.Branches, Inbox: h.Inbox}
			var sum uint32
			for e, err := range h.Events {
				require.NoError(t, err)
				require.EqualValues(t, len(rec.Events)+1, e.Seq, "the log of %s has no gap", r.ID)
				require.Equal(t, store.Seal(r.ID, sum, &e), e.Sum, "event %d of %s is as it was sealed", e.Seq, r.ID)
				require.True(t, e.Type.Known(), "%s", e.Type)
				sum = e.Sum
				rec.Events = append(rec.Events, e)
			}
			all = append(all, rec)
		}
		if f.After = page.Next; f.After == "" {
			return all
		}
	}
}

// asJSON turns records into values that do not depend on the present structs.
func asJSON(t *testing.T, v any) (out any) {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

// contains requires that got has all that want has; a field that want does not
// know is one that was added since, and must be empty.
func contains(t *testing.T, where string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		require.True(t, ok, where)
		for k := range want {
			require.Contains(t, m, k, where)
			contains(t, where+"."+k, want[k], m[k])
		}
		for k, v := range m {
			if _, ok := want[k]; !ok {
				require.Contains(t, []any{nil, "", float64(0), false}, v, "%s.%s is new", where, k)
			}
		}
	case []any:
		list, _ := got.([]any)
		require.Len(t, list, len(want), where)
		for i := range want {
			contains(t, fmt.Sprintf("%s[%d]", where, i), want[i], list[i])
		}
	default:
		require.Equal(t, want, got, where)
	}
}

func TestKeepAStoreOfThisVersion(t *testing.T) {
	for name, c := range cellars(t) {
		base := filepath.Join(c.dir, fmt.Sprintf("v%d", c.version))
		if !*update {
			require.FileExists(t, base+c.ext, "%s: this schema version has no store kept yet: go test ./test/vintage -update", name)
			continue
		}
		if _, err := os.Stat(base + c.ext); err == nil {
			t.Logf("%s is there, and stays as it is", base+c.ext)
			continue
		}
		dsn, keep := c.empty(t)
		st := c.open(t, dsn)
		fill(t, st)
		b, err := json.MarshalIndent(read(t, st), "", " ")
		require.NoError(t, err)
		require.NoError(t, st.Close())
		keep(base + c.ext)
		require.NoError(t, os.WriteFile(base+".json", append(b, '\n'), 0o644))
	}
}

// bottles lists the stores that a backend has kept.
func (c cellar) bottles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, "v*"+c.ext))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestStoresOfEveryVersionReadBackAsTheyWereWritten(t *testing.T) {
	for name, c := range cellars(t) {
		for _, file := range c.bottles(t) {
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) {
				st := c.open(t, c.uncork(t, file))
				b, err := os.ReadFile(file[:len(file)-len(c.ext)] + ".json")
				require.NoError(t, err)
				var want any
				require.NoError(t, json.Unmarshal(b, &want))
				got := read(t, st)
				contains(t, "runs", want, asJSON(t, got))

				seen := map[store.Status]bool{}
				for _, r := range got {
					seen[r.Run.Status] = true
				}
				require.Len(t, seen, len(store.Statuses()), "one in each status")
				executors, err := st.Executors(t.Context())
				require.NoError(t, err)
				gone := slices.IndexFunc(executors, func(e store.Executor) bool { return e.ID == "gone" })
				require.GreaterOrEqual(t, gone, 0)
				require.False(t, executors[gone].Live)
				require.Equal(t, []store.Served{{Workflow: "by hand", Versions: []string{"v1", "v2"}}}, executors[gone].Serves)
				errs := st.Commit(t.Context(), []store.Change{func() store.Change {
					c, _ := create("holder", func(r *store.Run) { r.Status = store.Pending })
					c.Hold = []string{"desk"}
					return c
				}()})
				require.ErrorIs(t, errs[0], store.ErrOccupied, "exclusive keys are still held")
			})
		}
	}
}

func TestRunsOfEveryVersionAreFinished(t *testing.T) {
	for name, c := range cellars(t) {
		for _, file := range c.bottles(t) {
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) {
				dsn := c.uncork(t, file)
				open := func() store.Store { return c.open(t, dsn) }
				before := read(t, open())
				var s shop
				ctx, _ := s.engine(t, open())
				rep, err := durable.Recover(ctx)
				require.NoError(t, err)
				require.NoError(t, durable.Signal(ctx, "approval-1", "answer", "yes"))
				for id, want := range map[string]string{
					"order-1": "order 1: 12", "order-2": "order 2: 22", "approval-1": "answered yes", "nap-1": "rested",
				} {
					require.Equal(t, want, result(t, ctx, id), id)
				}
				require.Zero(t, s.first.Load(), "what was done is not done again")
				require.EqualValues(t, 1, s.second.Load(), "what was under way is")
				_, err = outcome(t, ctx, "broken-1")
				require.ErrorContains(t, err, "no such item")
				require.NotEmpty(t, rep.Stuck, "runs of a workflow that nobody serves are reported")

				// The engine only ever appends.
				after := map[string]record{}
				for _, r := range read(t, open()) {
					after[r.Run.ID] = r
				}
				for _, r := range before {
					require.Equal(t, r.Events, after[r.Run.ID].Events[:len(r.Events)], r.Run.ID)
				}

				// And old runs can be deleted.
				n, err := open().Delete(t.Context(), store.Deletion{RunIDs: []string{"everything", "is-failed", "order-1"}, Force: true})
				require.NoError(t, err)
				require.Equal(t, 3, n)
			})
		}
	}
}

func outcome(t *testing.T, ctx context.Context, id string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	h, err := durable.Ref[int, string](workflowOf(id)).Handle(ctx, id)
	require.NoError(t, err)
	return h.Wait(ctx)
}

func result(t *testing.T, ctx context.Context, id string) string {
	t.Helper()
	out, err := outcome(t, ctx, id)
	require.NoError(t, err, id)
	return out
}
