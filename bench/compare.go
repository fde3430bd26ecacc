package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// key says which results of two measurements are of the same thing.
type key struct {
	name, store, mode, axis string
	x                       float64
}

func (r *result) key() key { return key{r.Name, r.Store, r.Mode, r.Axis, r.X} }

// span is a figure with its interval.
type span struct{ low, mid, high float64 }

func (s span) String() string {
	return fmt.Sprintf("%s (%s to %s)", figure(s.mid), figure(s.low), figure(s.high))
}

// spans returns what to compare of two results, in the same kind of figure: the ratios
// to the floor if both have one, else medians.
func spans(before, after *result) (was, is span, ratio bool) {
	if before.Ratio != nil && after.Ratio != nil {
		return before.ratioSpan(), after.ratioSpan(), true
	}
	return before.medianSpan(), after.medianSpan(), false
}

func (r *result) ratioSpan() span { return span{*r.Low, *r.Ratio, *r.High} }

// medianSpan is the interval of the median. Of few rounds it is all that was seen.
func (r *result) medianSpan() span {
	if r.MedianLow == nil || r.MedianHigh == nil {
		return span{r.Min, r.Median, r.Max}
	}
	return span{*r.MedianLow, r.Median, *r.MedianHigh}
}

// A move is a case whose intervals do not meet.
type move struct {
	of      *result
	was, is span
	ratio   bool
	better  bool
}

// moves returns the cases that have moved, and how many were compared.
func moves(before, after []result) (moved []move, compared int) {
	old := map[key]*result{}
	for i := range before {
		old[before[i].key()] = &before[i]
	}
	for i := range after {
		b, a := old[after[i].key()], &after[i]
		if b == nil || b.Unit != a.Unit {
			continue
		}
		compared++
		was, is, ratio := spans(b, a)
		up, down := is.low > was.high, is.high < was.low
		if up || down {
			moved = append(moved, move{of: a, was: was, is: is, ratio: ratio, better: up == (ratio || a.isRate())})
		}
	}
	slices.SortStableFunc(moved, func(a, b move) int { return cmp.Compare(kind(a), kind(b)) })
	return moved, compared
}

// kind orders moves: ratios before absolute figures, and what has become worse first.
func kind(m move) (k int) {
	if !m.ratio {
		k += 2
	}
	if m.better {
		k++
	}
	return k
}

// compare prints which cases have moved. Ratios are to a floor that was measured in the same
// minute; absolute figures of different machines, or hours, move all together.
func compare(w io.Writer, before, after []result) error {
	moved, compared := moves(before, after)
	if compared == 0 {
		return fmt.Errorf("the two measurements have no case in common")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range moved {
		what, word := m.of.Unit, "worse"
		if m.ratio {
			what = "of the floor"
		}
		if m.better {
			word = "better"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%v\tto %v\t%s\n", word, m.of.title(), m.of.Store, m.of.Mode, m.was, m.is, what)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %d cases have moved beyond their intervals.\n", len(moved), compared)
	return err
}
