package termview

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Words are what a View says that only its program knows. Every field may be nil.
type Words struct {
	// Answer returns the command that answers a wait: "shop durable approve order-42".
	Answer func(durable.Call) string
	// Answered tells how a wait was answered, by its signal_received event:
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
// and on a terminal, below that, what it is at now. A step has its line as soon
// as it is known to run: from Running, where it is executed in this process, else
// from the first event of it. What stands in branches and items is told when it
// fails or asks. Its methods may be called by several goroutines.
type View struct {
	mu      sync.Mutex
	screen  screen
	words   Words
	tracker durable.Tracker
	head    string          // key of the call that has its line and is not over
	headed  map[string]bool // calls that have theirs
	running string          // key of the body under way in this process
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

// Say prints a line of the program's own, above the live line.
func (v *View) Say(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.screen.draw([]string{line}, v.live())
}

// Err returns the first error of the writer.
func (v *View) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.screen.err
}

// Names sets the declared names, where the code of this process counts and not
// what was recorded at the start. It comes before the first event.
func (v *View) Names(names []string, known int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tracker.Names, v.tracker.Known = names, known
}

// Standing returns where the run stands by the events so far.
func (v *View) Standing() durable.Standing {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tracker.Standing()
}

// Skip takes an event that is old: it is known, and nothing is printed.
func (v *View) Skip(ev store.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tracker.Add(ev)
}

// Event takes the next event and prints what it says. One that was taken before
// is passed over. The error is that of Tracker.Add.
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

// Restart forgets everything but the events it is given: those of the history
// behind a cut. They are not printed, the cut is.
func (v *View) Restart(cut store.Event, history []store.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tracker = durable.Tracker{Names: v.tracker.Names, Known: v.tracker.Known}
	v.head, v.headed, v.running = "", map[string]bool{}, ""
	for _, ev := range history {
		if err := v.tracker.Add(ev); err != nil {
			return err
		}
	}
	if cut.Seq > 0 {
		v.screen.draw([]string{v.screen.o.paint(faint, fmt.Sprintf("Going on from %s (branch %d)", where(v.tracker.Standing()), cut.Branch))}, v.live())
	}
	return nil
}

func where(s durable.Standing) string {
	if s.Step() == 0 {
		return "there"
	}
	return fmt.Sprintf("step %d of %d", s.Step(), max(s.Step(), s.Total))
}

// Running says that this process is executing the body of a step now; see
// durable.Engine.Executing. An empty key: of none.
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
	// The end of the step before may be on its way here.
	if key != "" && !nested(key) && (v.head == "" || v.head == key) && !v.headed[key] {
		lines = v.header(key, v.tracker.Standing())
	}
	v.screen.draw(lines, v.live())
}

// Tick draws the live line anew.
func (v *View) Tick() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.screen.o.Redraw && !v.stopped {
		v.screen.o.resize(v.screen.w)
		v.screen.draw(nil, v.live())
	}
}

// Stop ends the live line, which stays as it is, without its time. What comes
// later is printed in plain lines.
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

// data is what a view needs of an event's Data beside what the Tracker keeps.
type data struct {
	Error  *struct{ Message string } `json:"error"`
	Max    int                       `json:"max"`
	Status store.Status              `json:"status"`
}

func dataOf(ev *store.Event) (d data) {
	// What is no JSON the Tracker has refused, where it matters.
	_ = json.Unmarshal(ev.Data, &d)
	return d
}

func nested(key string) bool { return strings.ContainsAny(key, "/[") }

// tell returns the lines of an event; before is where the run stood.
func (v *View) tell(ev *store.Event, before durable.Standing) []string {
	switch ev.Type {
	case store.AttributesSet, store.Published, store.FirstWon:
		return nil
	case store.FailuresReset:
		v.headed = map[string]bool{} // what runs again has its line again
		return nil
	}
	if ev.Key == "" {
		return nil
	}
	if nested(ev.Key) {
		return v.tellNested(ev)
	}
	line := v.outcome(ev, before)
	var lines []string
	if line != "" || ev.Type == store.StepStarted || ev.Type == store.ProgressSaved || opens(ev.Type) {
		lines = v.header(ev.Key, before)
	}
	if line != "" {
		lines = append(lines, line)
	}
	if over(ev) {
		v.head = ""
		if v.running == ev.Key {
			v.running = ""
		}
	}
	return lines
}

// header returns the line of a call that has none yet. What is neither declared
// nor a step has no number.
func (v *View) header(key string, before durable.Standing) []string {
	if v.headed[key] {
		v.head = key
		return nil
	}
	v.headed[key], v.head = true, key
	for i, name := range before.Names {
		if name == key {
			return []string{fmt.Sprintf("Executing step %d/%d: %s", i+1, before.Total, Clean(key))}
		}
	}
	if kind := callOf(v.tracker.Standing(), key).Kind; kind != "" && kind != "step" {
		return []string{strings.ToUpper(kind[:1]) + kind[1:] + ": " + Clean(key)}
	}
	n := before.Steps + 1
	return []string{fmt.Sprintf("Executing step %d/%d: %s", n, max(n, before.Total), Clean(key))}
}

