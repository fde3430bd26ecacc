package termview

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A Board shows a run as a whole, redrawn as it goes on:
//
//	order-42  running  2 of 4  █████░░░░░  10s  pid 4711 on web-1
//	  ✓ reserve  0.2s
//	  ▸ charge   attempt 3 of 5  0.9s  (2 failed: bank: timeout)
//	  · approve
//	  · ship
//
// It is for a terminal (Options.Redraw); elsewhere use a View. Its methods may be
// called concurrently.
type Board struct {
	mu      sync.Mutex
	screen  screen
	words   Words
	id      string
	owner   string
	tracker operate.Tracker
	order   []string
	ended   map[string]string // the text of calls that are over, by key
	failed  map[string]bool   // which of them have failed
	items   map[string]int    // outcomes of items, by key of the Map
	failure map[string]int    // failed attempts of the call in progress
	running string
	since   time.Time // when that was first seen, or else the last event
	stopped bool
}

// NewBoard returns a Board for the run with this id.
func NewBoard(w io.Writer, id string, o Options, words Words) *Board {
	if words.Now == nil {
		words.Now = time.Now
	}
	b := &Board{screen: screen{w: w, o: o}, words: words, id: id}
	b.clear()
	return b
}

func (b *Board) clear() {
	b.tracker = operate.Tracker{Names: b.tracker.Names, Known: b.tracker.Known}
	b.order, b.ended, b.failed = nil, map[string]string{}, map[string]bool{}
	b.items, b.failure, b.running = map[string]int{}, map[string]int{}, ""
}

// Names sets the declared names, and a known number of steps; see View.Names.
func (b *Board) Names(names []string, known int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tracker.Names, b.tracker.Known = names, known
}

// Owner sets which process executes the run, "pid 4711 on web-1", or why none does.
func (b *Board) Owner(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owner = Clean(text)
}

// Follow shows the run until it ends or ctx does, which is not an error. It leaves
// the board as last drawn. If see is not nil, each event is passed to it first.
func (b *Board) Follow(ctx context.Context, src Source, id string, see func(store.Event)) error {
	if see == nil {
		see = func(store.Event) {}
	}
	return follow(ctx, src, id, follower{
		event:   func(ev store.Event) error { see(ev); return b.Event(ev) },
		restart: func(cut store.Event, history []store.Event) error { see(cut); return b.Restart(history) },
		tick: func() {
			if x, ok := src.(Executor); ok {
				key, _ := x.Executing(id)
				b.Running(key)
			}
			b.Draw()
		},
		stop: b.Stop,
	})
}

// Event takes the next event. Draw shows it.
func (b *Board) Event(ev store.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.add(ev)
}

// Restart forgets everything except the given events.
func (b *Board) Restart(history []store.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	for _, ev := range history {
		if err := b.add(ev); err != nil {
			return err
		}
	}
	return nil
}

// Running is like View.Running.
func (b *Board) Running(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key != b.running {
		b.running, b.since = key, b.words.Now()
	}
}

func (b *Board) add(ev store.Event) error {
	before := b.tracker.Standing()
	if ev.Seq <= before.Seq {
		return nil
	}
	if err := b.tracker.Add(ev); err != nil {
		return err
	}
	switch ev.Type {
	case store.WorkflowStarted, store.FailuresReset:
		if ev.Type == store.FailuresReset || b.tracker.Standing().Generation != before.Generation {
			b.order, b.ended, b.failed = nil, map[string]string{}, map[string]bool{}
			b.items, b.failure = map[string]int{}, map[string]int{}
		}
	case store.ItemCompleted, store.ItemFailed:
		name, _, _ := strings.Cut(ev.Key, "[")
		b.items[name]++
	case store.AttributesSet, store.Published, store.Patched, store.Edited, store.FirstWon, store.Compensated:
	default:
		if ev.Key != "" && !nested(ev.Key) {
			b.call(&ev, before)
		}
	}
	return nil
}

// call takes an event of a call that has a row.
func (b *Board) call(ev *store.Event, before operate.Standing) {
	if !slices.Contains(b.order, ev.Key) {
		b.order = append(b.order, ev.Key)
	}
	switch {
	case ev.Type == store.AttemptFailed:
		b.failure[ev.Key]++
	case !over(ev):
		delete(b.ended, ev.Key)
	default:
		delete(b.failure, ev.Key)
		b.failed[ev.Key] = ev.Type == store.StepFailed || ev.Type == store.WaitTimedOut
		b.ended[ev.Key] = b.end(ev, before)
	}
}

// end describes the outcome of a call.
func (b *Board) end(ev *store.Event, before operate.Standing) string {
	d := dataOf(ev)
	switch ev.Type {
	case store.StepCompleted:
		if ev.Attempt > 1 {
			return attempt(int(ev.Attempt), maxOf(before, ev.Key)) + "  " + Took(ev.Took)
		}
		if ev.Attempt == 1 {
			return Took(ev.Took)
		}
	case store.StepFailed:
		text := ""
		if ev.Attempt > 0 && d.Max != 1 {
			text = attempt(int(ev.Attempt), d.Max) + "  "
		}
		if d.Error != nil {
			text += Clean(d.Error.Message)
		}
		return text
	case store.SignalReceived:
		if b.words.Answered != nil {
			return Clean(b.words.Answered(*ev))
		}
		return "answered"
	case store.WaitTimedOut:
		return "no answer in time"
	case store.ChildFinished:
		b.failed[ev.Key] = d.Status != "" && d.Status != store.Completed
		return string(d.Status)
	}
	return ""
}

