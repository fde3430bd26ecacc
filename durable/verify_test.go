package durable_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// rot is damage to what a store reads.
type rot struct {
	run    string
	event  func(e *store.Event) (gone bool) // nil: none
	row    func(r *store.Run)
	branch func(b []store.Branch) []store.Branch
	inbox  func(m []store.Message) []store.Message
}

// rotten is a disk whose data was damaged: every read shows it.
type rotten struct {
	*disk
	rot rot
}

func (s *rotten) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	return store.LoadAll(ctx, struct{ store.Store }{s}, loads)
}

func (s *rotten) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	h, err := s.disk.Load(ctx, id, c)
	if err != nil || id != s.rot.run {
		return h, err
	}
	if s.rot.branch != nil {
		h.Branches = s.rot.branch(h.Branches)
	}
	if s.rot.inbox != nil {
		h.Inbox = s.rot.inbox(h.Inbox)
	}
	s.spoil(&h.Run)
	if s.rot.event != nil {
		// The lineage is judged by what is stored: read all, and choose anew.
		all, err := s.disk.Load(ctx, id, store.Cursor{All: true, After: c.After})
		if err != nil {
			return nil, err
		}
		n := h.Run.Branch
		if c.Branch != nil {
			n = *c.Branch
		}
		h.Events = s.events(all.Events, c, store.LineageOf(h.Branches, n))
	}
	return h, nil
}

func (s *rotten) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	rows, err := s.disk.Claim(ctx, c)
	for i := range rows {
		if rows[i].ID == s.rot.run && s.rot.row != nil {
			s.rot.row(&rows[i])
		}
	}
	return rows, err
}

func (s *rotten) List(ctx context.Context, f store.Filter) (store.Page, error) {
	p, err := s.disk.List(ctx, f)
	for i := range p.Runs {
		if p.Runs[i].ID == s.rot.run && s.rot.row != nil {
			s.rot.row(&p.Runs[i])
		}
	}
	return p, err
}

func (s *rotten) events(all iter.Seq2[store.Event, error], c store.Cursor, l store.Lineage) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for e, err := range all {
			if err == nil && s.rot.event(&e) || c.NoEvents || !c.All && !l.Has(&e) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *rotten) spoil(r *store.Run) {
	if r.Last != nil && s.rot.event != nil {
		last := *r.Last
		s.rot.event(&last)
		r.Last = &last
	}
	if s.rot.row != nil {
		s.rot.row(r)
	}
}

