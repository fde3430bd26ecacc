package histories_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-dev/holdfast/store"
)

const lease = 150 * time.Millisecond

var serves = []store.Served{{Workflow: "job", Versions: []string{"v1"}}}

// belief is what a client thinks the end of a run's log is. It may be wrong.
type belief struct {
	epoch, seq int64
	sum        uint32
	at         store.Time
}

func beliefIn(r *store.Run) belief {
	return belief{r.Last.Epoch, r.Last.Seq, r.Last.Sum, r.Last.At}
}

// pending is a write whose outcome the client was not told.
type pending struct {
	in     input
	change store.Change
}

// client is one process, whose operations are noted.
type client struct {
	n      int
	name   string
	s      store.Store
	rnd    *rand.Rand
	began  time.Time
	runs   []string
	lives  int
	joined time.Duration // when it last beat; 0: it is not live
	knows  map[string]belief
	open   map[string]*pending
	writes int

	history         []porcupine.Operation
	beats           map[string][]beat // by executor
	pauses, unknown int
	err             error
}

func (c *client) executor() string { return fmt.Sprintf("%s.%d", c.name, c.lives) }

// act makes one operation. It sometimes sleeps beyond its lease first, and then goes on as if
// nothing had happened.
func (c *client) act(ctx context.Context) {
	if c.rnd.IntN(1000) < 15 {
		c.pauses++
		time.Sleep(lease + time.Duration(c.rnd.IntN(100))*time.Millisecond)
	} else if c.joined > 0 && time.Since(c.began)-c.joined > lease/4 {
		c.beat(ctx)
	}
	run := c.runs[c.rnd.IntN(len(c.runs))]
	op := []string{"claim", "claim", "claim", "append", "append", "append", "append", "yield", "leave", "read"}[c.rnd.IntN(10)]
	if op == "leave" && c.rnd.IntN(4) > 0 {
		op = "read"
	}
	if p := c.open[run]; p != nil && c.rnd.IntN(4) > 0 {
		c.send(ctx, p)
		return
	}
	switch op {
	case "claim":
		c.claim(ctx, run)
	case "append", "yield":
		if b, ok := c.knows[run]; ok {
			c.send(ctx, c.write(run, op, b))
			return
		}
		c.read(ctx, run)
	case "leave":
		c.leave(ctx)
	default:
		c.read(ctx, run)
	}
}

// note keeps an operation that has ended.
func (c *client) note(in input, out output, call time.Duration) {
	o := porcupine.Operation{ClientId: c.n, Input: in, Output: out, Call: int64(call), Return: int64(time.Since(c.began))}
	if out.unknown {
		c.unknown++
		o.Return = never
	}
	c.history = append(c.history, o)
}

func (c *client) beat(ctx context.Context) {
	call := time.Since(c.began)
	if _, err := c.s.Beat(ctx, store.Executor{ID: c.executor(), Lease: lease}); err != nil {
		c.fail("beat", err)
		return
	}
	c.beats[c.executor()] = append(c.beats[c.executor()], beat{call, time.Since(c.began)})
	c.joined = call
}

// leave ends the life of this executor. Its runs are free then, each at some moment meanwhile.
func (c *client) leave(ctx context.Context) {
	if c.joined == 0 {
		return
	}
	call := time.Since(c.began)
	_, err := c.s.Beat(ctx, store.Executor{ID: c.executor(), Leaving: true})
	if err != nil {
		c.fail("leave", err)
		return
	}
	for _, run := range c.runs {
		c.note(input{run: run, op: "leave", executor: c.executor()}, output{ok: true}, call)
	}
	c.joined = 0
	c.lives++
}

