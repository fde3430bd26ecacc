package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// TestMain turns the binary into a child when a case has told it to.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// tiny measures nothing well and everything once.
var tiny = size{
	pairs: 1, fanPairs: 2, rounds: 1, idle: 1, idleCPU: 1, items: 300, careRuns: 10, stateSteps: 3, recoverRuns: 12, recoverRounds: 1,
	sleepers: sleepers{Runs: 50, Due: 5, Wakes: 1, Idle: 1, Slack: 3 * time.Second}, signals: 3, awayRounds: 1,
	queues: queues{Runs: 40, Single: 3, Rounds: 1}, depths: depths{Shallow: 40, Queued: 60, Delayed: 60, Partitions: 5, Pairs: 2}, fires: fires{Few: 2, Many: 9, Pairs: 2},
	crowds: crowds{Of: []int{1, 2}, Rounds: 1, Window: 50 * time.Millisecond},
	dash:   dashes{Runs: 50, Steps: 20, Clients: 3, Pairs: 2, Spell: time.Millisecond, Burst: time.Millisecond},
	sweeps: sweeps{Pairs: 1, Crowds: []int{1, 3}, Steps: 6, Lengths: []int{2, 9}, Payloads: []int{16, 2000}, Bytes: 4000, Runs: []int{5, 50}},
}

// waiting are the cases of structure and waiting, and the results of each.
var waiting = map[string][]string{
	"SEQ":      {"SEQ", "SEQ by hand", "SEQ alike"},
	"FAN":      {"FAN", "FAN by hand 100", "FAN by hand 70"},
	"PAR":      {"PAR", "PAR branch"},
	"MAP":      {"MAP"},
	"TX":       {"TX"},
	"RECOVER":  {"RECOVER", "RECOVER first", "RECOVER CPU"},
	"STATE":    {"SAVE", "RESUME state", "RESUME steps"},
	"CARE":     {"VERIFY", "RETENTION"},
	"ENQUEUE":  {"ENQUEUE bulk", "ENQUEUE single"},
	"QUEUE":    {"QUEUE", "QUEUE limited"},
	"SCHEDULE": {"SCHEDULE"},
	"DEPTH":    {"DEPTH claim", "DEPTH beat"},
	"IDLE":     {"IDLE", "IDLE CPU"},
	"SLEEP":    {"SLEEP start", "SLEEP memory", "SLEEP heap", "SLEEP idle", "SLEEP wake-up"},
	"CROWD":    {"CROWD", "CROWD p50"},
	"LENGTH":   {"LENGTH"},
	"PAYLOAD":  {"PAYLOAD"},
	"SIZE":     {"SIZE step", "SIZE start"},
	"START":    {"START p50", "START p50 in inserts", "START by hand p50", "START by hand p50 in inserts", "START p99", "START commits"},
	"SIGNAL":   {"SIGNAL p50", "SIGNAL p50 in inserts", "SIGNAL by hand p50", "SIGNAL by hand p50 in inserts", "SIGNAL p99", "SIGNAL away p50", "SIGNAL away p99", "SIGNAL away by hand p50"},
	"PROCESSES": {
		"PROCESSES 1", "PROCESSES 1 p99", "PROCESSES 1 batch", "PROCESSES 1 by hand", "PROCESSES 1 alike", "PROCESSES 1 CPU",
		"PROCESSES 2", "PROCESSES 2 p99", "PROCESSES 2 batch", "PROCESSES 2 by hand", "PROCESSES 2 alike", "PROCESSES 2 CPU",
		"PROCESSES 2 statements", "PROCESSES 2 statements alike", "PROCESSES 2 CPU alike",
	},
	"REPLAY": {"REPLAY", "REPLAY CPU", "REPLAY short", "REPLAY by hand", "REPLAY by hand CPU", "REPLAY rows by hand", "REPLAY rows by hand CPU"},
	"DASH":   {"DASH list", "DASH by status", "DASH search", "DASH detail", "DASH detail head", "DASH list page", "DASH failed page", "DASH search page", "DASH run page", "DASH 200 on list", "DASH 200 on run"},
}

