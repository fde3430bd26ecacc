package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Case is one check of the suite.
type Case struct {
	Section string // "claim"
	Name    string // what a store that passes does
	Clauses string // "S3, S5"

	// What it needs beyond a Store; empty if nothing.
	Needs Capability
	hook  hook

	run func(t *T)
}

// section is a file of cases. The letter refers to the list of what the tests of a
// durable store must cover.
type section struct {
	letter, name string
	cases        []Case
}

// In the order in which to read them: a store under construction passes the first
// sections first.
func sections() []section {
	return []section{
		{"A", "run", runCases},
		{"A", "status", statusCases},
		{"C", "event", eventCases},
		{"C", "fence", fenceCases},
		{"C", "batch", batchCases},
		{"C", "atomic", atomicCases},
		{"C", "load", slices.Concat(loadCases, loaderCases)},
		{"C", "resend", resendCases},
		{"D", "attempt", attemptCases},
		{"B", "claim", claimCases},
		{"B", "executor", executorCases},
		{"E", "inbox", inboxCases},
		{"F", "start", startCases},
		{"G", "key", keyCases},
		{"G", "queue", queueCases},
		{"H", "list", listCases},
		{"H", "page", pageCases},
		{"H", "count", countCases},
		{"I", "branch", branchCases},
		{"J", "delete", deleteCases},
		{"J", "retention", retentionCases},
		{"G", "schedule", scheduleCases},
		{"G", "transact", transactCases},
		{"G", "request", requestCases},
		{"K", "store", storeCases},
		{"K", "process", processCases},
		{"K", "capability", capabilityCases},
		{"K", "care", careCases},
		{"K", "model", modelCases},
	}
}

// Cases returns all cases, in the order they run.
func Cases() []Case {
	var all []Case
	for _, s := range sections() {
		for _, c := range s.cases {
			c.Section = s.name
			all = append(all, c)
		}
	}
	return all
}

// Title is the name of the case's subtest.
func (c Case) Title() string { return fmt.Sprintf("%s (%s)", c.Name, c.Clauses) }

// Missing says what the case needs and h lacks; empty if nothing.
func (c Case) Missing(t testing.TB, h Harness) string {
	if c.Needs != "" && !h.has(c.Needs) {
		return fmt.Sprintf("capability %s is declared absent", c.Needs)
	}
	if c.Needs == Presence && h.has(SingleProcess) {
		return "of a single process nobody else can tell"
	}
	if c.hook != "" && !h.New(t).hooks()[c.hook] {
		if c.hook == hookPlace {
			return "not tried: no process of this store was killed, since the harness has no Data.Place (see conformance.Main)"
		}
		return fmt.Sprintf("the harness has no %s", c.hook)
	}
	return ""
}

// Check runs one case and then the invariant checker over all that it left behind. It
// reports failures to t, which may be any testing.TB.
func (c Case) Check(t testing.TB, h Harness) {
	t.Helper()
	c.check(t, h)
}

// check returns the clauses that were found to be broken.
func (c Case) check(t testing.TB, h Harness) []string {
	t.Helper()
	ct := &T{TB: t, h: h, of: c, broken: make(map[string]bool)}
	ct.check()
	ct.mu.Lock()
	defer ct.mu.Unlock()
	return slices.Sorted(maps.Keys(ct.broken))
}

// Report counts what Run has checked.
type Report struct {
	Sections []SectionReport
	Present  []Capability
	Absent   []Capability
	// NotChecked lists the cases that could not run, with the reason.
	NotChecked []string
	// Broken counts, by clause, the cases that found it broken.
	Broken map[string]int
}

// SectionReport is the part of a Report about one section. Each case is counted
// once.
type SectionReport struct {
	Name string
	// NotRun counts the cases that -run, -skip or -failfast left out.
	Passed, Failed, NotChecked, NotRun int
}

// Ran returns how many cases passed or failed.
func (s SectionReport) Ran() int { return s.Passed + s.Failed }

