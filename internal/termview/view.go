package termview

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Words provide the texts of a View that only its program knows. Every field may
// be nil.
type Words struct {
	// Answer returns the command that answers a wait: "shop durable approve order-42".
	Answer func(operate.Call) string
	// Answered says how a wait was answered, from its signal_received event:
	// "approved". Without it, "answered".
	Answered func(store.Event) string
	// Now replaces time.Now.
	Now func() time.Time
}

// A View prints what happens to one run:
//
//	Executing step 2/4: charge
//	  ✗ attempt 1 of 5: bank: 503 (next in 1s)
//	  ✓ attempt 2 of 5, 1.1s
//
// and on a terminal, below that, what it is doing now. A step gets its line as
// soon as it is known to run: from Running, if it is executed in this process,
// otherwise from its first event. Calls in branches and items are shown when they
// fail or ask. Its methods may be called concurrently.
type View struct {
	mu      sync.Mutex
	screen  screen
	words   Words
	tracker operate.Tracker
	head    string          // key of the call that has its line and is not over
	headed  map[string]bool // calls that have their line
	running string          // key of the body in progress in this process
	since   time.Time       // when that was first seen
	stopped bool
}

// New returns a View that writes to w.
func New(w io.Writer, o Options, words Words) *View {
	if words.Now == nil {
		words.Now = time.Now
	}
	return &View{screen: screen{w: w, o: o}, words: words, headed: map[string]bool{}}
}

// Err returns the first error of the writer.
func (v *View) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.screen.err
}

// Names sets the declared names, if the code of this process counts and not what
// was recorded at the start. Call it before the first event.
func (v *View) Names(names []string, known int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tracker.Names, v.tracker.Known = names, known
}

// Standing returns where the run stands by the events so far.
func (v *View) Standing() operate.Standing {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tracker.Standing()
}

// Skip takes an old event, without printing anything.
func (v *View) Skip(ev store.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tracker.Add(ev)
}

// Event takes the next event and prints what it says. It skips an event that was
// taken before. The error is that of Tracker.Add.
func (v *View) Event(ev store.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.tracker.Standing()
	if ev.Seq <= before.Seq {
		return nil
	}
	if err := v.tracker.Add(ev); err != nil {
		return err
	}
	lines := v.tell(&ev, before)
	v.screen.draw(lines, v.live())
	return nil
}

// Restart forgets everything except the given events, which are the history after
// a cut. It does not print them, only the cut and what a person is still asked.
func (v *View) Restart(cut store.Event, history []store.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tracker = operate.Tracker{Names: v.tracker.Names, Known: v.tracker.Known}
	v.head, v.headed, v.running = "", map[string]bool{}, ""
	for _, ev := range history {
		if err := v.tracker.Add(ev); err != nil {
			return err
		}
	}
	if cut.Seq > 0 {
		now := v.tracker.Standing()
		lines := []string{v.screen.o.paint(faint, fmt.Sprintf("Going on from %s (branch %d)", where(now), cut.Branch))}
		for i := range history {
			if ev := &history[i]; ev.Type == store.WaitRequested && callOf(now, ev.Key).Prompt != "" {
				lines = append(lines, v.tell(ev, now)...)
			}
		}
		v.screen.draw(lines, v.live())
	}
	return nil
}

func where(s operate.Standing) string {
	if s.Step() == 0 {
		return "there"
	}
	return fmt.Sprintf("step %d of %d", s.Step(), max(s.Step(), s.Total))
}

// Running says that this process is executing the body of a step now; see
// durable.Engine.Executing. An empty key means none.
func (v *View) Running(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stopped {
		return
	}
	if key != v.running {
		v.running, v.since = key, v.words.Now()
	}
	var lines []string
	// The end of the previous step may not have arrived yet.
	if key != "" && !nested(key) && (v.head == "" || v.head == key) && !v.headed[key] {
		lines = v.header(key, v.tracker.Standing())
	}
	v.screen.draw(lines, v.live())
}

// Tick redraws the live line.
func (v *View) Tick() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.screen.o.Redraw && !v.stopped {
		v.screen.o.resize(v.screen.w)
		v.screen.draw(nil, v.live())
	}
}

// Stop ends the live line, which stays as it is, without its time. Later output
// is printed as plain lines.
func (v *View) Stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stopped {
		return
	}
	v.stopped = true
	var last []string
	if line := v.now(false); line != "" && v.screen.o.Redraw {
		last = []string{line}
	}
	v.screen.draw(last, nil)
}

// live returns the block below the lines.
func (v *View) live() []string {
	if v.stopped || !v.screen.o.Redraw {
		return nil
	}
	if line := v.now(true); line != "" {
		return []string{line}
	}
	return nil
}

// now returns what the run is doing, with the elapsed time if timed; empty:
// nothing that the last line does not say.
func (v *View) now(timed bool) string {
	s := v.tracker.Standing()
	c := s.Current
	here := v.running != ""
	if here && v.running != c.Key {
		c = callOf(s, v.running)
		c.Attempt = max(c.Attempt, 1)
	}
	if s.Status.Terminal() || s.Status == store.Interrupted || c.Key == "" || c.Kind != "step" && !here {
		return ""
	}
	var parts []string
	if c.Key != v.head {
		parts = append(parts, Clean(c.Key))
	}
	if c.Attempt > 1 {
		parts = append(parts, attempt(c.Attempt, c.Max))
	}
	left := c.NextAt.Time().Sub(v.words.Now())
	switch {
	case !timed:
	case here:
		parts = append(parts, Took(v.words.Now().Sub(v.since)))
	case c.NextAt > 0 && left > 0:
		parts = append(parts, "in "+pause(left.Round(100*time.Millisecond)))
	}
	if len(parts) == 0 {
		return ""
	}
	return v.screen.o.fit("  … " + strings.Join(parts, "  "))
}
