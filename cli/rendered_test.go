package cli_test

import (
	"strconv"
	"strings"
)

// rendered is what a terminal shows in the end of what was written to it: lines
// that are drawn anew stand there once, as they were drawn last.
func rendered(s string) string {
	rows, row, col := [][]rune{nil}, 0, 0
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "\x1b["):
			end := i + 2
			for end < len(s) && (s[end] < '@' || s[end] > '~') {
				end++
			}
			if end == len(s) {
				i = end
				continue
			}
			n, _ := strconv.Atoi(s[i+2 : end])
			switch s[end] {
			case 'A':
				row = max(row-max(n, 1), 0)
			case 'G':
				col = max(n, 1) - 1
			case 'J':
				rows = rows[:row+1]
				rows[row] = rows[row][:min(col, len(rows[row]))]
			case 'K':
				if n == 2 {
					rows[row] = nil
				} else {
					rows[row] = rows[row][:min(col, len(rows[row]))]
				}
			}
			i = end + 1
			continue
		case strings.HasPrefix(s[i:], "\x1b]"):
			end := strings.IndexByte(s[i:], '\a')
			if end < 0 {
				return ""
			}
			i += end + 1
			continue
		}
		r := []rune(s[i:min(i+4, len(s))])[0]
		i += len(string(r))
		switch r {
		case '\r':
			col = 0
		case '\n':
			row++
			if row == len(rows) {
				rows = append(rows, nil)
			}
		default:
			for len(rows[row]) <= col {
				rows[row] = append(rows[row], ' ')
			}
			rows[row][col] = r
			col++
		}
	}
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(strings.TrimRight(string(r), " "))
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
