package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Batches of steps, ends, waits and interruptions, of which some are refused, sent again or
// out of date, do what they do in memory: member for member, and in rows and logs.
func TestBatchesOfStepsAndEndsDoWhatTheyDoInMemory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			both := []store.Store{memory.Open(), fresh(t)}
			t.Cleanup(func() { _ = both[0].Close() })
			const n = 10
			var runs []*runLog
			var sent [][]store.Change
			kinds := []error{
				store.ErrFenced, store.ErrCancelAsked, store.ErrStatus, store.ErrNotFound, store.ErrOccupied, store.ErrInvalid, store.ErrTooLarge,
			}
			kind := func(err error) error {
				for _, k := range kinds {
					if errors.Is(err, k) {
						return k
					}
				}
				return err
			}
			send := func(batch []store.Change) []error {
				var errs [2][]error
				for i, s := range both {
					for _, err := range s.Commit(context.Background(), batch) {
						errs[i] = append(errs[i], kind(err))
					}
				}
				require.Equal(t, errs[0], errs[1], "%+v", batch)
				return errs[1]
			}
			for i := range n {
				runs = append(runs, &runLog{id: fmt.Sprintf("r%02d", (i*7)%n), epoch: 1})
				send([]store.Change{runs[i].create("e")})
			}
			statuses := store.Statuses()
			for range 60 {
				if len(sent) > 0 && r.IntN(6) == 0 {
					send(sent[r.IntN(len(sent))]) // the answer was lost
					continue
				}
				var batch []store.Change
				var next []runLog
				var of []int
				for _, i := range r.Perm(n)[:1+r.IntN(n)] {
					l := *runs[i]
					c := l.step([]byte("x"))
					if r.IntN(4) == 0 {
						e := l.event(store.StepCompleted, "more", nil)
						c.Events = append(c.Events, e)
					}
					if r.IntN(3) > 0 {
						c.Row = &store.RowPatch{}
						if r.IntN(2) == 0 {
							s := statuses[r.IntN(len(statuses))]
							c.Row.Status = &s
							c.Yield = s.Terminal()
						}
						if r.IntN(2) == 0 {
							code, reason, seen, wake := "c", "why\x00", int64(r.IntN(3)), store.TimeOf(time.Now())
							c.Row.Code, c.Row.Reason, c.Row.Seen, c.Row.WakeAt = &code, &reason, &seen, &wake
						}
						if r.IntN(4) == 0 {
							paused, ask := r.IntN(2) == 0, r.IntN(2) == 0
							c.Row.Paused, c.Row.CancelAsked = &paused, &ask
						}
						c.Yield = c.Yield || r.IntN(4) == 0
						c.Release = r.IntN(2) == 0
						c.Expect.NoCancel = r.IntN(3) == 0
						if r.IntN(3) == 0 {
							inbox := int64(r.IntN(2))
							c.Expect.Inbox = &inbox
						}
					}
					switch r.IntN(24) {
					case 0:
						c.Expect.Epoch++
					case 1:
						c.Hold = []string{fmt.Sprint("key", r.IntN(3))}
					case 2:
						c.Send = []store.Message{{To: runs[r.IntN(n)].id, Kind: store.KindSignal, Name: "s", ID: fmt.Sprint(r.IntN(4)), At: 1, IfLive: true}}
					case 3:
						c.Send = []store.Message{{To: runs[r.IntN(n)].id, Kind: store.KindCancel, ID: "1", At: 1, IfLive: true}}
					case 4:
						c.RunID = "nobody"
					}
					if c.Yield {
						l.epoch++
					}
					batch, next, of = append(batch, c), append(next, l), append(of, i)
				}
				if len(batch) > 1 && r.IntN(8) == 0 {
					batch = append(batch, batch[0]) // a second of the same run
				}
				sent = append(sent, batch)
				for k, err := range send(batch) {
					if k < len(next) && err == nil && batch[k].RunID == runs[of[k]].id {
						runs[of[k]] = &next[k]
					}
				}
			}
			for _, l := range runs {
				want, wantLog := load(t, both[0], l.id)
				got, gotLog := load(t, both[1], l.id)
				for _, h := range []*store.History{want, got} {
					h.Run.UpdatedAt, h.Run.Last = 0, nil
				}
				require.Equal(t, want.Run, got.Run)
				require.Equal(t, len(wantLog), len(gotLog))
				for i := range wantLog {
					a, b := wantLog[i], gotLog[i]
					require.Equal(t, []any{a.Seq, a.Epoch, a.Type, a.Key, a.Sum}, []any{b.Seq, b.Epoch, b.Type, b.Key, b.Sum})
				}
				require.Equal(t, len(want.Inbox), len(got.Inbox))
			}
		})
	}
}
