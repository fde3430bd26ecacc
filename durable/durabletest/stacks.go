package durabletest

import (
	"errors"
	"regexp"
	"runtime"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/guard"
)

// A goroutine is one of the user's goroutines, blocked in the user's code: not in a
// durable call, and not one of the engine's.
type goroutine struct {
	id    string
	state string // "sleep", "chan receive"
	at    string // the user's function and line that is blocked
	from  string // the function that started it; empty: the engine
}

func (g *goroutine) startedAt() string {
	if g.from == "" {
		return ""
	}
	return ", started by " + g.from
}

var goroutineHead = regexp.MustCompile(`^goroutine (\d+) (?:gp=\S+ m=\S+ (?:mp=\S+ )?)?\[([^,\]]*)[^\]]*synctest bubble (\d+)\]:`)

// userGoroutines lists the user's goroutines in the current bubble. The text of
// their stacks is the only way to see them.
func userGoroutines() []goroutine {
	text := make([]byte, 1<<20)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) || n >= 64<<20 {
			text = text[:n]
			break
		}
		text = make([]byte, 4*len(text))
	}
	blocks := strings.Split(string(text), "\n\n")
	self := goroutineHead.FindStringSubmatch(blocks[0])
	if self == nil {
		return nil // not in a bubble
	}
	var all []goroutine
	for _, b := range blocks[1:] {
		head := goroutineHead.FindStringSubmatch(b)
		if head == nil || head[3] != self[3] {
			continue
		}
		g := goroutine{id: head[1], state: strings.TrimSuffix(head[2], " (durable)")}
		lines := strings.Split(b, "\n")[1:]
		for i := 0; i+1 < len(lines); i += 2 {
			name, started := strings.CutPrefix(lines[i], "created by ")
			if started {
				name, _, _ = strings.Cut(name, " in goroutine")
				if !guard.OfLibrary(name) && !guard.OfGo(name) {
					g.from = name + place(lines[i+1])
				}
				break
			}
			name = guard.FrameName(name)
			if g.at != "" || guard.OfGo(name) {
				continue
			}
			if guard.OfLibrary(name) {
				break
			}
			g.at = name + place(lines[i+1])
		}
		if g.at != "" {
			all = append(all, g)
		}
	}
	return all
}

// panickedAt says where the user's code panicked, if an error comes from a panic.
func panickedAt(err error) string {
	var p *durable.PanicError
	if !errors.As(err, &p) {
		return ""
	}
	if name, at := guard.PanickedAt(p); name != "" {
		return ", in " + name + place(at)
	}
	return ""
}

// place returns " (file.go:12)" of the second line of a frame.
func place(line string) string {
	line = guard.FrameLine(line)
	return " (" + line[strings.LastIndexByte(line, '/')+1:] + ")"
}

// newOf returns the goroutines of now that are not in before.
func newOf(now, before []goroutine) (fresh []goroutine) {
	known := map[string]bool{}
	for _, g := range before {
		known[g.id] = true
	}
	for _, g := range now {
		if !known[g.id] {
			fresh = append(fresh, g)
		}
	}
	return fresh
}

// whereBlocked says where in the user's code goroutines are blocked, if any.
func whereBlocked() string {
	for _, g := range userGoroutines() {
		return " Code of the test is blocked (" + g.state + ") in " + g.at + "."
	}
	return ""
}
