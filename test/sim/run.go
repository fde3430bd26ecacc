package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Run plays a world in a bubble and fails the test if anything is wrong with it.
func Run(t *testing.T, w World) {
	t.Helper()
	if r := Play(t, w); r.Failure != "" {
		t.Errorf("%s\n\n%s", r.Failure, strings.Join(r.Notes, "\n"))
	}
}

// A Result is what became of a world.
type Result struct {
	Failure string   // the first thing that was wrong; empty: nothing was
	Kind    string   // of the failure, whatever the names in it
	Notes   []string // what happened, in order
	Events  int      // durable events
	Fired   map[Harm]int
	Acts    int
	Seen    []Triple
}

// Play plays a world in a bubble.
func Play(t *testing.T, w World) (r Result) {
	s := newSim(w)
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprint(v)
			if !strings.Contains(text, "blocked goroutines remain") && !strings.Contains(text, "deadlock") {
				panic(v)
			}
			s.fail("goroutines are left when everything is closed: %s", text)
		}
		r = s.result()
	}()
	synctest.Test(t, func(*testing.T) { s.play() })
	return r
}

// A sim is a world in progress.
type sim struct {
	world   World
	data    *memory.Store
	ledger  *ledger
	txs     *transactions
	clock   *clock
	line    *lineBook
	ticks   *tickBook
	desk    *deskBook
	bounces *bounceBook
	ways    map[string]string // of the nodes of a Change, by path
	verbose bool
	began   time.Time
	work    sync.WaitGroup // what operators do, and processes that come and go
	clients sync.WaitGroup // those that wait for runs

	paced   atomic.Uint64 // calls to the store, in a world with a Pace
	yielded atomic.Uint64 // looks at clocks and calls, in one with a Yield

	order sync.Mutex // held from a change of the store until it is noted

	mu        sync.Mutex
	processes []*process
	deployed  build
	counts    map[string]int // calls of the store by name
	happened  map[string]int // events by type
	last      map[string]store.Event
	heads     map[string]int64            // last Seq that was seen, by run
	sums      map[string]map[int64]uint32 // of the events that were seen, by run and Seq
	paths     map[string]string           // the part of the program that a run performs
	fedTo     map[string]bool             // the nodes that were sent their signals, by run and path
	files     map[string][]byte           // of which copies of runs are made, by their ids
	requests  int                         // that were made
	waiting   []*Act                      // acts whose event has not happened
	well      bool                        // no more faults and acts
	ending    bool                        // no more processes
	disturbed bool                        // the answer to a claim was lost
	trail     trail
	failures  []string
	kind      string // of the first failure
	notes     []string
	events    int
	acts      int
	acting    bool // an act has begun
	knocks    int  // at runs that waited and had nothing to do
	fired     map[Harm]int
}

func newSim(w World) *sim {
	s := &sim{
		world: w, counts: map[string]int{}, happened: map[string]int{},
		last: map[string]store.Event{}, verbose: os.Getenv("HOLDFAST_SIM_VERBOSE") != "", heads: map[string]int64{}, sums: map[string]map[int64]uint32{}, paths: map[string]string{}, fired: map[Harm]int{}, fedTo: map[string]bool{}, files: map[string][]byte{}, trail: newTrail(),
	}
	s.ledger = newLedger(s)
	s.ways = w.Program.ways()
	s.line = &lineBook{came: map[string]store.Time{}, last: map[string]turn{}, any: map[string]int{}, woken: map[string]bool{}, spared: map[string]bool{}}
	s.ticks = &tickBook{decided: map[string]bool{}}
	s.desk, s.bounces = newDeskBook(), newBounceBook()
	return s
}

func (s *sim) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) == 0 {
		s.kind = format
	}
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// note keeps what happened, for people.
func (s *sim) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notes) < 2000 {
		s.notes = append(s.notes, s.stamp()+fmt.Sprintf(format, args...))
	}
}

