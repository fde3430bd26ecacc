package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// render writes the report: one line per package, in order, and the sums. The
// same figures always give the same bytes.
func render(all []Figures) string {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Figures) int { return cmp.Compare(a.Package, b.Package) })
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "files\ttests\tlines\tcomments\tfuncs\texported\timports\tlongest\t  package")
	var sum Figures
	for _, f := range sorted {
		line(w, f, f.Package)
		sum.Files += f.Files
		sum.Tests += f.Tests
		sum.Lines += f.Lines
		sum.CommentLines += f.CommentLines
		sum.Funcs += f.Funcs
		sum.Exported += f.Exported
		sum.Imports += f.Imports
		if f.LongestLines > sum.LongestLines {
			sum.LongestFunc, sum.LongestLines = f.LongestFunc, f.LongestLines
		}
	}
	line(w, sum, fmt.Sprintf("all %d packages; the longest function is %s", len(sorted), sum.LongestFunc))
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

func line(w *tabwriter.Writer, f Figures, name string) {
	share := 0
	if f.Lines > 0 {
		share = 1000 * f.CommentLines / f.Lines
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t%d.%d%%\t%d\t%d\t%d\t%d\t  %s\n",
		f.Files, f.Tests, f.Lines, share/10, share%10, f.Funcs, f.Exported, f.Imports, f.LongestLines, name)
}