// rotting opens a process on damaged data.
func (w *world) rotting(t *testing.T, damage rot, o durable.Options) *rotten {
	t.Helper()
	w.open(t, durable.Options{Lease: o.Lease}) // for a disk
	s := &rotten{disk: &disk{Store: w.data.Handle()}, rot: damage}
	o.Grace, o.Logger = -1, slog.New(w.log)
	eng, err := durable.Open(context.Background(), s, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	w.eng, w.disk = eng, s.disk
	return s
}

// at damages the event with this number.
func at(seq int64, change func(e *store.Event)) func(e *store.Event) bool {
	return func(e *store.Event) bool {
		if e.Seq == seq {
			e.Data, e.Payload = slices.Clone(e.Data), slices.Clone(e.Payload)
			change(e)
		}
		return false
	}
}

// bitFlips are the classes of damage to one event.
func bitFlips() map[string]func(e *store.Event) {
	return map[string]func(e *store.Event){
		"payload header": func(e *store.Event) { flip(&e.Payload, 1) },
		"payload":        func(e *store.Event) { flip(&e.Payload, -1) },
		"data":           func(e *store.Event) { flip(&e.Data, 1) },
		"type":           func(e *store.Event) { e.Type = store.StepFailed },
		"unknown type":   func(e *store.Event) { e.Type = "step_bompleted" },
		"key":            func(e *store.Event) { e.Key += "x" },
		"attempt":        func(e *store.Event) { e.Attempt ^= 4 },
		"ordinal":        func(e *store.Event) { e.Ordinal ^= 1 },
		"at":             func(e *store.Event) { e.At ^= 1 << 20 },
		"took":           func(e *store.Event) { e.Took += time.Microsecond },
		"active":         func(e *store.Event) { e.Active += time.Hour },
		"steps":          func(e *store.Event) { e.Steps ^= 8 },
		"branch":         func(e *store.Event) { e.Branch ^= 2 },
		"sum":            func(e *store.Event) { e.Sum ^= 1 << 31 },
	}
}

func flip(b *[]byte, i int) {
	if len(*b) == 0 {
		*b = []byte{0}
		return
	}
	if i < 0 {
		i += len(*b)
	}
	(*b)[i] ^= 1
}

// fourSteps is a workflow that a crash in its last step interrupts.
func fourSteps(h *hold) *durable.Workflow[int, string] {
	return durable.Define("four", func(ctx context.Context, in int) (string, error) {
		out := ""
		for i := range 3 {
			v, err := durable.Step(ctx, "step", func(context.Context) (string, error) { return fmt.Sprint(i), nil })
			if err != nil {
				return "", err
			}
			out += v
		}
		return out, durable.Do(ctx, "last", h.body)
	})
}

// crashed leaves an interrupted run "r": 1 created, 2 started, 3 to 5 steps.
func crashed(t *testing.T, w *world, h *hold) *durable.Workflow[int, string] {
	wf := fourSteps(h)
	w.boot(t, with(wf))
	start(t, w, wf, "r", 1)
	synctest.Wait()
	require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed step", "step_completed step#2", "step_completed step#3"}, w.story("r"))
	w.crash()
	w.expire()
	return wf
}

func verify(t *testing.T, w *world, id string) operate.Verification {
	t.Helper()
	v, err := operate.On(w.eng).Verify(context.Background(), id)
	require.NoError(t, err)
	return v
}

func TestEveryKindOfDamageToAnEventIsFoundNeverBelievedAndRepaired(t *testing.T) {
	for name, damage := range bitFlips() {
		for seq := int64(1); seq <= 5; seq++ {
			t.Run(fmt.Sprintf("%s of %d", name, seq), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					h := &hold{}
					wf := crashed(t, w, h)
					w.rotting(t, rot{run: "r", event: at(seq, damage)}, with(wf))
					v := verify(t, w, "r")
					require.False(t, v.Sound())
					require.True(t, v.Corrupt(), "%v", v.Findings)
					require.Equal(t, seq, v.Findings[0].Seq, "%v", v.Findings)

					_, err := w.eng.Recover(context.Background())
					require.NoError(t, err)
					synctest.Wait()
					row := w.row("r")
					require.Equal(t, store.Interrupted, row.Status, "it is not believed: %s", w.log)
					require.Contains(t, []string{durable.CodeDamaged, durable.CodeUndecodable}, row.Code)
					require.Equal(t, 1, h.count())

					rep, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
					if seq <= 3 {
						var no *operate.UnrepairableError
						require.ErrorAs(t, err, &no)
						require.ErrorContains(t, err, "no stable event found")
						require.Equal(t, seq == 3 || seq == 2, no.Forceable)
						if !no.Forceable {
							return
						}
						rep, err = operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{Force: true})
					}
					require.NoError(t, err)
					require.Equal(t, max(seq-1, 1), rep.Cutoff)
					out, err := finish(t, w, wf, "r")
					require.NoError(t, err)
					require.Equal(t, "012", out)
					after := verify(t, w, "r")
					require.True(t, after.Sound(), "%v", after.Findings)
					require.NotEmpty(t, after.Findings, "what was set aside stays, and is told of")
					require.True(t, after.Findings[0].Behind)
					again, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
					require.NoError(t, err)
					require.Empty(t, again.Did)
				})
			})
		}
	}
}

func TestAMissingEventIsFoundAndRepaired(t *testing.T) {
	for seq := int64(2); seq <= 4; seq++ {
		inWorld(t, func(t *testing.T, w *world) {
			wf := crashed(t, w, &hold{})
			w.rotting(t, rot{run: "r", event: func(e *store.Event) bool { return e.Seq == seq }}, with(wf))
			v := verify(t, w, "r")
			require.True(t, v.Corrupt())
			require.Contains(t, v.Findings[0].Text, "missing")
			_, err := w.eng.Recover(context.Background())
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, durable.CodeDamaged, w.row("r").Code)
			_, err = operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{Force: true})
			require.NoError(t, err)
			out, err := finish(t, w, wf, "r")
			require.NoError(t, err)
			require.Equal(t, "012", out)
		})
	}
}

