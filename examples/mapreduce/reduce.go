package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// sums are the figures of many files.
type sums struct{ files, lines, funcs, gos, errChecks int }

func (s *sums) add(f Figures) {
	s.files++
	s.lines += f.Lines
	s.funcs += f.Funcs
	s.gos += f.Gos
	s.errChecks += f.ErrChecks
}

// reduce writes the report: the sums of every directory of src, what is imported
// most, and the longest functions. The same figures always give the same bytes.
func reduce(all []Figures) string {
	var total sums
	trees := map[string]*sums{}
	imports := map[string]int{}
	for _, f := range all {
		tree, _, _ := strings.Cut(f.File, "/")
		if trees[tree] == nil {
			trees[tree] = &sums{}
		}
		trees[tree].add(f)
		total.add(f)
		for _, i := range f.Imports {
			imports[i]++
		}
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "files\tlines\tfuncs\tgo\terr != nil\t  directory")
	for _, tree := range slices.Sorted(maps.Keys(trees)) {
		line(w, *trees[tree], tree)
	}
	line(w, total, fmt.Sprintf("all %d directories", len(trees)))
	_ = w.Flush() // a strings.Builder takes everything

	most := slices.SortedFunc(maps.Keys(imports), func(a, b string) int {
		return cmp.Or(imports[b]-imports[a], strings.Compare(a, b))
	})
	fmt.Fprint(&b, "\nimported most\n")
	for _, i := range most[:min(20, len(most))] {
		fmt.Fprintf(&b, "%7d  %s\n", imports[i], i)
	}
	longest := slices.SortedStableFunc(slices.Values(all), func(a, b Figures) int { return b.Longest.Lines - a.Longest.Lines })
	fmt.Fprint(&b, "\nlongest functions\n")
	for _, f := range longest[:min(20, len(longest))] {
		fmt.Fprintf(&b, "%7d  %s in %s\n", f.Longest.Lines, f.Longest.Name, f.File)
	}
	return b.String()
}

func line(w io.Writer, s sums, name string) {
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t  %s\n", s.files, s.lines, s.funcs, s.gos, s.errChecks, name)
}
