package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// signalByHandChild gives each run whose id it reads a message, without an engine.
func signalByHandChild(ctx context.Context, _ orders, s store.Store, in io.Reader, _ io.Writer) error {
	lines := bufio.NewScanner(in)
	for n := 0; lines.Scan(); n++ {
		m := store.Message{To: lines.Text(), Kind: store.KindSignal, Name: signalName, ID: fmt.Sprint(n), At: store.TimeOf(time.Now()), Payload: byHandPayload}
		if err := s.Commit(ctx, []store.Change{{Send: []store.Message{m}}})[0]; err != nil {
			return err
		}
	}
	return lines.Err()
}

// signalsAwayByHand measures messages that a child process commits: until this one has heard of each,
// read it, and recorded that it has. It returns the p50 of each round.
func signalsAwayByHand(ctx context.Context, t *target, address string, n size) (p50s []float64, err error) {
	s, err := connect(t.name, t.mode, address)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	c, err := begin(ctx, orders{Role: "signal by hand", Store: t.name, Mode: t.mode, Address: address})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	ctx, stop := context.WithCancelCause(ctx)
	notices, listened := make(chan struct{}, 1), make(chan struct{})
	defer func() { stop(nil); <-listened }()
	go func() {
		defer close(listened)
		err := store.CapabilitiesOf(s).Notifier.Notify(ctx, func(store.Notice) {
			select {
			case notices <- struct{}{}:
			default:
			}
		})
		stop(err)
	}()
	stopWith(c, stop)
	h := hand{s: s, name: "away "}
	l, err := h.create()
	if err != nil {
		return nil, err
	}
	var read int64
	one := func() (time.Duration, error) {
		if err := h.commit(l.wait()); err != nil {
			return 0, err
		}
		if err := awayPause(ctx); err != nil {
			return 0, err
		}
		if _, err := fmt.Fprintln(c.in, l.id); err != nil {
			return 0, err
		}
		for {
			select {
			case <-notices:
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
			run, err := s.Load(ctx, l.id, store.Cursor{NoEvents: true, OnlyInbox: true, AfterMessage: read})
			if err != nil {
				return 0, err
			}
			if len(run.Inbox) > 0 {
				m := run.Inbox[0]
				if err := h.commit(l.receipt(m.Seq, m.Payload)); err != nil {
					return 0, err
				}
				read = m.Seq
				return time.Since(m.At.Time()), nil
			}
		}
	}
	for range n.awayRounds {
		var took []float64
		for i := range signalWarm + n.signals {
			d, err := one()
			if err != nil {
				return nil, err
			}
			if i >= signalWarm {
				took = append(took, micros(d))
			}
		}
		p50s = append(p50s, median(took))
	}
	return p50s, nil
}
