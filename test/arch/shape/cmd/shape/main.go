// Command shape prints how the code is laid out: go run ./test/arch/shape/cmd/shape.
package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-dev/holdfast/test/arch/shape"
)

func main() {
	patterns := os.Args[1:]
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	all, err := shape.Measure(".", patterns...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(columns ...any) {
		for _, c := range columns {
			fmt.Fprint(w, c, "\t")
		}
		fmt.Fprintln(w)
	}
	row("PACKAGE", "FILES", "LINES", "LONGEST FILE", "EXPORTED T/F/M/V", "COMMENT", "ARROWS", "UPWARD", "LONGEST FUNCTION")
	for _, p := range all {
		longest := ""
		if len(p.Funcs) > 0 {
			longest = fmt.Sprintf("%s %d", p.Funcs[0].Name, p.Funcs[0].Lines)
		}
		x := p.Exported
		row(short(p.Path), p.Files, p.Lines, fmt.Sprintf("%s %d", p.Longest.Name, p.Longest.Lines),
			fmt.Sprintf("%d/%d/%d/%d", x.Types, x.Funcs, x.Methods, x.Values), p.Comment, p.Arrows.All, p.Arrows.Upward, longest)
	}
	_ = w.Flush()
	fmt.Println("\nTypes whose methods stand in more than three files:")
	row("TYPE", "FIELDS", "METHODS", "FILES")
	for _, p := range all {
		for _, t := range p.Types {
			if t.Files > 3 {
				row(short(p.Path)+"."+t.Name, t.Fields, t.Methods, t.Files)
			}
		}
	}
	_ = w.Flush()
}

// short is a path below the module.
func short(path string) string {
	if _, below, ok := strings.Cut(path, "/holdfast/"); ok {
		return below
	}
	return path
}
