package conformance_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
)

// brokenStores says of each broken store which clauses must be seen to fail.
var brokenStores = []struct {
	name    string
	breaks  func() func(store.Store) store.Store
	clauses []string
}{
	{"delivers messages and starts apart", halvesAChange, []string{"S1"}},
	{"fails a batch together", failsTogether, []string{"S2"}},
	{"ignores the epoch", ignoresTheEpoch, []string{"S3"}},
	{"reads in the wrong order", swapsEvents, []string{"S3"}},
	{"loses an event", losesAnEvent, []string{"S3", "S4"}},
	{"reads stale", readsStale, []string{"S4"}},
	{"rounds times", roundsTimes, []string{"S4"}},
	{"keeps the owner after a yield", keepsTheOwner, []string{"S5"}},
	{"does not know a change again", forgetsWhatItDid, []string{"S6"}},
	{"creates twice", createsTwice, []string{"S8"}},
	{"takes any status", takesAnyStatus, []string{"S9"}},
	{"patches unfenced", patchesUnfenced, []string{"S10"}},
	{"forgets exclusive keys", forgetsKeys, []string{"S11"}},
	{"ignores dedup", ignoresDedup, []string{"S12"}},
	{"drops a signal", dropsASignal, []string{"S13"}},
	{"doubles messages", doublesMessages, []string{"S14"}},
	{"ignores NoCancel", ignoresNoCancel, []string{"S15"}},
	{"forgets a filter", forgetsAFilter, []string{"S16"}},
	{"reuses its buffer", reusesItsBuffer, []string{"S17"}},
	{"reads events of another moment", readsOnLater, []string{"S27"}},
	{"pages by offset", pagesByOffset, []string{"S16"}},
	{"ignores contexts", ignoresContexts, []string{"S18"}},
	{"claims twice", claimsTwice, []string{"S19", "S20"}},
	{"leases too long", leasesTooLong, []string{"S20"}},
	{"forgets strikes", forgetsStrikes, []string{"S21"}},
	{"reuses epochs", reusesEpochs, []string{"S22"}},
	{"deletes by id alone", deletesByID, []string{"S22"}},
	{"stays open", staysOpen, []string{"S23"}},
}

func broken(breaks func() func(store.Store) store.Store) conformance.Harness {
	h := inMemory()
	sound := h.New
	h.Has = nil // the wrapping hides them
	h.Patience = 2 * time.Second
	h.New = func(t testing.TB) conformance.Data {
		d, wrap := sound(t), breaks()
		open := d.Open
		d.Open = func() (store.Store, error) {
			s, err := open()
			return wrap(s), err
		}
		return d
	}
	return h
}

// quickRapid keeps a random test that is meant to fail from minimising its
// sequence for long, and from keeping it.
func quickRapid(t *testing.T) {
	for name, value := range map[string]string{"rapid.shrinktime": "1ms", "rapid.nofailfile": "true"} {
		f := flag.Lookup(name)
		before := f.Value.String()
		require.NoError(t, f.Value.Set(value))
		t.Cleanup(func() { require.NoError(t, f.Value.Set(before)) })
	}
}

func clausesOf(c conformance.Case) []string { return strings.Split(c.Clauses, ", ") }

// failing returns the title of the first case that fails for a broken store, of
// those that cite a clause; empty: none.
func failing(t *testing.T, h conformance.Harness, clause string) string {
	for _, c := range conformance.Cases() {
		// The model is left out: it is to find what the other cases overlook.
		if slices.Contains(clausesOf(c), clause) && c.Section != "model" && c.Missing(t, h) == "" {
			if fs := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, h) }); len(fs) > 0 {
				return fmt.Sprintf("%s: %s", c.Section, c.Title())
			}
		}
	}
	return ""
}

func TestBrokenStoresFailOnTheClauseTheyBreak(t *testing.T) {
	for _, b := range brokenStores {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for _, clause := range b.clauses {
				title := failing(t, broken(b.breaks), clause)
				require.NotEmpty(t, title, "no case that names %s fails", clause)
				t.Logf("%s is seen to be broken by %s", clause, title)
			}
		})
	}
}

// The random checks stand behind the written ones; they are to find breaks of
// their own accord.
func TestModelsFindBrokenStores(t *testing.T) {
	quickRapid(t)
	for name, breaks := range map[string][]func() func(store.Store) store.Store{
		"simple model": {ignoresTheEpoch, halvesAChange, failsTogether, forgetsWhatItDid, forgetsStrikes, takesAnyStatus, doublesMessages},
		"linearizable": {ignoresTheEpoch, claimsTwice, keepsTheOwner, losesAnEvent},
	} {
		c := find(t, name)
		for i, b := range breaks {
			found := false
			for range 3 { // chance may spare a store once
				found = found || len(record(t, c.Title(), func(tb testing.TB) { c.Check(tb, broken(b)) })) > 0
			}
			require.True(t, found, "%s: broken store %d is not found", name, i)
		}
	}
}

// A clause nobody can be seen to break may as well not be checked.
func TestEveryClauseHasABrokenStore(t *testing.T) {
	shown := make(map[string]bool)
	for _, b := range brokenStores {
		for _, c := range b.clauses {
			shown[c] = true
		}
	}
	for _, m := range slices.Concat(mutants(), scheduleMutants(), transactMutants(), queueMutants(), requestMutants(), loadMutants()) {
		shown[m.clause] = true
	}
	for _, c := range conformance.Cases() {
		for _, clause := range clausesOf(c) {
			if clause[0] == 'S' {
				require.True(t, shown[clause], "%s (%s)", clause, c.Title())
			}
		}
	}
}

func TestAWrappedSoundStorePasses(t *testing.T) {
	h := broken(isWell)
	for _, c := range conformance.Cases() {
		if c.Missing(t, h) == "" {
			require.Empty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, h) }), c.Title())
		}
	}
}

// find returns the case whose name contains name.
func find(t *testing.T, name string) conformance.Case {
	for _, c := range conformance.Cases() {
		if strings.Contains(c.Name, name) {
			return c
		}
	}
	t.Fatalf("no case %q", name)
	return conformance.Case{}
}

func TestCapabilitiesMustBeWhatIsDeclared(t *testing.T) {
	declared := find(t, "capabilities that are declared")
	for name, has := range map[string][]conformance.Capability{
		"one that is there is not declared": {conformance.Notifier, conformance.Meter},
		"one that is declared is not there": {conformance.Notifier, conformance.Meter, conformance.Clocked, conformance.Schedules, conformance.Presence},
	} {
		h := inMemory()
		h.Has = has
		require.NotEmpty(t, record(t, name, func(tb testing.TB) { declared.Check(tb, h) }), name)
	}
	h := inMemory()
	require.Empty(t, record(t, "right", func(tb testing.TB) { declared.Check(tb, h) }))
	require.Contains(t, find(t, "process is gone").Missing(t, h), "Presence is declared absent")
	require.Contains(t, find(t, "damage is found").Missing(t, h), "Data.Corrupt")
}

func TestCasesAreNamedOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range conformance.Cases() {
		key := c.Section + "/" + c.Title()
		require.False(t, seen[key], key)
		seen[key] = true
		require.NotEmpty(t, c.Clauses, key)
	}
}
