package conformance

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-dev/holdfast/store"
)

// The operations of clients on one run, and what they returned.
type (
	linearIn struct {
		op         string // claim, append, yield, leave, read
		executor   string
		epoch, seq int64 // of the last event the client knows, for append and yield
	}
	linearOut struct {
		ok         bool
		epoch, seq int64 // after a claim that took the run, or as read
	}
	// linearRun is everything about a run that matters to fencing.
	linearRun struct {
		epoch, seq int64
		owner      string // a live executor, or empty
	}
)

// linearModel is the specification: a claim takes a run that no live executor owns; an
// append or a yield is accepted right after the head with the head's epoch, and refused
// otherwise.
func linearModel(start linearRun) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return start },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(linearRun), input.(linearIn), output.(linearOut)
			fits := in.epoch == s.epoch && in.seq == s.seq
			switch in.op {
			case "claim":
				if !out.ok {
					return true, s // it may have skipped a run that others were claiming
				}
				if s.owner != "" || out.epoch != s.epoch+1 || out.seq != s.seq+1 {
					return false, s
				}
				return true, linearRun{epoch: out.epoch, seq: out.seq, owner: in.executor}
			case "append":
				if out.ok != fits {
					return false, s
				}
				if out.ok {
					s.seq++
				}
			case "yield":
				if out.ok != fits {
					return false, s
				}
				if out.ok {
					s = linearRun{epoch: s.epoch + 1, seq: s.seq + 1}
				}
			case "leave":
				if s.owner == in.executor {
					s.owner = ""
				}
			case "read":
				return out.epoch == s.epoch && out.seq == s.seq, s
			}
			return true, s
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// modelLinearizable makes clients compete for a run. Some lose their lease and go on
// writing, like a process that was asleep.
func modelLinearizable(t *T) {
	d := t.fresh()
	const clients, operations, histories = 4, 15, 8
	handles := []store.Store{t.handle(d), t.handle(d)}
	for h := range histories {
		id := fmt.Sprint("r", h)
		first := t.run(handles[0], id, func(r *store.Run) { r.Status = store.Interrupted })
		start := time.Now()
		var mu sync.Mutex
		var history []porcupine.Operation
		t.together(clients, func(i int) {
			c := linearClient{t: t, s: handles[i%2], run: id, writer: *first, name: fmt.Sprintf("h%d-c%d", h, i)}
			c.writer.epoch-- // it owns nothing yet
			for n := range operations {
				in := c.next()
				if n == operations-1 {
					in.op = "leave" // the last one finds the run free
				}
				call := time.Since(start)
				out, err := c.do(in)
				if err != nil {
					t.Errorf("%s: %v", in.op, err)
					return
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: i, Input: in, Call: int64(call), Output: out, Return: int64(time.Since(start))})
				mu.Unlock()
			}
		})
		m := linearModel(linearRun{epoch: first.epoch, seq: first.seq})
		if result := porcupine.CheckOperationsTimeout(m, history, t.patience()); result != porcupine.Ok {
			for _, o := range history {
				t.Logf("client %d, %d to %d: %s", o.ClientId, o.Call, o.Return, m.DescribeOperation(o.Input, o.Output))
			}
			require.Fail(t, fmt.Sprintf("S3, S19: the history is not linearizable: %s", result))
		}
	}
}

// linearClient is one process.
type linearClient struct {
	t      *T
	s      store.Store
	run    string
	name   string
	lives  int
	joined bool
	writer writer // what it believes; stale after it has left
	steps  int
}

func (c *linearClient) executor() string { return fmt.Sprintf("%s.%d", c.name, c.lives) }

func (c *linearClient) next() linearIn {
	in := linearIn{executor: c.executor(), epoch: c.writer.epoch, seq: c.writer.seq}
	in.op = []string{"claim", "claim", "append", "append", "append", "yield", "leave", "read"}[rand.N(8)]
	return in
}

func (c *linearClient) do(in linearIn) (linearOut, error) {
	ctx := c.t.Context()
	switch in.op {
	case "claim":
		if !c.joined {
			if _, err := c.s.Beat(ctx, store.Executor{ID: in.executor, Lease: longLease}); err != nil {
				return linearOut{}, err
			}
			c.joined = true
		}
		runs, err := c.s.Claim(ctx, claimOf(in.executor, c.run))
		if err != nil || len(runs) == 0 {
			return linearOut{}, err
		}
		c.writer = writer{t: c.t, id: c.run, epoch: runs[0].Epoch, seq: runs[0].Last.Seq, sum: runs[0].Last.Sum, at: runs[0].Last.At}
		return linearOut{ok: true, epoch: c.writer.epoch, seq: c.writer.seq}, nil
	case "append", "yield":
		c.steps++
		change := c.writer.append(step(fmt.Sprintf("%s %d", c.name, c.steps)))
		if in.op == "yield" {
			change.Yield = true
			change.Row = &store.RowPatch{Status: ptr(store.Interrupted)}
		}
		err := one(ctx, c.s, change)
		if isOneOf(err, store.ErrFenced) {
			return linearOut{}, nil
		}
		if err != nil {
			return linearOut{}, err
		}
		c.writer.done(change)
		return linearOut{ok: true}, nil
	case "leave":
		if !c.joined {
			return linearOut{}, nil
		}
		_, err := c.s.Beat(ctx, store.Executor{ID: in.executor, Leaving: true})
		c.joined = false
		c.lives++
		return linearOut{}, err
	default:
		h, err := c.s.Load(ctx, c.run, store.Cursor{NoEvents: true})
		if err != nil {
			return linearOut{}, err
		}
		return linearOut{epoch: h.Run.Last.Epoch, seq: h.Run.Last.Seq}, nil
	}
}
