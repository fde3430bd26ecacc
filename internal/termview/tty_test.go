package termview_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/termview"
)

// tty is as much of a terminal as a view may use: anything else that moves the
// cursor fails the test, and so does a line that would wrap.
type tty struct {
	t     *testing.T
	width int

	mu   sync.Mutex
	all  bytes.Buffer
	rows []string
	row  int
	col0 bool // the cursor is at the beginning of its row
}

func newTTY(t *testing.T, width int) *tty { return &tty{t: t, width: width, rows: []string{""}} }

func (y *tty) Write(p []byte) (int, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.all.Write(p)
	for s := string(p); s != ""; {
		switch {
		case s[0] == '\n':
			s, y.row, y.col0 = s[1:], y.row+1, true
			if y.row == len(y.rows) {
				y.rows = append(y.rows, "")
			}
		case s[0] == '\r':
			s, y.col0 = s[1:], true
		case strings.HasPrefix(s, "\x1b["):
			end := strings.IndexAny(s, "AJmHK")
			require.Positive(y.t, end, "%q", s)
			y.control(s[2:end], s[end])
			s = s[end+1:]
		default:
			n := strings.IndexAny(s, "\n\r\x1b")
			if n < 0 {
				n = len(s)
			}
			if y.col0 {
				y.rows[y.row] = ""
			}
			y.rows[y.row] += s[:n]
			y.col0 = false
			require.Less(y.t, termview.Width(y.rows[y.row]), y.width, "a line that wraps: %q", y.rows[y.row])
			s = s[n:]
		}
	}
	return len(p), nil
}

func (y *tty) control(arg string, what byte) {
	switch what {
	case 'A':
		n := 0
		_, err := fmt.Sscan(arg, &n)
		require.NoError(y.t, err)
		y.row -= n
		require.GreaterOrEqual(y.t, y.row, 0, "above the top")
	case 'J':
		require.True(y.t, y.col0)
		y.rows = append(y.rows[:y.row], "")
	case 'm':
	default:
		require.Failf(y.t, "control", "%s%c", arg, what)
	}
}

// text is what the terminal shows.
func (y *tty) text() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return strings.TrimRight(strings.Join(y.rows, "\n"), "\n")
}

func (y *tty) raw() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.all.String()
}
