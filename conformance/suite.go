package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Case is one check of the suite.
type Case struct {
	Section string // "claim"
	Name    string // what a store that passes can be said to do
	Clauses string // "S3, S5"

	// What it needs beyond a Store; empty: nothing.
	Needs Capability
	hook  hook

	run func(t *T)
}

// section is a file of cases. The letter is that of the list of what the tests
// of a durable store must cover.
type section struct {
	letter, name string
	cases        []Case
}

// The order is that of reading: a store under construction passes the first
// sections first.
func sections() []section {
	return []section{
		{"A", "run", runCases},
		{"A", "status", statusCases},
		{"C", "event", eventCases},
		{"C", "fence", fenceCases},
		{"C", "batch", batchCases},
		{"C", "atomic", atomicCases},
		{"C", "resend", resendCases},
		{"D", "attempt", attemptCases},
		{"B", "claim", claimCases},
		{"B", "executor", executorCases},
		{"E", "inbox", inboxCases},
		{"F", "start", startCases},
		{"G", "key", keyCases},
		{"H", "list", listCases},
		{"H", "page", pageCases},
		{"H", "count", countCases},
		{"I", "branch", branchCases},
		{"J", "delete", deleteCases},
		{"J", "retention", retentionCases},
		{"K", "store", storeCases},
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

// Missing says what the case needs and h does not offer; empty: nothing.
func (c Case) Missing(t testing.TB, h Harness) string {
	if c.Needs != "" && !h.has(c.Needs) {
		return fmt.Sprintf("capability %s is declared absent", c.Needs)
	}
	if c.hook != "" && !h.New(t).hooks()[c.hook] {
		return fmt.Sprintf("the harness has no %s", c.hook)
	}
	return ""
}

// Check runs one case and then the invariant checker over all it left behind.
// Failures are told to t, which may be any testing.TB.
func (c Case) Check(t testing.TB, h Harness) {
	t.Helper()
	ct := &T{TB: t, h: h}
	c.run(ct)
	for _, d := range ct.data {
		ct.checkInvariants(d)
	}
}

// Report counts what Run has checked.
type Report struct {
	Sections []SectionReport
	Present  []Capability
	Absent   []Capability
	// NotChecked lists the cases that could not run, with the reason.
	NotChecked []string
}

// SectionReport is the part of a Report about one section.
type SectionReport struct {
	Name                       string
	Passed, Failed, NotChecked int
}

// Run runs the whole suite and logs its report.
func Run(t *testing.T, h Harness) Report {
	t.Helper()
	require.NotNil(t, h.New, "a harness needs New")
	var r Report
	for _, c := range Capabilities() {
		if h.has(c) {
			r.Present = append(r.Present, c)
		} else {
			r.Absent = append(r.Absent, c)
		}
	}
	for _, s := range sections() {
		sr := SectionReport{Name: s.letter + " " + s.name}
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.cases {
				missing := ""
				ok := t.Run(c.Title(), func(t *testing.T) {
					if missing = c.Missing(t, h); missing != "" {
						t.Logf("not checked: %s", missing)
						return
					}
					c.Check(t, h)
				})
				switch {
				case missing != "":
					sr.NotChecked++
					r.NotChecked = append(r.NotChecked, fmt.Sprintf("%s: %s: %s", s.name, c.Title(), missing))
				case ok:
					sr.Passed++
				default:
					sr.Failed++
				}
			}
		})
		r.Sections = append(r.Sections, sr)
	}
	t.Log("\n" + r.String())
	return r
}

// String formats the report as a table.
func (r Report) String() string {
	var b strings.Builder
	var sum SectionReport
	fmt.Fprintf(&b, "%-14s %6s %6s %11s\n", "section", "passed", "failed", "not checked")
	for _, s := range r.Sections {
		fmt.Fprintf(&b, "%-14s %6d %6d %11d\n", s.Name, s.Passed, s.Failed, s.NotChecked)
		sum.Passed += s.Passed
		sum.Failed += s.Failed
		sum.NotChecked += s.NotChecked
	}
	fmt.Fprintf(&b, "%-14s %6d %6d %11d\n", "all", sum.Passed, sum.Failed, sum.NotChecked)
	fmt.Fprintf(&b, "capabilities: %s; declared absent: %s\n", names(r.Present), names(r.Absent))
	for _, line := range slices.Sorted(slices.Values(r.NotChecked)) {
		fmt.Fprintf(&b, "not checked: %s\n", line)
	}
	return b.String()
}

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
