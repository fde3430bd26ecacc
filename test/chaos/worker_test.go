//go:build unix && cgo

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// orders are what a process is told.
type orders struct {
	Backend, DSN, Dir string
	Name              string // of this life
	Round             int
	Start             bool // runs; otherwise it ends when none is open any more
	Lease             time.Duration
}

// process is one life of the program.
type process struct {
	orders
	*ledger
	store    store.Store
	eng      *durable.Engine
	flows    map[string]flow
	counter  *os.File // a byte for each start that was acknowledged
	draining atomic.Bool
	all      sync.WaitGroup
}

// open is how many runs of its own a process has at a time.
const open = 40

func openStore(backend, dsn string) (store.Store, error) {
	if backend == "postgres" {
		return postgres.Open(dsn)
	}
	return sqlite.Open(dsn)
}

// persistent calls f until it succeeds: the database may be down.
func persistent(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// work is a life of the program: it recovers what the lives before have left and starts runs
// until it is told to drain (SIGUSR1) or to end (SIGTERM).
func work(o orders) error {
	before := runtime.NumGoroutine()
	l, err := openLedger(o.Dir, o.Name)
	if err != nil {
		return err
	}
	p := &process{orders: o, ledger: l}
	if p.counter, err = os.OpenFile(filepath.Join(o.Dir, "count"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	p.draining.Store(!o.Start)
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	drain := make(chan os.Signal, 1)
	signal.Notify(drain, syscall.SIGUSR1)
	fmt.Println("ready")
	p.flows = flows(p)
	if err := persistent(ctx, func() (err error) { p.store, err = openStore(o.Backend, o.DSN); return err }); err != nil {
		return nil // told to end before the database was there
	}
	if err := persistent(ctx, func() error { return p.boot(ctx) }); err == nil {
		for range 2 {
			p.all.Go(func() { p.care(ctx) })
		}
		p.all.Go(func() { p.begin(ctx) })
		for ctx.Err() == nil && !p.done(ctx) {
			select {
			case <-drain:
				p.draining.Store(true)
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	end()
	signal.Stop(drain)
	return p.close(before)
}

func (p *process) boot(ctx context.Context) (err error) {
	o := durable.Options{Logger: slog.New(slog.DiscardHandler), Name: p.Name, Lease: p.Lease, UnloadAfter: 300 * time.Millisecond, MaxRuns: 64, Grace: 5 * time.Second,
		Errors: durableErrors, Queues: []durable.Queue{{Name: "narrow", Max: 3}}}
	for _, f := range p.flows {
		o.Workflows = append(o.Workflows, f.Workflow)
	}
	if p.Start {
		o.Schedules = []durable.Schedule{p.flows["leaf"].Schedule("tick", durable.Every(time.Second), 1)}
	}
	if p.eng == nil {
		if p.eng, err = durable.Open(ctx, p.store, o); err != nil {
			return err
		}
	}
	_, err = p.eng.Recover(ctx)
	return err
}

// begin starts runs, each with an end that it waits for.
func (p *process) begin(ctx context.Context) {
	ectx := durable.NewContext(ctx, p.eng)
	names := []string{"leaf", "order", "order", "fan", "talk", "loop", "pay", "stop", "narrow", "long"}
	places := make(chan struct{}, open)
	for i := 0; !p.draining.Load(); i++ {
		select {
		case places <- struct{}{}:
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
			i--
			continue
		}
		f, n := p.flows[names[rand.IntN(len(names))]], i
		id := fmt.Sprintf("%d-%s-%s-%d", p.Round, f.Name(), p.Name, i)
		p.all.Go(func() {
			defer func() { <-places }()
			var run *durable.Run[int]
			if persistent(ctx, func() (err error) { run, err = f.Start(ectx, id, n, f.options...); return err }) != nil {
				return
			}
			p.note("started", id, f.Name(), n, "")
			_, _ = p.counter.Write([]byte{'.'})
			if out, err := run.Wait(ectx); err == nil {
				p.note("result", id, "", out, "")
			}
		})
	}
}

// care is what people and other programs do with runs: it answers, cancels, pauses and lets go
// on whatever is there, whoever has started it, and more than once.
func (p *process) care(ctx context.Context) {
	for ctx.Err() == nil {
		page, err := p.store.List(ctx, store.Filter{Workflows: []string{"talk", "stop"}, Statuses: []store.Status{store.Waiting}, OldestFirst: true})
		if err == nil {
			rand.Shuffle(len(page.Runs), func(i, j int) { page.Runs[i], page.Runs[j] = page.Runs[j], page.Runs[i] })
			for _, r := range page.Runs[:min(len(page.Runs), 10)] {
				p.act(ctx, r)
			}
		}
		if page, err := p.store.List(ctx, store.Filter{Paused: true}); err == nil {
			for _, r := range page.Runs {
				_ = p.eng.Unpause(ctx, r.ID)
			}
		}
		if page, err := p.store.List(ctx, store.Filter{Statuses: []store.Status{store.Running}, Limit: 20}); err == nil && len(page.Runs) > 0 && !p.draining.Load() && rand.IntN(4) == 0 {
			_ = p.eng.Pause(ctx, page.Runs[rand.IntN(len(page.Runs))].ID, "chaos")
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(10+rand.IntN(30)) * time.Millisecond):
		}
	}
}

func (p *process) act(ctx context.Context, r store.Run) {
	if r.Workflow == "stop" {
		if p.eng.Cancel(ctx, r.ID, "chaos") == nil {
			p.note("cancelled", r.ID, "", 0, "")
		}
		return
	}
	for n := 1; n <= signals; n++ {
		if p.eng.Signal(ctx, r.ID, "number", n, durable.SignalID(fmt.Sprint("n", n))) == nil {
			p.note("signalled", r.ID, "", n, "")
		}
	}
}

// done reports whether this process drains and no run is open.
func (p *process) done(ctx context.Context) bool {
	if !p.draining.Load() || p.eng == nil {
		return false
	}
	if err := operate.On(p.eng).DeleteSchedule(ctx, "tick"); err != nil && !errors.Is(err, operate.ErrScheduleNotFound) {
		return false
	}
	if page, err := p.store.List(ctx, store.Filter{Statuses: []store.Status{store.Failed}, Workflows: []string{"leaf"}, Limit: 1000}); err == nil {
		for _, r := range page.Runs {
			if r.Parent != "" && r.Code == durable.CodeQuarantined { // its parent waits until somebody lets it go on
				_, _ = operate.On(p.eng).Resume(ctx, r.ID, operate.ResumeOptions{})
			}
		}
	}
	n, err := p.store.Count(ctx, store.Filter{Statuses: openStatuses}, "")
	return err == nil && n[""] == 0
}

var openStatuses = []store.Status{store.Pending, store.Running, store.Resuming, store.Interrupted, store.Waiting}

// close ends everything and notes the goroutines that are left.
func (p *process) close(before int) error {
	p.all.Wait()
	var errs []error
	if p.eng != nil {
		errs = append(errs, p.eng.Close())
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	allowed := before + 1 // os/signal keeps one
	left := 0
	for range 1000 {
		if left = runtime.NumGoroutine() - allowed; left <= 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if left > 0 {
		p.note("leak", "", "", left, "")
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	}
	// A database that is down while the engine closes is no fault of its.
	if err := errors.Join(errs...); err != nil {
		p.note("closed", "", "", 0, fmt.Sprintf("%q", err))
	}
	return nil
}