func TestStructureAndWaitingAreMeasuredOnSQLite(t *testing.T) {
	testWaiting(t, "sqlite", modeFull)
}

func TestStructureAndWaitingAreMeasuredOnPostgres(t *testing.T) {
	t.Setenv(pgtest.EnvDSN, pgtest.DSN(t))
	testWaiting(t, "postgres", "1 connection")
}

func testWaiting(t *testing.T, name, mode string) {
	for one, names := range waiting {
		t.Run(one, func(t *testing.T) {
			results, err := measure(t.Context(), []string{name}, []string{one}, tiny)
			require.NoError(t, err)
			got := map[string]result{}
			for _, r := range results {
				require.Equal(t, name, r.Store)
				if r.Mode == mode {
					got[r.Name] = r
				}
			}
			for _, name := range names {
				if name == "SLEEP memory" && runtime.GOOS != "linux" {
					continue // no other system tells
				}
				require.Contains(t, got, name)
				require.Positive(t, got[name].Rounds, name)
				switch {
				case name == "TX": // a time
					require.Positive(t, *got[name].Floor, name)
					require.InDelta(t, *got[name].Floor/got[name].Median, *got[name].Ratio, *got[name].Ratio, name)
				case name == "PAR" || name == "MAP":
					require.Positive(t, *got[name].Floor, name)
					require.InDelta(t, got[name].Median / *got[name].Floor, *got[name].Ratio, *got[name].Ratio, name)
				case strings.HasSuffix(name, " in inserts"):
					// Of one round: what the ratio says, the other way round.
					p50 := got[strings.TrimSuffix(name, " in inserts")]
					require.InDelta(t, p50.Median / *p50.Floor, got[name].Median, 1e-9, name)
					require.InDelta(t, 1 / *p50.Ratio, got[name].Median, 1e-9, name)
					if !strings.Contains(name, "by hand") { // which has no goal
						require.Positive(t, got[name].Goal, name)
					}
				case strings.HasPrefix(name, "SIGNAL"), name == "SLEEP start", name == "VERIFY", name == "RETENTION":
					require.Positive(t, got[name].Min, name)
				case name == "SLEEP wake-up":
					// The store's clock is known to half the time of a beat.
					require.Less(t, math.Abs(got[name].Median), 60.0, name)
				}
			}
		})
	}
}

// A child that cannot do its work says why, and the case does not wait for it.
func TestFailureOfAChildIsTheCases(t *testing.T) {
	o := orders{Role: "signal", Store: "sqlite", Mode: modeFull, Address: t.TempDir()} // a directory is no database
	c, err := begin(t.Context(), o)
	require.NoError(t, err)
	<-c.ended
	require.ErrorContains(t, c.end(), "the process for the role signal: exit status 1: bench: ")

	l := newListener(1)
	target := sqliteTarget(t.TempDir(), modeFull)
	s, err := target.open()
	require.NoError(t, err)
	defer s.Close()
	err = withEngine(t.Context(), s, func(ctx context.Context, eng *durable.Engine) error {
		l.engine = eng
		_, err := l.fromAway(ctx, o, 1)
		return err
	}, l.workflow)
	require.ErrorContains(t, err, "exit status 1")
}

// Without its parent a child has nobody to measure for.
func TestChildEndsWithItsInput(t *testing.T) {
	target := sqliteTarget(t.TempDir(), modeFull)
	for role := range roles {
		address, err := target.create(t.Context())
		require.NoError(t, err)
		c, err := begin(t.Context(), orders{Role: role, Store: target.name, Mode: target.mode, Address: address,
			Sleepers: sleepers{Runs: 1, Due: 1, Wakes: 1, Idle: 3600, Slack: time.Hour}})
		require.NoError(t, err)
		require.NoError(t, c.in.Close()) // that its work is undone is a failure, or not: the role says
		select {
		case <-c.ended:
		case <-time.After(time.Minute):
			t.Fatalf("the process for the role %s is still there", role)
		}
	}
}