// stamp is the virtual time since the world began.
func (s *sim) stamp() string {
	return fmt.Sprintf("%8s  ", time.Since(s.began).Round(time.Millisecond))
}

func (s *sim) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.failures) > 0
}

func (s *sim) isEnding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// background runs f beside the world, which waits for it at its end.
func (s *sim) background(f func()) { s.work.Go(f) }

func (s *sim) result() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Result{Notes: s.notes, Events: s.events, Fired: s.fired, Acts: s.acts, Seen: s.trail.seen}
	if len(s.failures) > 0 {
		r.Failure, r.Kind = s.failures[0], s.kind
	}
	return r
}

// play is the life of a world: it begins, it is disturbed, it is left in peace, and it
// is judged.
func (s *sim) play() {
	s.began = time.Now()
	s.clock = &clock{began: s.began, drift: s.world.Drift}
	s.data = memory.OpenAt(s.clock.now)
	s.txs = newTransactions(s) // its channels are those of the bubble
	for range max(1, s.world.Engines) {
		s.boot()
	}
	s.schedule()
	s.start()
	s.debounce()
	s.disturbance()
	s.calm()
	s.quiesce()
	s.askOwed()
	s.settle()
	s.judge()
	s.end()
}

// performs notes which part of the program a run performs.
func (s *sim) performs(run, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths[run] = path
}

// horizon is how long a world is disturbed at most.
const horizon = 4 * time.Minute

// roots returns the ids of the root runs.
func (s *sim) roots() (ids []string) {
	for i := range max(1, s.world.Runs) {
		ids = append(ids, fmt.Sprint("r", i))
	}
	return ids
}

