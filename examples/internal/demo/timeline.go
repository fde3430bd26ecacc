package demo

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Timeline prints what happens, when, and to whom.
type Timeline struct {
	mu    sync.Mutex
	out   io.Writer
	width int
	began time.Time
	said  []string
}

// NewTimeline returns a timeline that begins now; width is that of the longest
// name in it.
func NewTimeline(out io.Writer, width int) *Timeline {
	return &Timeline{out: out, width: width, began: time.Now()}
}

// Say adds a line.
func (t *Timeline) Say(who, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, what)
	fmt.Fprintf(t.out, "%6.2fs  %-*s  %s\n", time.Since(t.began).Seconds(), t.width, who, what)
}

// Said reports whether a line says this: what a process has logged comes some time after it
// has done it.
func (t *Timeline) Said(what string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.said, what)
}