func TestOrdersThatAreNoneAreRefused(t *testing.T) {
	require.ErrorContains(t, obey(t.Context(), "{", nil, io.Discard), childEnv)
	require.ErrorContains(t, obey(t.Context(), `{"Role":"cook"}`, nil, io.Discard), `"cook", which is no role`)
	_, err := connect("memory", "", "")
	require.ErrorContains(t, err, "memory store has no address")
}

func TestCommandPrintsCasesAsJSON(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, command(t.Context(), &out, []string{"-quick", "-json", "-stores", "memory", "-only", "ENGINE"}))
	var got struct{ Cases []result }
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Len(t, got.Cases, 12)
	require.Equal(t, "memory", got.Cases[0].Store)
	require.Equal(t, "ENGINE traced allocations", got.Cases[5].Name)
	require.Greater(t, got.Cases[5].Median, got.Cases[1].Median+5, "it is traced")
	require.Greater(t, got.Cases[7].Median, got.Cases[1].Median+1, "it is measured")
	require.Equal(t, "ENGINE struct by hand", got.Cases[10].Name)
	require.Less(t, got.Cases[10].Min, got.Cases[2].Min, "it has no engine")
	require.Positive(t, got.Cases[0].Median)
	require.Equal(t, quick.rounds, got.Cases[0].Rounds)
}

func TestCommandRefusesUnknownStores(t *testing.T) {
	require.ErrorContains(t, command(t.Context(), io.Discard, []string{"-stores", "punchcards"}), "punchcards")
}

// The floor pays for the same row and the same fence as the store does; a floor
// without the fence would be too low.
func TestSQLiteFloorInsertsFencedRowsLikeTheStore(t *testing.T) {
	f, err := sqliteTarget(t.TempDir(), modeNormal).openFloor(t.Context())
	require.NoError(t, err)
	defer f.Close()
	_, err = f.singles(t.Context(), 50)
	require.NoError(t, err)

	var rows, shapes int
	row := f.conn.QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT key || type || length(payload)) FROM floor_events")
	require.NoError(t, row.Scan(&rows, &shapes))
	require.Equal(t, 51, rows)
	require.Equal(t, 1, shapes)

	f.args[f.place] = f.args[f.place].(int64) + 1 // leaves a gap
	_, err = f.singles(t.Context(), 1)
	require.ErrorIs(t, err, errFenced)
}

func TestPostgresFloorInsertsFencedRowsLikeTheStore(t *testing.T) {
	t.Setenv(pgtest.EnvDSN, pgtest.DSN(t))
	target, stop, err := postgresTarget()
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	f, err := target.openFloor(t.Context())
	require.NoError(t, err)
	defer f.Close()
	_, err = f.singles(t.Context(), 50)
	require.NoError(t, err)

	f.args[f.place] = f.args[f.place].(int64) + 1 // leaves a gap
	_, err = f.singles(t.Context(), 1)
	require.ErrorIs(t, err, errFenced)
}

// A case that fails, or an interruption, does not take away what was measured before it.
func TestWhatWasMeasuredBeforeAFailureIsPrinted(t *testing.T) {
	all := cases
	t.Cleanup(func() { cases = all })
	cases = []benchCase{
		{"GOOD", (*target).isMemory, func(context.Context, *target, size) ([]result, error) {
			return []result{plainResult("GOOD", "us", []float64{4321})}, nil
		}},
		{"BAD", (*target).isMemory, func(context.Context, *target, size) ([]result, error) { return nil, errors.New("no disk") }},
	}
	var out bytes.Buffer
	require.ErrorContains(t, command(t.Context(), &out, []string{"-json", "-stores", "memory"}), "BAD on memory")
	require.Contains(t, out.String(), "4321")
}
