package show

import (
	"strings"
	"unicode/utf8"
)

// A Table is rows of cells. Cells are shown escaped; an empty one as "-", so that
// columns can be distinguished in a pipe and on a terminal.
type Table struct {
	Head []string
	Rows [][]string
	Mark []string // one per row, before it on a terminal and after it in a pipe; nil: no marks
	Tint []string // colour of a row; nil: none
	// wide is the column that is cut when a terminal is too narrow; -1: none.
	Wide int
}

// Table prints a table: aligned for a terminal, with tabs and no header for a pipe.
func (s *Stream) Table(t Table) {
	if !s.TTY {
		for i, row := range t.Rows {
			cells := make([]string, 0, len(row)+1)
			for _, cell := range row {
				cells = append(cells, OrDash(strings.ReplaceAll(Escape(cell), "\t", `\t`)))
			}
			if t.Mark != nil {
				cells = append(cells, OrDash(t.Mark[i]))
			}
			s.Printf("%s\n", strings.Join(cells, "\t"))
		}
		return
	}
	width := make([]int, len(t.Head))
	for i, h := range t.Head {
		width[i] = utf8.RuneCountInString(h)
	}
	shown := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		shown[i] = make([]string, len(row))
		for j, cell := range row {
			shown[i][j] = OrDash(Escape(cell))
			width[j] = max(width[j], utf8.RuneCountInString(shown[i][j]))
		}
	}
	s.narrow(t, width)
	lead := func(i int) string {
		switch {
		case t.Mark == nil:
			return ""
		case i >= 0 && t.Mark[i] != "":
			return "▸ "
		}
		return "  "
	}
	s.Printf("%s\n", s.Paint(Bold, lead(-1)+padded(t.Head, width)))
	for i, row := range shown {
		line := lead(i) + padded(row, width)
		if t.Tint != nil {
			line = s.Paint(t.Tint[i], line)
		}
		s.Printf("%s\n", line)
	}
}

// narrow shortens the wide column by what the terminal lacks.
func (s *Stream) narrow(t Table, width []int) {
	total := 0
	for _, n := range width {
		total += n + 2
	}
	if t.Mark != nil {
		total += 2
	}
	if over := total - 2 - s.Width; t.Wide >= 0 && t.Wide < len(width) && over > 0 {
		width[t.Wide] = max(12, width[t.Wide]-over)
	}
}

func padded(cells []string, width []int) string {
	var b strings.Builder
	for i, cell := range cells {
		n := utf8.RuneCountInString(cell)
		if n > width[i] {
			cell = string([]rune(cell)[:width[i]-1]) + "…"
			n = width[i]
		}
		b.WriteString(cell)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", width[i]-n+2))
		}
	}
	return b.String()
}