// start starts the root runs, as a program does that is told whether it worked.
func (s *sim) start() {
	if s.world.Begin.Bulk {
		s.background(s.startBulk)
		return
	}
	for i, id := range s.roots() {
		s.background(func() {
			for try := 0; try < 60 && !s.isEnding(); try++ {
				p := s.live(i)
				if p == nil {
					time.Sleep(time.Second)
					continue
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				err := s.startOn(ctx, p, id)
				cancel()
				if err == nil || isThere(err) {
					s.begun(i, id)
					return
				}
				s.note("start of %s: %v", id, err)
				if s.mayBeRefused(id, err) {
					time.Sleep(5 * time.Second)
					continue
				}
				if errors.Is(err, durable.ErrConflict) {
					s.fail("Start of %s: %v", id, err)
					return
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// waitFor waits for a run as a program does that has started it, in one process after the
// other.
func (s *sim) waitFor(i int, id string) {
	for !s.isEnding() {
		if p := s.live(i); p != nil {
			run, err := s.ref().Handle(durable.NewContext(context.Background(), p.engine()), id)
			if err != nil {
				continue
			}
			out, err := run.Wait(context.Background())
			var ended *durable.RunError
			if !p.isOver() && (err == nil || errors.As(err, &ended)) {
				s.ledger.waited(id, out, err)
				return
			}
		}
		time.Sleep(time.Second)
	}
}

func (s *sim) startOn(ctx context.Context, p *process, id string) error {
	eng := p.engine()
	if eng == nil {
		return durable.ErrClosed
	}
	_, err := s.ref().Start(durable.NewContext(ctx, eng), id, Input{}, s.options(id)...)
	return err
}

// disturbance lets faults and acts happen.
func (s *sim) disturbance() {
	for time.Since(s.began) < horizon {
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s.failed() || s.timedActsDone() && s.ticked() && s.streamed() && s.allEnded() {
			return
		}
	}
}

// calm ends all faults and waits until nobody does anything any more.
func (s *sim) calm() {
	s.mu.Lock()
	s.well = true
	s.mu.Unlock()
	s.each(func(p *process) { p.link.heal() })
	s.work.Wait()
	s.each(func(p *process) { p.link.heal() }) // what began before may have cut one
	s.lastRelease()
	if s.world.Queue != nil && s.hasAct(PauseQueue) {
		s.insist("ResumeQueue", func(ctx context.Context, op *operate.Operator) error {
			s.line.resumes()
			return op.ResumeQueue(ctx, lineName)
		})
	}
}

// rows returns the rows of all runs.
func (s *sim) rows() []store.Run {
	var all []store.Run
	f := store.Filter{Limit: 500}
	for {
		page, err := s.data.List(context.Background(), f)
		if err != nil {
			s.fail("the store: %v", err)
			return all
		}
		all = append(all, page.Runs...)
		if page.Next == "" {
			return all
		}
		f.After = page.Next
	}
}

// ownerOf returns which executor a run belongs to now; empty: none, or it is not there.
func (s *sim) ownerOf(run string) string {
	h, err := s.data.Load(context.Background(), run, store.Cursor{NoEvents: true})
	if err != nil {
		return ""
	}
	return h.Run.Owner
}

func (s *sim) allEnded() bool {
	rows := s.rows()
	for i := range rows {
		if !rows[i].Status.Terminal() {
			return false
		}
	}
	return len(rows) >= len(s.roots())
}

// patience is how many minutes a run may take that nothing disturbs.
const patience = 120

// inTurn is how many runs may have to wait for each other.
func (w *World) inTurn() int {
	if w.Queue == nil {
		return 1
	}
	return max(w.Runs, 1)
}

// settle gives every run what it waits for, and time.
func (s *sim) settle() {
	signals := s.world.Program.signals()
	resumed := map[string]int{}
	for i := 0; i < patience*s.world.inTurn() && !s.failed(); i++ {
		if i%6 == 5 {
			s.tryOther(s.rows())
		}
		rows := s.rows()
		ended := true
		for j := range rows {
			row := &rows[j]
			if row.Status.Terminal() {
				continue
			}
			ended = false
			p := s.live(0)
			if p == nil {
				s.fail("no process is left")
				return
			}
			ctx, cancel := context.WithTimeout(durable.NewContext(context.Background(), p.engine()), time.Minute)
			s.finishImport(ctx, p, row)
			if row.Paused && row.Code != durable.CodeImporting {
				if err := p.engine().Unpause(ctx, row.ID); err != nil && i > 5 {
					s.fail("%s is paused, and Unpause says: %v", row.ID, err)
				}
			}
			if row.Status == store.Waiting && i%3 == 2 {
				for _, name := range signals {
					_ = durable.Signal(ctx, row.ID, name, signalled)
				}
				s.askAll(i, row.ID, fmt.Sprint("late ", i))
				s.answerAll(ctx, operate.On(p.engine()), row.ID)
			}
			if row.Parked() && row.Code != durable.CodeError {
				// What only a person continues is continued by one.
				done := func() {}
				if s.world.Release != Unchanged {
					// The build that is back may have continued it, and it may have failed: then this begins it anew.
					done = s.ledger.meddles(row.ID)
				}
				_, err := operate.On(p.engine()).Resume(ctx, row.ID, operate.ResumeOptions{})
				done()
				s.note("resume of %s, %s: %v", row.ID, row.Code, err)
				if resumed[row.ID]++; resumed[row.ID] > 20 && s.world.Release != Plainly {
					s.fail("%s is parked again, however often it is resumed: %s: %s", row.ID, row.Code, row.Reason)
				}
			}
			cancel()
		}
		if ended {
			return
		}
		time.Sleep(time.Minute)
		synctest.Wait()
	}
}

// end closes everything.
func (s *sim) end() {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.each(func(p *process) { p.stop() })
	s.work.Wait()
	s.each(func(p *process) { p.stop() }) // what was being opened
	s.work.Wait()
	s.clients.Wait()
	time.Sleep(5 * time.Minute) // for calls of the store that stand still; time ends with the bubble's first goroutine
	synctest.Wait()
}
