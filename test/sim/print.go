package sim

import (
	"fmt"
	"strings"
	"time"
)

// Test prints a world as a Go test of this package, with what is wrong as its comment.
func (w World) Test(why string) string {
	var b strings.Builder
	first, _, _ := strings.Cut(why, "\n")
	fmt.Fprintf(&b, "// %s\nfunc TestWorld(t *testing.T) {\n\tsim.Run(t, sim.World{\n", first)
	small := w.fields()
	if len(small) > 0 {
		fmt.Fprintf(&b, "\t\t%s,\n", strings.Join(small, ", "))
	}
	if w.Begin != (Beginning{}) {
		fmt.Fprintf(&b, "\t\tBegin: sim.Beginning{Bulk: %t, Key: %t, Mail: %t},\n", w.Begin.Bulk, w.Begin.Key, w.Begin.Mail)
	}
	if w.Release != "" {
		fmt.Fprintf(&b, "\t\tRelease: %q,\n", w.Release)
	}
	if len(w.Clocks) > 0 {
		fmt.Fprintf(&b, "\t\tClocks: %s,\n", literalClocks(w.Clocks))
	}
	if w.Queue != nil {
		fmt.Fprintf(&b, "\t\tQueue: %s,\n", w.Queue.literal())
	}
	if w.Schedule != nil {
		fmt.Fprintf(&b, "\t\tSchedule: %s,\n", w.Schedule.literal())
	}
	if w.Debounce != nil {
		fmt.Fprintf(&b, "\t\tDebounce: %s,\n", w.Debounce.literal())
	}
	if len(w.Program) > 0 {
		fmt.Fprintf(&b, "\t\tProgram: %s,\n", w.Program.literal("\t\t"))
	}
	if len(w.Faults) > 0 {
		b.WriteString("\t\tFaults: []sim.Fault{\n")
		for _, f := range w.Faults {
			fmt.Fprintf(&b, "\t\t\t{On: %q, Nth: %d, Do: %q%s},\n", f.On, f.Nth, f.Do, field("For", f.For))
		}
		b.WriteString("\t\t},\n")
	}
	if len(w.Acts) > 0 {
		b.WriteString("\t\tActs: []sim.Act{\n")
		for _, a := range w.Acts {
			var parts []string
			if a.On != "" {
				parts = append(parts, fmt.Sprintf("On: %q, Nth: %d", a.On, a.Nth))
			}
			parts = append(parts, fmt.Sprintf("Do: %q%s", a.Do, field("After", a.After)))
			if a.Run > 0 {
				parts = append(parts, fmt.Sprint("Run: ", a.Run))
			}
			if a.By != 0 {
				parts = append(parts, "By: "+duration(a.By))
			}
			if a.Back > 0 {
				parts = append(parts, fmt.Sprint("Back: ", a.Back))
			}
			fmt.Fprintf(&b, "\t\t\t{%s},\n", strings.Join(parts, ", "))
		}
		b.WriteString("\t\t},\n")
	}
	b.WriteString("\t})\n}\n")
	return b.String()
}

// fields prints the fields that are plain values, if they are set.
func (w *World) fields() (small []string) {
	if w.Engines > 0 {
		small = append(small, fmt.Sprint("Engines: ", w.Engines))
	}
	if w.Runs > 0 {
		small = append(small, fmt.Sprint("Runs: ", w.Runs))
	}
	if w.Unload != 0 {
		small = append(small, "Unload: "+duration(w.Unload))
	}
	if w.Deadline != 0 {
		small = append(small, "Deadline: "+duration(w.Deadline))
	}
	if w.Grace != 0 {
		small = append(small, "Grace: "+duration(w.Grace))
	}
	if w.Drift != 0 {
		small = append(small, fmt.Sprint("Drift: ", w.Drift))
	}
	if w.Pace != 0 {
		small = append(small, fmt.Sprint("Pace: ", w.Pace))
	}
	if w.Yield != 0 {
		small = append(small, fmt.Sprint("Yield: ", w.Yield))
	}
	if w.OneWriter {
		small = append(small, "OneWriter: true")
	}
	if w.Names != 0 {
		small = append(small, fmt.Sprint("Names: ", w.Names))
	}
	return small
}

// literal prints a program; nodes without nodes in them share a line.
func (p Program) literal(indent string) string {
	var b strings.Builder
	b.WriteString("sim.Program{")
	for i, n := range p {
		if i%6 == 0 || len(n.Body) > 0 {
			b.WriteString("\n" + indent + "\t")
		} else {
			b.WriteString(" ")
		}
		fmt.Fprintf(&b, "{%s},", n.literal(indent+"\t"))
	}
	b.WriteString("\n" + indent + "}")
	return b.String()
}

func (n *Node) literal(indent string) string {
	s := fmt.Sprintf("Do: %q", n.Do)
	if n.Fails > 0 {
		s += fmt.Sprint(", Fails: ", n.Fails)
	}
	if n.How != "" {
		s += fmt.Sprintf(", How: %q", n.How)
	}
	if n.Max > 0 {
		s += fmt.Sprint(", Max: ", n.Max)
	}
	s += field("For", n.For)
	if n.ID != "" {
		s += fmt.Sprintf(", ID: %q", n.ID)
	}
	if n.Handled {
		s += ", Handled: true"
	}
	if len(n.Body) > 0 {
		s += ", Body: " + n.Body.literal(indent)
	}
	if len(n.Then) > 0 {
		s += ", Then: " + n.Then.literal(indent)
	}
	return s
}

func field(name string, d time.Duration) string {
	if d == 0 {
		return ""
	}
	return ", " + name + ": " + duration(d)
}

// duration prints d as Go code.
func duration(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Minute, "time.Minute"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"}} {
		if d%u.of == 0 && d > 0 {
			return fmt.Sprintf("%d * %s", d/u.of, u.name)
		}
	}
	return fmt.Sprint(int64(d))
}