func TestASoundRunHasNoFindingsWhateverItDoes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		var defs []durable.Definition
		for _, wf := range shapes(j) {
			defs = append(defs, wf)
		}
		w.boot(t, with(defs...))
		for name, wf := range shapes(j) {
			_, _ = run(t, w, wf, "run "+name, 7)
			v := verify(t, w, "run "+name)
			require.Empty(t, v.Findings, name)
			require.True(t, v.Sound())
			require.Positive(t, v.Events)
			require.Positive(t, v.Payloads)
		}
		n := 0
		for v, err := range operate.On(w.eng).VerifyAll(context.Background(), store.Filter{Limit: 2}) {
			require.NoError(t, err)
			require.Empty(t, v.Findings, v.RunID)
			n++
		}
		require.Equal(t, len(defs), n)
	})
	inWorld(t, func(t *testing.T, w *world) {
		h := &hold{}
		wf := crashed(t, w, h)
		w.open(t, with(wf))
		require.Empty(t, verify(t, w, "r").Findings, "interrupted by a crash is no damage")
		_, err := w.eng.Recover(context.Background())
		require.NoError(t, err)
		_, err = finish(t, w, wf, "r")
		require.NoError(t, err)
		require.Empty(t, verify(t, w, "r").Findings)
		_, err = operate.On(w.eng).Verify(context.Background(), "nobody")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

func TestVerifyTellsIncompatibleFromCorrupt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := typed(3)
		o.Encrypt = keysOf("k1")
		wf := durable.Define("w", func(ctx context.Context, in int) (orderV3, error) {
			return durable.Step(ctx, "make", func(context.Context) (orderV3, error) { return orderV3{}, nil })
		})
		o.Workflows = []durable.Definition{wf}
		w.boot(t, o)
		_, err := run(t, w, wf, "r", 1)
		require.NoError(t, err)
		require.Empty(t, verify(t, w, "r").Findings)
		for name, other := range map[string]durable.Options{"no key": typed(3), "earlier type": {Types: typed(2).Types, Encrypt: keysOf("k1")}} {
			other.Workflows = []durable.Definition{durable.Define("w", func(ctx context.Context, in int) (int, error) { return 0, nil })}
			w.open(t, other)
			v := verify(t, w, "r")
			require.True(t, v.Incompatible(), "%s: %v", name, v.Findings)
			require.False(t, v.Corrupt(), "%s: %v", name, v.Findings)
			_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
			require.ErrorIs(t, err, operate.ErrUnrepairable)
			require.ErrorContains(t, err, "not damaged")
		}
	})
}

func TestARowThatContradictsItsEventsIsFoundAndRebuilt(t *testing.T) {
	for name, c := range map[string]struct {
		row  func(r *store.Run)
		says string
	}{
		"status":     {func(r *store.Run) { r.Status, r.Owner = store.Failed, "" }, "its status is failed"},
		"generation": {func(r *store.Run) { r.Generation = 3 }, "generation 3"},
		"attributes": {func(r *store.Run) { r.Attributes = map[string]string{"a": "b"} }, "its attributes are"},
		"deadline":   {func(r *store.Run) { r.DeadlineAt = 1 << 20 }, "its deadline is"},
		"seen":       {func(r *store.Run) { r.Seen = 12 }, "it has seen 12 messages"},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			wf := crashed(t, w, &hold{})
			before := w.row("r")
			s := w.rotting(t, rot{run: "r", row: func(r *store.Run) {
				if r.Last.Seq == before.Last.Seq {
					c.row(r)
				}
			}}, with(wf))
			v := verify(t, w, "r")
			require.True(t, v.Corrupt(), name)
			require.Equal(t, operate.PartRow, v.Findings[0].Part)
			require.Contains(t, v.Findings[0].Text, c.says)
			if name == "status" {
				return // the store would not take it: its own row is sound here
			}
			rep, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
			require.NoError(t, err, name)
			require.NotEmpty(t, rep.Did)
			require.Zero(t, rep.Cutoff, "nothing is set aside for it")
			s.rot.row = nil
			require.Empty(t, verify(t, w, "r").Findings, name)
			w.eng.Recover(context.Background())
			_, err = finish(t, w, wf, "r")
			require.NoError(t, err, name)
		})
	}
}

func TestRepairLeavesALiveRunAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := fourSteps(&hold{})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 1)
		synctest.Wait()
		w.rotting(t, rot{run: "r", event: at(4, bitFlips()["payload"])}, durable.Options{})
		_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
		require.ErrorIs(t, err, store.ErrOwned)
		require.Len(t, w.story("r"), 5)
		dry, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{DryRun: true})
		require.NoError(t, err)
		require.Equal(t, int64(3), dry.Cutoff)
		require.Equal(t, []string{"step#2", "step#3"}, dry.Again)
		require.Len(t, w.story("r"), 5, "a dry run changes nothing")
	})
}

func TestRepairAsksBeforeAnAnnouncedEffectBeginsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h, paid := &hold{}, 0
		wf := durable.Define("pay", func(ctx context.Context, in int) (int, error) {
			if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			n, err := durable.Once(ctx, "pay", func(context.Context) (int, error) { paid++; return paid, nil })
			if err != nil {
				return 0, err
			}
			return n, durable.Do(ctx, "last", h.body)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 1)
		synctest.Wait()
		w.crash()
		w.expire()
		w.rotting(t, rot{run: "r", event: at(5, bitFlips()["payload"])}, with(wf))
		_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
		var no *operate.UnrepairableError
		require.True(t, errors.As(err, &no), "%v", err)
		require.True(t, no.Forceable)
		require.ErrorContains(t, err, "pay had begun")
		rep, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{Force: true})
		require.NoError(t, err)
		require.Equal(t, []string{"pay"}, rep.Again)
	})
}

func TestHealthyRunsBesideACorruptOneGoOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &hold{}
		wf := fourSteps(h)
		w.boot(t, with(wf))
		start(t, w, wf, "r", 1)
		for i := range 49 {
			start(t, w, wf, fmt.Sprintf("well-%d", i), i)
		}
		synctest.Wait()
		w.crash()
		w.expire()
		w.rotting(t, rot{run: "r", event: at(3, bitFlips()["payload"])}, with(wf))
		_, err := w.eng.Recover(context.Background())
		require.NoError(t, err)
		page, err := w.eng.List(context.Background(), store.Filter{})
		require.NoError(t, err)
		require.Len(t, page.Runs, 50, "the corrupt one is listed with the others")
		for i := range 49 {
			out, err := finish(t, w, wf, fmt.Sprintf("well-%d", i))
			require.NoError(t, err)
			require.Equal(t, "012", out)
		}
		corrupt := 0
		for v, err := range operate.On(w.eng).VerifyAll(context.Background(), store.Filter{}) {
			require.NoError(t, err)
			if !v.Sound() {
				corrupt++
				require.Equal(t, "r", v.RunID)
			}
		}
		require.Equal(t, 1, corrupt)
	})
}

// finish waits for a run, a day of virtual time at most.
func finish[I, O any](t *testing.T, w *world, wf *durable.Workflow[I, O], id string) (O, error) {
	t.Helper()
	h, err := wf.Handle(w.ctx(), id)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(w.ctx(), 24*time.Hour)
	defer cancel()
	return h.Wait(ctx)
}

// checkVerified has every run of a store verified: whatever kills it went
// through, nothing is damaged.
func checkVerified(t require.TestingT, data store.Store) {
	eng, err := durable.Open(context.Background(), data, durable.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	for v, err := range operate.On(eng).VerifyAll(context.Background(), store.Filter{}) {
		require.NoError(t, err)
		for _, f := range v.Findings {
			// This engine has none of the keys and codecs.
			require.Equal(t, operate.FoundIncompatible, f.Kind, "%s: %s", v.RunID, f)
		}
	}
}
