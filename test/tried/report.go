package tried

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// proof is a test that says how much it has tried.
type proof struct {
	name, does, promises string
	test                 string // "directory.Name"
	also                 string // how the names of other tests begin that say lines of this name
}

// proofs are the tests, in the order of the table.
var proofs = []proof{
	{"shapes", "every shape of workflow, its process ended before and after every write, and again in its recovery", "G1–G6", "test/everystore.TestEveryShapeKilledAtAnyWriteOnAnyStoreEndsAsIfItHadNotBeen", ""},
	{"acts", "every act of an operator, killed at every write, and called again", "G6, G10", "test/everystore.TestAnActThatIsKilledAtAnyWriteIsWholeWhenItIsCalledAgain", ""},
	{"sim", "worlds of programs, faults of the store, clocks and operators", "G1–G10", "test/sim.TestWorlds", ""},
	{"kills", "real processes ended by SIGKILL at random moments", "G1–G3", "test/proof.TestNothingAcknowledgedIsLostByAnySIGKILL", ""},
	{"queues", "processes that share queues, ended by SIGKILL: limits, rates, order, turns and keys", "G1, G4", "test/proof.TestQueuesKeepTheirRulesThoughProcessesAreKilled", ""},
	{"crowd", "processes ended by SIGKILL while one of them has many runs", "G10", "test/proof.TestOfManyRunsUnderKillsFromOutsideNoneIsQuarantinedWithoutThreeDeathsInItsStep", ""},
	{"rolls", "deployments of another version, forth and back, by SIGTERM and by SIGKILL", "G7", "test/proof.TestARollForthAndBackEndsEveryRunRightOrSaysWhatEndsIt", ""},
	{"store-kills", "processes that write to one SQLite file, ended by SIGKILL", "G1", "store/sqlite.TestWhatWasAcknowledgedSurvivesAKill", ""},
	{"wal", "power failures: every beginning of the WAL in steps of 512 bytes, with and without noise behind it", "G1, G8", "store/sqlite.TestEveryBeginningOfTheWALIsAStateThatWas", "TestAPowerFailureAtAnyWriteOf"},
	{"histories", "clients that compete for runs, sleep beyond their leases and get no answer: is what they saw linearizable?", "G1, G4", "test/histories.TestWhatClientsSawOfAStoreIsLinearizable", ""},
	{"syscalls", "SIGKILL, EIO and ENOSPC at every write and fsync of SQLite, by strace", "G1", "test/syscalls.TestAFaultAtAnyWriteOrSyncOfSQLite", ""},
	{"statements", "an error of each class at each statement of PostgreSQL and each call to SQLite, until none fires", "G1, G2", "test/statements.TestAnErrorOfAnyClassAtAnyStatement", "TestAnErrorOfAnyClassAtAnyCallOf"},
	{"cuts", "connections to PostgreSQL cut before, in and after a commit", "G1, G2", "store/postgres.TestAnswersThatAreCutLoseAndDoubleNothing", ""},
	{"terminated", "sessions of PostgreSQL terminated", "G1, G2", "store/postgres.TestTerminatedBackendsLoseAndDoubleNothing", ""},
	{"restarts", "PostgreSQL stopped and killed under load", "G1, G2", "store/postgres.TestAServerThatIsRestartedUnderLoadLosesAndDoublesNothing", ""},
	{"zombies", "processes stopped beyond their lease, which go on when another has their run", "G4", "test/proof.TestAStoppedProcessCannotWriteOnceAnotherHasTakenItsRun", ""},
	{"owners", "processes stopped beyond their lease or cut off, whose bodies are still running", "G4", "test/proof.TestWhoHasLostARunBeginsNothingMoreAndEndsWhatItHasBegun", ""},
	{"chaos", "processes of a program that uses the whole API, killed, stopped, ended, cut off; servers restarted; files locked and copied", "G1–G4, G10", "test/chaos.TestChaosLosesAndDoublesNothing", ""},
	{"failover", "the primary of PostgreSQL killed under load, and its replica promoted", "G1, G4", "test/failover.TestAFailoverUnderLoad", ""},
	{"patroni", "the leader under Patroni and etcd killed under load, its server killed alone, and switched over", "G1, G4", "test/failover.TestTheLeaderOfAClusterUnderPatroniIsKilled", ""},
	{"sides", "replicas of the program on both sides of a cut: from one server, and between the data centres of a cluster", "G1, G4", "test/failover.TestReplicasOnBothSidesOfACut", "TestADataCentreIsCutOff"},
	{"pooler", "PgBouncer, and the server behind it, killed under load; a failover behind it", "G1, G4", "test/failover.TestPgBouncerAndTheServersBehindItAreKilled", ""},
	{"shortages", "PostgreSQL out of connections, of disk and of room for its log, or read-only, for longer than the lease", "G1, G4", "test/failover.TestAServerThatIsShortOfSomethingForLongerThanTheLease", ""},
	{"traces", "the trace of a run whose processes are killed at random, compared with the history", "G6", "test/traceproof.TestTheTraceOfSevenLivesThatAreKilledAtRandomEqualsTheHistory", ""},
}

