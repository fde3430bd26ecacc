package termview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/operate"
)

// Resumption describes what a resume does, or would do: where it goes on, and
// which steps are skipped, run again, and remain to run. The Standing is that of
// the run before the resume; it has the number of attempts and the declared names.
//
//	Resuming from step 2 of 4: charge, attempt 3 of 5
//	  skipped      reserve
//	  re-executed  charge
//	  to run       approve, ship
//
// A step counts as re-executed if it is recorded as begun and has to run again,
// because its attempts go on or because its outcome was taken back. One whose result is
// edited does not run.
func Resumption(p operate.Plan, s operate.Standing, o Options) []string {
	head := p.String()
	if p.Step == 0 && p.Next.Key == "" {
		head += " " + p.Next.String()
	}
	begun := p.Next.Kind == "step" && !p.Next.Failed && !slices.Contains(p.Edited, p.Next.Key)
	if key := p.Next.Key; key != "" {
		head += ": " + Clean(key)
		if begun {
			most := 0
			for _, c := range append([]operate.Call{s.Current}, s.Open...) {
				if c.Key == key {
					most = c.Max
				}
			}
			head += ", " + attempt(p.Next.Attempt, most)
		}
	}
	again := slices.Clone(p.Again)
	if begun && !slices.Contains(again, p.Next.Key) {
		again = append([]string{p.Next.Key}, again...)
	}
	var left []string
	if p.Declared && p.Step > 0 && p.Ends == "" {
		for _, key := range s.Names[min(p.Step-1, len(s.Names)):] {
			if !slices.Contains(p.Skipped, key) && !slices.Contains(again, key) && !slices.Contains(p.Edited, key) {
				left = append(left, key)
			}
		}
	}
	lines := []string{head}
	for _, l := range []struct {
		what string
		keys []string
	}{{"skipped", p.Skipped}, {"edited", p.Edited}, {"re-executed", again}, {"to run", left}} {
		if len(l.keys) > 0 {
			lines = append(lines, fmt.Sprintf("  %-11s  %s", l.what, o.list(l.keys, 15)))
		}
	}
	for _, w := range p.Warnings {
		lines = append(lines, "! "+Clean(w))
	}
	return lines
}

// list writes keys on one line, naming as many as fit after the used cells.
func (o Options) list(keys []string, used int) string {
	var b strings.Builder
	for i, k := range keys {
		k = Clean(k)
		if i > 0 {
			k = ", " + k
		}
		more := fmt.Sprintf(", … and %d more", len(keys)-i)
		if o.Width > 0 && i > 0 && used+Width(b.String())+Width(k)+Width(more) >= o.Width {
			b.WriteString(more)
			break
		}
		b.WriteString(k)
	}
	return b.String()
}