func opens(t store.Type) bool {
	return t == store.WaitRequested || t == store.TimerSet || t == store.ChildStarted
}

// over reports whether the call of an event is over with it.
func over(ev *store.Event) bool {
	switch ev.Type {
	case store.StepStarted, store.ProgressSaved, store.AttemptFailed, store.Patched, store.Compensated:
		return false
	}
	return !opens(ev.Type)
}

// outcome returns the line below the header that an event makes; empty: none.
func (v *View) outcome(ev *store.Event, before durable.Standing) string {
	o := v.screen.o
	d := dataOf(ev)
	switch ev.Type {
	case store.StepCompleted:
		took := Took(ev.Took)
		if ev.Attempt == 0 {
			took = ""
		}
		if ev.Attempt > 1 {
			took = attempt(int(ev.Attempt), maxOf(before, ev.Key)) + ", " + took
		}
		return "  " + strings.TrimRight(o.paint(good, "✓")+" "+took, " ")
	case store.AttemptFailed, store.StepFailed:
		return "  " + v.failed(ev, d)
	case store.WaitRequested:
		return v.asks(callOf(v.tracker.Standing(), ev.Key), "")
	case store.SignalReceived:
		word := "answered"
		if v.words.Answered != nil {
			word = Clean(v.words.Answered(*ev))
		}
		return "  " + o.paint(good, "✓") + " " + word
	case store.WaitTimedOut:
		return "  " + o.paint(bad, "✗") + " no answer in time"
	case store.TimerFired:
		return "  " + o.paint(good, "✓")
	case store.TimerSet:
		if at := callOf(v.tracker.Standing(), ev.Key).Until; at > 0 {
			return "  " + o.paint(faint, "…") + " until " + o.clock(at.Time())
		}
	case store.ChildStarted:
		return "  " + o.paint(faint, "…") + " run " + Clean(callOf(v.tracker.Standing(), ev.Key).Child)
	case store.ChildFinished:
		if d.Status != "" && d.Status != store.Completed {
			return "  " + o.paint(bad, "✗") + " " + string(d.Status)
		}
		return "  " + o.paint(good, "✓")
	}
	return ""
}

// failed returns "✗ attempt 1 of 5: bank: 503 (next in 1s)".
func (v *View) failed(ev *store.Event, d data) string {
	var b strings.Builder
	b.WriteString(v.screen.o.paint(bad, "✗"))
	if ev.Attempt > 0 && (d.Max != 1 || ev.Type == store.AttemptFailed) {
		b.WriteString(" " + attempt(int(ev.Attempt), d.Max) + ":")
	}
	if d.Error != nil {
		b.WriteString(" " + Clean(d.Error.Message))
	}
	if ev.Type == store.AttemptFailed {
		if c := callOf(v.tracker.Standing(), ev.Key); c.NextAt > ev.At {
			b.WriteString(" (next in " + pause(c.NextAt.Sub(ev.At)) + ")")
		}
	}
	return b.String()
}

// asks returns the line of a wait; of says where it stands, if not below its
// header.
func (v *View) asks(c durable.Call, of string) string {
	if c.Prompt == "" {
		return ""
	}
	line := "  " + v.screen.o.paint(asking, "?") + " " + of + Clean(c.Prompt)
	if v.words.Answer != nil {
		if cmd := v.words.Answer(c); cmd != "" {
			line += "  Answer: " + Clean(cmd)
		}
	}
	return line
}

// tellNested returns the lines of an event in a branch or item.
func (v *View) tellNested(ev *store.Event) []string {
	name := Clean(ev.Key) + " "
	switch ev.Type {
	case store.AttemptFailed, store.StepFailed:
		f := v.failed(ev, dataOf(ev))
		mark, rest, _ := strings.Cut(f, " ")
		return []string{"  " + mark + " " + name + rest}
	case store.WaitRequested:
		if line := v.asks(callOf(v.tracker.Standing(), ev.Key), name); line != "" {
			return []string{line}
		}
	}
	return nil
}

// callOf finds an open call.
func callOf(s durable.Standing, key string) durable.Call {
	for _, c := range s.Open {
		if c.Key == key {
			return c
		}
	}
	return durable.Call{Key: key}
}

func maxOf(s durable.Standing, key string) int { return callOf(s, key).Max }

// clock writes a time of day: on a terminal that of its user, else UTC.
func (o Options) clock(t time.Time) string {
	if o.Redraw || o.Color {
		return t.Local().Format(time.TimeOnly)
	}
	return t.UTC().Format(time.RFC3339)
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

// now returns what the run is at, with how long already if timed; empty: nothing
// that the last line does not say.
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