// labels are the keys that tell rows of one test apart.
var labels = []string{"store", "mode", "driver", "of"}

// Soak returns the arguments of go test for all tests of the table but the worlds of the
// simulator, which run beside them.
func Soak() string {
	var names, dirs []string
	for _, p := range proofs {
		dir, name, _ := strings.Cut(p.test, ".")
		if p.name == "sim" {
			continue
		}
		if names = append(names, name); p.also != "" {
			names = append(names, p.also)
		}
		if !slices.Contains(dirs, "./"+dir) {
			dirs = append(dirs, "./"+dir)
		}
	}
	return "-run ^(" + strings.Join(names, "|") + ") " + strings.Join(dirs, " ")
}

// Table makes the table of docs/proof.md of the lines of a run. Numbers of lines with the same
// name and label are added up; of anything else the last counts.
func Table(lines io.Reader) (string, error) {
	type row struct {
		keys   []string
		values map[string]string
	}
	rows := map[string]map[string]*row{}
	in := bufio.NewScanner(lines)
	for in.Scan() {
		_, text, ok := strings.Cut(in.Text(), "proof: ")
		if !ok {
			continue
		}
		fields := strings.Fields(text)
		if !slices.ContainsFunc(proofs, func(p proof) bool { return p.name == fields[0] }) {
			return "", fmt.Errorf("no test is known by the name %q", fields[0])
		}
		label := ""
		r := &row{values: map[string]string{}}
		for _, f := range fields[1:] {
			k, v, ok := strings.Cut(f, "=")
			if !ok {
				return "", fmt.Errorf("%q is no key=value", f)
			}
			if slices.Contains(labels, k) {
				label = v
				continue
			}
			r.keys = append(r.keys, k)
			r.values[k] = v
		}
		if rows[fields[0]] == nil {
			rows[fields[0]] = map[string]*row{}
		}
		old := rows[fields[0]][label]
		if old == nil {
			rows[fields[0]][label] = r
			continue
		}
		for _, k := range r.keys {
			a, errA := strconv.ParseInt(old.values[k], 10, 64)
			b, errB := strconv.ParseInt(r.values[k], 10, 64)
			if old.values[k] = r.values[k]; errA == nil && errB == nil {
				old.values[k] = strconv.FormatInt(a+b, 10)
			}
		}
	}
	if err := in.Err(); err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("| what is done | shows | test | how much of it |\n|---|---|---|---|\n")
	for _, p := range proofs {
		var parts []string
		var names []string
		for label := range rows[p.name] {
			names = append(names, label)
		}
		slices.Sort(names)
		for _, label := range names {
			r := rows[p.name][label]
			var said []string
			for _, k := range r.keys {
				said = append(said, strings.ReplaceAll(k, "_", " ")+" "+r.values[k])
			}
			what := strings.Join(said, ", ")
			if label != "" {
				what = label + ": " + what
			}
			parts = append(parts, what)
		}
		if parts == nil {
			parts = []string{"not in the last run"}
		}
		fmt.Fprintf(&out, "| %s | %s | `%s` | %s |\n", p.does, p.promises, p.test, strings.Join(parts, "; "))
	}
	return out.String(), nil
}

const from, to = "<!-- tried: from here `make soak` writes -->\n", "<!-- to here -->\n"

// Insert replaces the table in the text of docs/proof.md.
func Insert(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, from)
	_, after, closed := strings.Cut(rest, to)
	if !ok || !closed {
		return "", fmt.Errorf("the page has no place for the table")
	}
	return before + from + "\n" + table + "\n" + to + after, nil
}