func (c *client) claim(ctx context.Context, run string) {
	if c.joined == 0 {
		c.beat(ctx)
	}
	in := input{run: run, op: "claim", executor: c.executor()}
	call := time.Since(c.began)
	var rows []store.Run
	lost, err := c.disturbed(ctx, func(ctx context.Context) (err error) {
		rows, err = c.s.Claim(ctx, store.Claim{Executor: in.executor, Serves: serves, Max: 1, IDs: []string{run}})
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound): // it slept too long
		c.beat(ctx)
	case lost:
		c.note(in, output{unknown: true}, call)
		c.leave(ctx) // S32: what it has taken is its own while it lives
	case err != nil:
		c.fail("claim", err)
	case len(rows) == 0:
		c.note(in, output{}, call)
	default:
		c.knows[run] = beliefIn(&rows[0])
		c.note(in, output{ok: true, epoch: rows[0].Epoch, seq: rows[0].Last.Seq}, call)
	}
}

func (c *client) read(ctx context.Context, run string) {
	in := input{run: run, op: "read"}
	call := time.Since(c.began)
	h, err := c.s.Load(ctx, run, store.Cursor{NoEvents: true})
	if err != nil {
		c.fail("read", err)
		return
	}
	c.note(in, output{ok: true, epoch: h.Run.Last.Epoch, seq: h.Run.Last.Seq}, call)
	if old, ok := c.knows[run]; ok {
		switch now := beliefIn(&h.Run); c.rnd.IntN(4) {
		case 0:
			c.knows[run] = now
		case 1: // it knows the end of the log, and not that it has lost the run
			now.epoch = old.epoch
			c.knows[run] = now
		}
	}
}

// write makes the change that appends an event after what the client knows.
func (c *client) write(run, op string, b belief) *pending {
	c.writes++
	in := input{run: run, op: op, executor: c.executor(), epoch: b.epoch, seq: b.seq, id: fmt.Sprintf("%s %d", c.name, c.writes)}
	e := store.Event{Seq: b.seq + 1, Type: store.StepCompleted, Key: in.id, Attempt: 1, Ordinal: 1, At: max(b.at, store.TimeOf(time.Now())), Payload: []byte("1")}
	e.Sum = store.Seal(run, b.sum, &e)
	ch := store.Change{RunID: run, Expect: store.Expect{Epoch: b.epoch}, Events: []store.Event{e}}
	if op == "yield" {
		ch.Yield = true
		ch.Row = &store.RowPatch{Status: new(store.Interrupted)}
	}
	return &pending{in, ch}
}

// send commits a write, perhaps once more.
func (c *client) send(ctx context.Context, p *pending) {
	call := time.Since(c.began)
	lost, err := c.disturbed(ctx, func(ctx context.Context) error { return c.s.Commit(ctx, []store.Change{p.change})[0] })
	switch {
	case lost:
		c.open[p.in.run] = p
		c.note(p.in, output{unknown: true}, call)
		return
	case errors.Is(err, store.ErrFenced):
		c.note(p.in, output{}, call)
	case err != nil:
		c.fail(p.in.op, err)
		return
	default:
		c.note(p.in, output{ok: true}, call)
		e := &p.change.Events[0]
		b := belief{p.in.epoch, e.Seq, e.Sum, e.At}
		if p.in.op == "yield" {
			b.epoch++
		}
		c.knows[p.in.run] = b
	}
	delete(c.open, p.in.run)
}

// disturbed makes a call whose answer is sometimes lost, before or after it was carried out, and
// whose context sometimes ends meanwhile.
func (c *client) disturbed(ctx context.Context, call func(ctx context.Context) error) (lost bool, err error) {
	switch c.rnd.IntN(30) {
	case 0:
		return true, nil
	case 1:
		_ = call(ctx)
		return true, nil
	case 2:
		ctx, stop := context.WithTimeout(ctx, time.Duration(c.rnd.IntN(1500))*time.Microsecond)
		defer stop()
		err := call(ctx)
		if err != nil && !errors.Is(err, store.ErrFenced) && !errors.Is(err, store.ErrNotFound) {
			return true, nil
		}
		return false, err
	}
	err = call(ctx)
	return errors.Is(err, store.ErrUnknown), err
}

func (c *client) fail(what string, err error) {
	if c.err == nil {
		c.err = fmt.Errorf("%s of %s: %w", what, c.name, err)
	}
}
