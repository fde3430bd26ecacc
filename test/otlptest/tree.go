package otlptest

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Node is a span with those below it.
type Node struct {
	Span
	// Lost: it names a parent that was not received. The parent is of another
	// program (the caller of a run), or it was lost.
	Lost     bool
	Children []*Node // by their begin
}

// Trees arranges spans by their parents and returns those without one, by their
// begin. A span that came twice is there twice.
func Trees(spans []Span) []*Node {
	nodes := make([]*Node, len(spans))
	byID := map[string]*Node{}
	for i, s := range spans {
		nodes[i] = &Node{Span: s}
		if byID[s.TraceID+s.ID] == nil {
			byID[s.TraceID+s.ID] = nodes[i]
		}
	}
	var roots []*Node
	for _, n := range nodes {
		switch parent := byID[n.TraceID+n.Parent]; {
		case n.Parent == "":
			roots = append(roots, n)
		case parent == nil:
			n.Lost = true
			roots = append(roots, n)
		default:
			parent.Children = append(parent.Children, n)
		}
	}
	order := func(list []*Node) {
		slices.SortStableFunc(list, func(a, b *Node) int {
			return cmp.Or(a.Begin.Compare(b.Begin), b.End.Compare(a.End), cmp.Compare(a.Name, b.Name))
		})
	}
	order(roots)
	for _, n := range nodes {
		order(n.Children)
	}
	return roots
}

// All yields n and everything below it, parents first.
func (n *Node) All(yield func(*Node) bool) { n.all(yield) }

func (n *Node) all(yield func(*Node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, c := range n.Children {
		if !c.all(yield) {
			return false
		}
	}
	return true
}

// Print writes the tree as text, a line for each span:
//
//	start order  0s
//	├─ segment order  2ms  durable.recovered=false
//	│  └─ step charge  31ms
//	│     └─ attempt charge  31ms  durable.step.attempt=1  failed: error
//
// With keys only these attributes are shown, in this order; without, none.
func (n *Node) Print(w io.Writer, keys ...string) error {
	var b strings.Builder
	names := map[string]string{}
	n.all(func(n *Node) bool { names[n.TraceID+n.ID] = n.Name; return true })
	n.print(&b, "", "", names, keys)
	_, err := io.WriteString(w, b.String())
	return err
}

func (n *Node) print(b *strings.Builder, first, rest string, names map[string]string, keys []string) {
	b.WriteString(first + n.line(names, keys) + "\n")
	for i, c := range n.Children {
		if i < len(n.Children)-1 {
			c.print(b, rest+"├─ ", rest+"│  ", names, keys)
		} else {
			c.print(b, rest+"└─ ", rest+"   ", names, keys)
		}
	}
}

// line is what Print says of one span.
func (n *Node) line(names map[string]string, keys []string) string {
	parts := []string{n.Name, short(n.Took())}
	for _, k := range keys {
		if v, ok := n.Attributes[k]; ok {
			parts = append(parts, fmt.Sprintf("%s=%v", k, v))
		}
	}
	if n.Failed {
		parts = append(parts, strings.TrimSpace("failed: "+n.Status))
	}
	for _, l := range n.Links {
		to := names[l.TraceID+l.ID]
		if to == "" {
			to = "another trace"
			if l.TraceID == n.TraceID {
				to = "a span that is not here"
			}
		}
		parts = append(parts, fmt.Sprintf("-> %s (%.8s)", to, l.ID))
	}
	if n.Lost {
		parts = append(parts, "below a span that is not here")
	}
	return strings.Join(parts, "  ")
}

// short rounds d to what a reader of a tree wants to know.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(100 * time.Microsecond)
	default:
		d = d.Round(time.Microsecond)
	}
	return d.String()
}
