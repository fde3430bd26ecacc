package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

const (
	// signalWarm signals of a round are not counted.
	signalWarm = 5
	signalName = "ping"
	// signalLook is how often the sender looks whether the run waits.
	signalLook = 200 * time.Microsecond
	// signalGoal is how many raw inserts a signal in one process may take.
	signalGoal = 2.5
)

// signalAwayGoals are the microseconds that one from another process may take, by store.
var signalAwayGoals = map[string]float64{"postgres": 2000, "sqlite": 5000}

// signals measures the time from the call of Signal to the first line of the
// step that follows the wait: sent by this process, against single inserts, and by another one.
func signals(ctx context.Context, t *target, n size) ([]result, error) {
	address, err := t.create(ctx)
	if err != nil {
		return nil, err
	}
	s, err := connect(t.name, t.mode, address)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f, err := t.openFloor(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := newListener(n.signals)
	var results []result
	err = withEngine(ctx, s, func(ctx context.Context, eng *durable.Engine) error {
		l.engine = eng
		// One after the other, without a break.
		here := l.sender("SIGNAL", func(run string) error { return ping(ctx, eng, run) })
		floor := func() (float64, error) { return f.p50(n.signals) }
		p50s, err := pairs(n.rounds, floor, func() (float64, error) { return here.round(ctx) })
		if err != nil {
			return err
		}
		hands, err := byHand(t, n.rounds, floor, func(h *hand) block { return func() (float64, error) { return h.signals(ctx, n.signals) } })
		if err != nil {
			return err
		}
		away, err := l.fromAway(ctx, orders{Role: "signal", Store: t.name, Mode: t.mode, Address: address}, n.awayRounds)
		if err != nil {
			return err
		}
		awayByHand, err := signalsAwayByHand(ctx, t, address, n)
		if err != nil {
			return err
		}
		results = []result{
			pairedResult("SIGNAL p50", "us/signal", false, p50s),
			inFloors("SIGNAL p50 in inserts", "inserts/signal", p50s).within(signalGoal),
			pairedResult("SIGNAL by hand p50", "us/signal", false, hands),
			inFloors("SIGNAL by hand p50 in inserts", "inserts/signal", hands),
			plainResult("SIGNAL p99", "us/signal", here.p99s),
			plainResult("SIGNAL away p50", "us/signal", away.p50s).within(signalAwayGoals[t.name]),
			plainResult("SIGNAL away p99", "us/signal", away.p99s),
			plainResult("SIGNAL away by hand p50", "us/signal", awayByHand),
		}
		return nil
	}, l.workflow)
	return results, err
}

// ping sends a run a signal with the current time.
func ping(ctx context.Context, eng *durable.Engine, run string) error {
	return eng.Signal(ctx, run, signalName, time.Now().UnixNano())
}

// listener has a workflow that waits for pings, and reports how old each was when it
// was taken.
type listener struct {
	workflow *durable.Workflow[int, int]
	engine   *durable.Engine
	aged     chan time.Duration
	signals  int // of a round
}

func newListener(signals int) *listener {
	l := &listener{aged: make(chan time.Duration, 1), signals: signals}
	l.workflow = durable.Define("listener", func(ctx context.Context, n int) (int, error) {
		for range n {
			sent, err := durable.Await[int64](ctx, signalName)
			if err != nil {
				return 0, err
			}
			err = durable.Do(ctx, "woken", func(context.Context) error {
				l.aged <- time.Duration(time.Now().UnixNano() - sent)
				return nil
			})
			if err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	return l
}

// fromAway measures rounds of signals that a child process sends.
func (l *listener) fromAway(ctx context.Context, o orders, rounds int) (away *sender, err error) {
	c, err := begin(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopWith(c, stop)
	away = l.sender("SIGNAL away", func(run string) error {
		if err := awayPause(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintln(c.in, run)
		return err
	})
	for range rounds {
		if _, err := away.round(ctx); err != nil {
			return nil, err
		}
	}
	return away, nil
}

// stopWith stops the wait for signals once the process that sends them has ended.
func stopWith(c *child, stop context.CancelCauseFunc) {
	go func() {
		<-c.ended
		stop(errors.New("the process that sends signals has ended"))
	}()
}

// awayPause waits before a signal from another process. Where the SQLite store polls for the writes of
// other processes, it does so less and less often while there are none, so a signal comes when it is
// polling slowly.
func awayPause(ctx context.Context) error {
	return pause(ctx, 30*time.Millisecond+rand.N(20*time.Millisecond))
}

// signalChild sends a ping to each run whose id it reads.
func signalChild(ctx context.Context, o orders, s store.Store, in io.Reader, _ io.Writer) error {
	return withEngine(ctx, s, func(ctx context.Context, eng *durable.Engine) error {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			if err := ping(ctx, eng, lines.Text()); err != nil {
				return err
			}
		}
		return lines.Err()
	})
}

// sender measures blocks of signals that come in one way.
type sender struct {
	*listener
	name       string
	send       func(run string) error // sends one to the run
	p50s, p99s []float64              // of each round
}

func (l *listener) sender(name string, send func(run string) error) *sender {
	return &sender{listener: l, name: name, send: send}
}

// round measures a block of signals to a run of its own, and returns their p50.
func (s *sender) round(ctx context.Context) (float64, error) {
	run, err := s.workflow.Start(ctx, fmt.Sprintf("%s-%d", s.name, len(s.p50s)), signalWarm+s.signals)
	if err != nil {
		return 0, err
	}
	var took []float64
	for i := range signalWarm + s.signals {
		d, err := s.one(ctx, run.ID(), s.send)
		if err != nil {
			return 0, err
		}
		if i >= signalWarm {
			took = append(took, micros(d))
		}
	}
	if _, err := run.Wait(ctx); err != nil {
		return 0, err
	}
	p50 := median(took)
	s.p50s = append(s.p50s, p50)
	s.p99s = append(s.p99s, quantile(took, 0.99))
	return p50, nil
}

// one sends a signal once the run waits for it (an early one would be consumed without
// a wake-up), and returns how old it was when consumed.
func (l *listener) one(ctx context.Context, run string, send func(run string) error) (time.Duration, error) {
	for {
		info, err := l.engine.Get(ctx, run)
		if err != nil {
			return 0, err
		}
		if info.Status == store.Waiting {
			break
		}
		if info.Status.Terminal() {
			return 0, fmt.Errorf("run %s has ended (%s: %s) and is to receive signals", run, info.Status, info.Reason)
		}
		if err := pause(ctx, signalLook); err != nil {
			return 0, err
		}
	}
	if err := send(run); err != nil {
		return 0, err
	}
	select {
	case d := <-l.aged:
		return d, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(time.Minute):
		return 0, fmt.Errorf("run %s did not take a signal within a minute", run)
	}
}