// Draw draws the board.
func (b *Board) Draw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	b.screen.o.resize(b.screen.w)
	b.screen.draw(nil, b.lines())
}

// Stop draws the board a last time and leaves it; later output appears below.
func (b *Board) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	b.stopped = true
	b.screen.draw(b.lines(), nil)
}

func (b *Board) lines() []string {
	o := b.screen.o
	s := b.tracker.Standing()
	if s.Seq == 0 {
		return nil
	}
	rows := b.rows(s)
	lines := []string{o.fit(b.headline(s))}
	if room := o.Height - 2; o.Height > 3 && len(rows) > room {
		lines = append(lines, o.fit(fmt.Sprintf("  … %d more above", len(rows)-room+1)))
		rows = rows[len(rows)-room+1:]
	}
	for _, r := range rows {
		text := o.fit("  " + r.mark + " " + r.text)
		if r.tone != plain { // only the mark, which fit has not cut
			text = strings.Replace(text, r.mark, o.paint(r.tone, r.mark), 1)
		}
		lines = append(lines, text)
	}
	return lines
}

// headline returns "order-42  running  2 of 4  █████░░░░░  10s  pid 4711 on web-1".
func (b *Board) headline(s operate.Standing) string {
	active := s.Active
	if s.Status == store.Running && b.running != "" {
		active += max(0, b.words.Now().Sub(s.At.Time()))
	}
	of := fmt.Sprintf("%d of %d", s.Done, s.Total)
	if s.Failed > 0 {
		of += fmt.Sprintf(", %d failed", s.Failed)
	}
	parts := []string{Clean(b.id), string(s.Status), of, bar(s.Done, s.Total), Took(active)}
	if b.owner != "" {
		parts = append(parts, b.owner)
	}
	return strings.Join(parts, "  ")
}

type row struct {
	tone tone
	mark string
	text string
}

// rows returns the rows of declared calls first, in their order, then the others.
func (b *Board) rows(s operate.Standing) []row {
	keys := append([]string{}, s.Names...)
	for _, k := range append(slices.Clone(b.order), b.running) {
		if k != "" && !nested(k) && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	cells := 0
	for _, k := range keys {
		cells = max(cells, min(Width(Clean(k)), 40))
	}
	var rows []row
	for _, k := range keys {
		r := b.row(s, k)
		r.text = strings.TrimRight(pad(Clean(k), cells)+"  "+r.text, " ")
		rows = append(rows, r)
	}
	return rows
}

// row returns the row of a call, without its key.
func (b *Board) row(s operate.Standing, key string) row {
	if text, ok := b.ended[key]; ok {
		if n := b.items[key]; n > 0 {
			text = strings.TrimRight(count.Of(n, "item")+"  "+text, " ")
		}
		if b.failed[key] {
			return row{bad, "✗", text}
		}
		return row{good, "✓", text}
	}
	c := callOf(s, key)
	switch {
	case s.Status.Terminal() || c.Kind == "" && key != b.running && b.items[key] == 0 && (key != s.Current.Key || s.Status != store.Running):
		return row{faint, "·", ""}
	case c.Prompt != "":
		return row{asking, "?", strings.TrimPrefix(b.asks(c), "  ")}
	case c.Kind == "sleep" || c.Kind == "wait":
		if c.Until > 0 {
			return row{faint, "…", "until " + b.screen.o.clock(c.Until.Time())}
		}
		return row{faint, "…", ""}
	}
	return row{plain, "▸", b.underWay(c, key)}
}

func (b *Board) asks(c operate.Call) string {
	if b.words.Answer == nil {
		return Clean(c.Prompt)
	}
	return Clean(c.Prompt) + "  Answer: " + Clean(b.words.Answer(c))
}

// underWay returns "attempt 3 of 5  0.9s  (2 failed: bank: timeout)".
func (b *Board) underWay(c operate.Call, key string) string {
	var parts []string
	if n := b.items[key]; n > 0 {
		parts = append(parts, count.Of(n, "item"))
	}
	if c.Child != "" {
		parts = append(parts, "run "+Clean(c.Child))
	}
	if c.Attempt > 1 {
		parts = append(parts, attempt(c.Attempt, c.Max))
	}
	left := c.NextAt.Time().Sub(b.words.Now())
	switch {
	case b.running == key:
		parts = append(parts, Took(b.words.Now().Sub(b.since)))
	case c.NextAt > 0 && left > 0:
		parts = append(parts, "in "+pause(left.Round(100*time.Millisecond)))
	}
	if n := b.failure[key]; n > 0 {
		parts = append(parts, fmt.Sprintf("(%d failed: %s)", n, Clean(c.Failed)))
	}
	return strings.Join(parts, "  ")
}