// Run runs the whole suite and logs its report.
func Run(t *testing.T, h Harness) Report {
	t.Helper()
	if h.New == nil {
		t.Fatal("conformance: a Harness needs New")
	}
	r := Report{Broken: make(map[string]int)}
	for _, c := range append(Capabilities(), SingleProcess) {
		switch {
		case h.has(c):
			r.Present = append(r.Present, c)
		case c != SingleProcess:
			r.Absent = append(r.Absent, c)
		}
	}
	if why := h.opens(t); why != "" {
		t.Fatalf("conformance: no case was run: %s", why)
	}
	for _, s := range sections() {
		sr := SectionReport{Name: s.letter + " " + s.name}
		var mu sync.Mutex
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.cases {
				c.Section = s.name
				r.run(t, h, c, &sr, &mu)
			}
		})
		sr.NotRun = len(s.cases) - sr.Ran() - sr.NotChecked
		r.Sections = append(r.Sections, sr)
	}
	t.Log("\n" + r.String())
	return r
}

// run runs one case as a subtest and counts it when it has ended. A case that runs
// side by side with others outlives this call; mu guards what they count.
func (r *Report) run(t *testing.T, h Harness, c Case, sr *SectionReport, mu *sync.Mutex) {
	t.Run(c.Title(), func(t *testing.T) {
		missing := ""
		var broken []string
		t.Cleanup(func() { // the first one registered runs last
			mu.Lock()
			defer mu.Unlock()
			for _, clause := range broken {
				r.Broken[clause]++
			}
			switch {
			case missing != "":
				sr.NotChecked++
				r.NotChecked = append(r.NotChecked, fmt.Sprintf("%s: %s: %s", c.Section, c.Title(), missing))
			case t.Failed():
				sr.Failed++
			default:
				sr.Passed++
			}
		})
		if h.Parallel {
			t.Parallel()
		}
		if missing = c.Missing(t, h); missing != "" {
			t.Logf("not checked: %s", missing)
			return
		}
		broken = c.check(t, h)
	})
}

// String formats the report as a table.
func (r Report) String() string {
	var b strings.Builder
	sum := SectionReport{Name: "all"}
	line := func(s SectionReport) {
		fmt.Fprintf(&b, "%-14s %6d %6d %11d %7d\n", s.Name, s.Passed, s.Failed, s.NotChecked, s.NotRun)
	}
	fmt.Fprintf(&b, "%-14s %6s %6s %11s %7s\n", "section", "passed", "failed", "not checked", "not run")
	for _, s := range r.Sections {
		line(s)
		sum.Passed += s.Passed
		sum.Failed += s.Failed
		sum.NotChecked += s.NotChecked
		sum.NotRun += s.NotRun
	}
	line(sum)
	fmt.Fprintf(&b, "%d of %d cases ran\n", sum.Ran(), sum.Ran()+sum.NotChecked+sum.NotRun)
	if sum.NotRun > 0 {
		fmt.Fprintf(&b, "%d cases were left out by the flags of this test run and show nothing\n", sum.NotRun)
	}
	for _, clause := range slices.SortedFunc(maps.Keys(r.Broken), byNumber) {
		fmt.Fprintf(&b, "broken: %s, as %d cases saw\n", clause, r.Broken[clause])
	}
	fmt.Fprintf(&b, "capabilities: %s; declared absent: %s\n", names(r.Present), names(r.Absent))
	for _, c := range r.Absent {
		fmt.Fprintf(&b, "without %s: %s\n", c, costs[c])
	}
	for _, line := range slices.Sorted(slices.Values(r.NotChecked)) {
		fmt.Fprintf(&b, "not checked: %s\n", line)
	}
	return b.String()
}

// byNumber orders S4 before S16.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

func names(cs []Capability) string {
	if len(cs) == 0 {
		return "none"
	}
	s := make([]string, len(cs))
	for i, c := range cs {
		s[i] = string(c)
	}
	return strings.Join(s, ", ")
}
