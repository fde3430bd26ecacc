package traceproof_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/otlptest"
)

// page is one of docs/traces.md and docs/telemetry.md, which say what is exported.
func page(t *testing.T, name string) string {
	b, err := os.ReadFile("../../docs/" + name)
	require.NoError(t, err)
	return string(b)
}

// shapeOf writes a tree down by names, as the page shows it.
func shapeOf(n *otlptest.Node) []string {
	line := n.Name
	if a := n.Attributes["durable.step.attempt"]; a != nil && strings.HasPrefix(n.Name, "attempt ") {
		line += fmt.Sprintf("  %v", a)
	}
	if n.Failed {
		line += "  failed"
	}
	lines := []string{line}
	for _, c := range n.Children {
		for _, l := range shapeOf(c) {
			lines = append(lines, "   "+l)
		}
	}
	return lines
}

// paths names every line of an indented tree by those above it, so that the
// order of what goes on at the same time does not matter.
func paths(lines []string) []string {
	var above, all []string
	for _, l := range lines {
		name := strings.TrimLeft(l, " ")
		depth := (len(l) - len(name)) / 3
		above = append(above[:depth:depth], name)
		all = append(all, strings.Join(above, " / "))
	}
	return all
}

// documented is the tree of the page, without the marks that draw it and without
// the remarks behind "#".
func documented(t *testing.T) []string {
	_, rest, found := strings.Cut(page(t, "traces.md"), "```text\nstart order")
	require.True(t, found, "the page has no tree")
	text, _, _ := strings.Cut(rest, "```")
	plain := strings.NewReplacer("│", " ", "├", " ", "└", " ", "─", " ")
	var lines []string
	for line := range strings.Lines("start order" + text) {
		line, _, _ = strings.Cut(line, "#")
		lines = append(lines, strings.TrimRight(plain.Replace(line), " \n"))
	}
	return lines
}

var attributeRow = regexp.MustCompile("(?m)^\\| ((?:`[a-z._]+`(?:, )?)+) \\|")

// requireAttributes compares the attributes that were exported with the table of
// the page, both ways.
func requireAttributes(t *testing.T, spans []otlptest.Span) {
	listed := map[string]bool{}
	for _, row := range attributeRow.FindAllStringSubmatch(page(t, "traces.md"), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			listed[strings.Trim(name, "`")] = true
		}
	}
	seen := map[string]bool{}
	add := func(a otlptest.Attributes) {
		for k := range a {
			seen[k] = true
		}
	}
	for i := range spans {
		s := &spans[i]
		if s.Scope != "github.com/holdfast-dev/holdfast/durable" {
			continue
		}
		add(s.Attributes)
		for _, e := range s.Events {
			add(e.Attributes)
		}
		for _, l := range s.Links {
			add(l.Attributes)
		}
		require.NotEmpty(t, s.Attributes["durable.run.id"], "%s names its run", s.Name)
	}
	for k := range seen {
		require.True(t, listed[k], "%s is exported and not in the table of docs/traces.md", k)
	}
	for k := range listed {
		switch k {
		case "exception.message", "durable.forked.run.id", "durable.code": // see package durable: OmitTexts, a fork, recovery
		default:
			require.True(t, seen[k], "%s is in the table of docs/traces.md and was not exported", k)
		}
	}
}

// requireMetrics compares what the last life has sent with what it has done.
func requireMetrics(t *testing.T, points []otlptest.Point) {
	text := page(t, "telemetry.md")
	got := map[string]float64{}
	for _, p := range points {
		require.Contains(t, text, fmt.Sprintf("| `%s` | `%s` |", p.Metric, p.Unit), "docs/telemetry.md lists it")
		require.NotContains(t, p.Attributes.String(), "order-42", "no metric has the id of a run")
		require.Equal(t, "shop", p.Resource["service.name"])
		value := p.Value
		if p.Kind == "histogram" {
			value = float64(p.Count)
			if p.Unit == "s" {
				require.Equal(t, 0.0005, p.Bounds[0], "%s: the bounds fit seconds", p.Metric)
			}
		}
		got[strings.TrimSpace(p.Metric+" "+p.Attributes.String())] = value
	}
	for name, want := range map[string]float64{
		"durable.run.started durable.workflow.name=undone":                               1,
		"durable.run.recovered durable.workflow.name=order":                              1,
		"durable.run.finished durable.run.status=completed durable.workflow.name=order":  1,
		"durable.run.finished durable.run.status=completed durable.workflow.name=parcel": 1,
		"durable.run.finished durable.run.status=failed durable.workflow.name=undone":    1,
		"durable.run.duration durable.run.status=completed durable.workflow.name=order":  1,
		"durable.replay.steps durable.workflow.name=order":                               3,
		"durable.step.retries durable.workflow.name=order":                               1,
		"durable.step.retries durable.workflow.name=undone":                              1,
		"durable.step.duration durable.outcome=ok durable.workflow.name=order":           3,
		"durable.step.duration durable.outcome=failed durable.workflow.name=undone":      1,
		"durable.attempt.duration durable.outcome=failed durable.workflow.name=order":    1,
		"durable.attempt.duration durable.outcome=ok durable.workflow.name=order":        3,
		"durable.attempt.duration durable.outcome=failed durable.workflow.name=undone":   2,
		"durable.attempt.duration durable.outcome=ok durable.workflow.name=undone":       1,
	} {
		require.Contains(t, got, name)
		require.InDelta(t, want, got[name], 0, name)
	}
	require.Greater(t, got["durable.commit.duration durable.result=ok"], 5.0)
}
