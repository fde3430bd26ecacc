package sim

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
)

// lease is that of every process.
const lease = durable.DefaultLease

// A process is an engine, from when it is opened to when it is closed or killed.
type process struct {
	sim   *sim
	n     int
	link  *link
	own   *localClock
	build build

	mu   sync.Mutex
	eng  *durable.Engine // nil: not yet open
	over bool            // it was killed, or is being closed
	dead bool            // it was killed
	ends time.Time       // when it began to be closed
}

// boot opens a process and has it recover, however often that takes.
func (s *sim) boot() {
	s.mu.Lock()
	p := &process{sim: s, n: len(s.processes), link: &link{Store: s.data.Handle()}, own: s.newClock(len(s.processes)), build: s.deployed}
	p.link.process = p
	s.processes = append(s.processes, p)
	s.mu.Unlock()
	for try := 0; ; try++ {
		eng, err := durable.Open(storeclock.WithSkew(context.Background(), p.own.skew), p.link, p.options())
		if err == nil {
			p.mu.Lock()
			p.eng = eng
			over := p.over
			p.mu.Unlock()
			if over { // it was killed while it was being opened
				_ = eng.Close()
				return
			}
			break
		}
		if p.isOver() {
			return
		}
		if try == 1000 {
			s.fail("an engine does not open: %v", err)
			return
		}
		time.Sleep(time.Second)
	}
	for try := 0; !p.isOver(); try++ {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		asked := s.unanswered()
		rep, err := p.eng.Recover(ctx)
		cancel()
		if err == nil {
			s.restored(&rep, asked)
			return
		}
		if try == 1000 && !p.isOver() {
			s.fail("Recover does not succeed: %v", err)
			return
		}
		time.Sleep(time.Second)
	}
}

func (p *process) options() durable.Options {
	w := p.sim.workflow(p)
	return durable.Options{
		Workflows: p.sim.definitions(p), Queues: p.sim.world.Queue.declared(), Schedules: p.sim.world.Schedule.declared(w),
		Name: fmt.Sprint("p", p.n), Build: p.build.name(), Grace: cmp.Or(p.sim.world.Grace, -1), UnloadAfter: p.sim.world.Unload,
		QuarantineAfter: 1000, NoReconcileOnBoot: false,
		Errors:  []durable.ErrorKind{durable.ErrorType[*oddError]("sim.odd")},
		Capture: durable.Capture{Off: true}, Logger: slog.New(listener{p}),
	}
}

func (p *process) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// id returns the id of its engine; empty: it is not yet open.
func (p *process) id() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.eng == nil {
		return ""
	}
	return p.eng.ID()
}

// graceLasts reports whether it is being closed, and its bodies have time to end.
func (p *process) graceLasts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead && !p.ends.IsZero() && time.Since(p.ends) < p.sim.world.Grace
}

// isDead reports whether it was killed: nothing of it has an effect any more.
func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// engine returns the engine while it is open.
func (p *process) engine() *durable.Engine {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	return p.eng
}

// kill ends a process as kill -9 does. Another one is opened soon. Its goroutines are
// cut off, and end in the background.
func (p *process) kill() {
	p.mu.Lock()
	was := p.over
	p.over, p.dead = true, true
	eng := p.eng
	p.mu.Unlock()
	p.link.cut()
	if was {
		return
	}
	p.sim.ledger.died(p)
	p.sim.note("p%d is killed", p.n)
	p.sim.background(func() {
		if eng != nil {
			p.close(eng)
		}
	})
	p.sim.replace()
}

// stop closes a process as SIGTERM does. Another one is opened soon.
func (p *process) stop() {
	p.mu.Lock()
	was := p.over || p.eng == nil
	eng := p.eng
	p.over = p.over || !was
	if !was {
		p.ends = time.Now()
	}
	p.mu.Unlock()
	if was {
		return
	}
	p.sim.note("p%d is closed", p.n)
	p.close(eng)
	p.sim.replace()
}

// close closes an engine and has it say when it cannot.
func (p *process) close(eng *durable.Engine) {
	began := time.Now()
	err := eng.Close()
	deaf := p.sim.world.Program.deaf()
	switch {
	case err == nil || p.isDead() || p.sim.world.slow() && deaf:
	case p.sim.world.othersWait() && (strings.HasSuffix(err.Error(), "killed") || strings.Contains(err.Error(), "gave up waiting for the store")):
		// The writer is in another process.
	case strings.Contains(err.Error(), "ignores its context") && !deaf:
		p.sim.fail("Close of p%d blames code that does not ignore its context: %v", p.n, err)
	case !p.sim.world.slow() && !deaf:
		p.sim.fail("Close of p%d: %v", p.n, err)
	}
	if took := time.Since(began); took > 10*time.Minute {
		p.sim.fail("Close of p%d took %s", p.n, took)
	}
	if err == nil {
		p.sim.askOpen(p)
	}
	p.link.cut()
}

// replace opens another process in the place of one that ended.
func (s *sim) replace() {
	s.background(func() {
		time.Sleep(time.Second)
		if !s.isEnding() {
			s.boot()
		}
	})
}

// each calls f with every process that has not ended.
func (s *sim) each(f func(p *process)) {
	s.mu.Lock()
	all := append([]*process(nil), s.processes...)
	s.mu.Unlock()
	for _, p := range all {
		if !p.isOver() {
			f(p)
		}
	}
}

// live returns the n-th live process, counted round; nil: there is none.
func (s *sim) live(n int) *process {
	var all []*process
	s.each(func(p *process) {
		if p.engine() != nil {
			all = append(all, p)
		}
	})
	if len(all) == 0 {
		return nil
	}
	return all[n%len(all)]
}

// A listener hears what an engine logs.
type listener struct{ p *process }

func (l listener) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && (l.p.sim.verbose || !l.p.isOver())
}
func (l listener) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l listener) WithGroup(string) slog.Handler      { return l }

// mustNotBeLogged are the beginnings of lines that tell of a fault of the engine.
var mustNotBeLogged = []string{"did not execute", "panicked", "gave up on"}

func (l listener) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "p%d: %s", l.p.n, r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&b, " %s=%v", a.Key, a.Value); return true })
	l.p.sim.note("%s", b.String())
	if !l.p.isOver() {
		l.p.sim.heard(r.Message, b.String())
	}
	return nil
}
