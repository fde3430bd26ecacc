package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The places where the engine calls code of the user's, in one table, and what
// must hold in each when that code panics, ends its goroutine, blocks until its
// context ends, or is nil: the process lives, the run comes to a defined end or is
// parked with an error that says where, and Close leaves nothing behind. A new
// place where user code is called belongs into this table.

// prank is what user code does in a place: nothing until it is armed.
type prank struct {
	armed atomic.Bool
	do    func(ctx context.Context)
	done  atomic.Int32
}

func (p *prank) play(ctx context.Context) {
	if p != nil && p.armed.Load() {
		p.done.Add(1)
		p.do(ctx)
	}
}

// present is the prank of the test under way, for methods that get no argument.
var present atomic.Pointer[prank]

func playNow() { present.Load().play(context.Background()) }

// userPlace is a row of the table.
type userPlace struct {
	name    string
	options func(o *durable.Options, p *prank)
	flow    func(ctx context.Context, p *prank) error
	// replay: the prank is played after a crash in step "hold".
	replay bool
	// arms: the workflow function arms the prank itself.
	arms bool
	// context: the code is given one, so it may block until that ends.
	context bool
	// unharmed: the run completes all the same.
	unharmed bool
	// parked: the run is parked with this code, and can be resumed.
	parked string
	// says is what the run's error names, for each prank.
	says []string
}

// What a value, an error or a hook of the user's may be made of.
type (
	oddOut   struct{ N int } // MarshalJSON
	oddIn    struct{ N int } // UnmarshalJSON
	oddErr   struct{ N int } // registered, UnmarshalJSON
	oddErr2  struct{ N int } // registered, MarshalJSON
	oddText  struct{ N int } // Error
	oddChain struct{ N int } // Unwrap
	oddAs    struct{ N int } // As and Is
	oddShown struct{ N int } // String, given to panic
	oddV1    struct{ N int }
	oddV2    struct{ N, M int }
)

func (v oddOut) MarshalJSON() ([]byte, error) {
	playNow()
	return fmt.Appendf(nil, `{"N":%d}`, v.N), nil
}

func (v *oddIn) UnmarshalJSON(b []byte) error {
	playNow()
	var j struct{ N int }
	err := json.Unmarshal(b, &j)
	v.N = j.N
	return err
}

func (e *oddErr) Error() string { return "odd" }
func (e *oddErr) UnmarshalJSON(b []byte) error {
	playNow()
	return nil
}
func (e *oddErr2) Error() string                { return "odd" }
func (e *oddErr2) MarshalJSON() ([]byte, error) { playNow(); return []byte(`{}`), nil }
func (e *oddText) Error() string                { playNow(); return "odd" }
func (e *oddChain) Error() string               { return "odd" }
func (e *oddChain) Unwrap() error               { playNow(); return nil }
func (e *oddAs) Error() string                  { return "odd" }
func (e *oddAs) As(any) bool                    { playNow(); return false }
func (e *oddAs) Is(error) bool                  { playNow(); return false }
func (v oddShown) String() string               { playNow(); return "odd" }

type oddCodec struct{ encode, decode bool }

func (c oddCodec) Name() string { return "odd" }
func (c oddCodec) Encode(v any) ([]byte, error) {
	if c.encode {
		playNow()
	}
	return json.Marshal(v)
}
func (c oddCodec) Decode(b []byte, v any) error {
	if c.decode {
		playNow()
	}
	return json.Unmarshal(b, v)
}

type oddKeys struct {
	durable.Keys
	current, key bool
}

func (k oddKeys) Current() string {
	if k.current {
		playNow()
	}
	return k.Keys.Current()
}
func (k oddKeys) Key(id string) ([]byte, error) {
	if k.key {
		playNow()
	}
	return k.Keys.Key(id)
}

type oddArchive struct{ p *prank }

func (a oddArchive) Store(ctx context.Context, _ string, _ []byte) error { a.p.play(ctx); return nil }

type oddHandler struct {
	slog.Handler
	p *prank
}

func (h oddHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h oddHandler) Handle(ctx context.Context, r slog.Record) error {
	h.p.play(ctx)
	return h.Handler.Handle(ctx, r)
}
func (h oddHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h oddHandler) WithGroup(string) slog.Handler      { return h }

func fails(err error) func(context.Context) error { return func(context.Context) error { return err } }

func yields[T any](v T) func(context.Context) (T, error) {
	return func(context.Context) (T, error) { return v, nil }
}

func plays(p *prank) func(context.Context) error {
	return func(ctx context.Context) error { p.play(ctx); return context.Cause(ctx) }
}

func count5(p *prank) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range 5 {
			if i == 3 {
				p.play(context.Background())
			}
			if !yield(i) {
				return
			}
		}
	}
}

var userPlaces = []userPlace{
	{name: "workflow function", context: true, flow: func(ctx context.Context, p *prank) error { p.play(ctx); return context.Cause(ctx) }},
	{name: "body of Step", context: true, says: []string{"step a"}, flow: func(ctx context.Context, p *prank) error { return durable.Do(ctx, "a", plays(p)) }},
	{name: "body of Retry", context: true, says: []string{"step a"}, flow: func(ctx context.Context, p *prank) error {
		_, err := durable.Retry(ctx, "a", durable.Policy{}, func(ctx context.Context) (int, error) { return 0, plays(p)(ctx) })
		return err
	}},
	{name: "body of Once", context: true, says: []string{"step a"}, flow: func(ctx context.Context, p *prank) error {
		_, err := durable.Once(ctx, "a", func(ctx context.Context) (int, error) { return 0, plays(p)(ctx) })
		return err
	}},
	{name: "check of Seek", says: []string{"step a"}, flow: func(ctx context.Context, p *prank) error {
		_, err := durable.Seek(ctx, "a", durable.Policy{MaxAttempts: 2}, yields(1), func(int) error { p.play(ctx); return nil })
		return err
	}},
	{name: "RetryIf", says: []string{"step a", "no luck", "RetryIf"}, flow: func(ctx context.Context, p *prank) error {
		_, err := durable.Retry(ctx, "a", durable.Policy{RetryIf: func(error) bool { p.play(ctx); return true }},
			func(context.Context) (int, error) { return 0, errors.New("no luck") })
		return err
	}},
	{name: "Reconcile", replay: true, context: true, says: []string{"step hold", "outcome is unknown"}, flow: func(ctx context.Context, p *prank) error {
		_, err := durable.Once(ctx, "hold", func(ctx context.Context) (int, error) { return 0, held(ctx) },
			durable.Reconcile(func(ctx context.Context) (int, bool, error) { p.play(ctx); return 0, false, context.Cause(ctx) }))
		return err
	}},
	{name: "Around", context: true, says: []string{"step a"}, options: func(o *durable.Options, p *prank) {
		o.Around = append(o.Around, func(ctx context.Context, _ durable.AttemptInfo, next func(context.Context) error) error {
			p.play(ctx)
			return next(ctx)
		})
	}, flow: func(ctx context.Context, _ *prank) error { return durable.Do(ctx, "a", fails(nil)) }},
	{name: "compensation", says: []string{"no stock", "compensation undo a"}, flow: func(ctx context.Context, p *prank) error {
		if err := durable.Compensate(ctx, "undo a", func(ctx context.Context) error { p.play(ctx); return nil }); err != nil {
			return err
		}
		return errors.New("no stock")
	}},
	{name: "function of Go", context: true, says: []string{}, flow: func(ctx context.Context, p *prank) error {
		_, err := durable.Go(ctx, "a", func(ctx context.Context) (int, error) { p.play(ctx); return 0, context.Cause(ctx) }).Wait(ctx)
		return err
	}},
	{name: "body in Go", context: true, says: []string{}, flow: func(ctx context.Context, p *prank) error {
		_, err := durable.Go(ctx, "a", func(ctx context.Context) (int, error) { return 0, durable.Do(ctx, "b", plays(p)) }).Wait(ctx)
		return err
	}},
	{name: "function of Group", context: true, flow: func(ctx context.Context, p *prank) error {
		g := durable.NewGroup(ctx)
		g.Go("a", plays(p))
		g.Go("b", fails(nil))
		return g.Wait()
	}},
	{name: "function of Map", context: true, says: []string{"map a: ", "the first is a["}, flow: func(ctx context.Context, p *prank) error {
		_, err := durable.Map(ctx, "a", []int{1, 2, 3}, durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) { return 0, plays(p)(ctx) })
		return err
	}},
	{name: "function of MapSeq", context: true, says: []string{"map a"}, flow: func(ctx context.Context, p *prank) error {
		_, err := durable.MapSeq(ctx, "a", count5(nil), durable.MapOptions{}, func(ctx context.Context, _ int) (int, error) { return 0, plays(p)(ctx) }, 0, func(a, b int) int { return a + b })
		return err
	}},
	{name: "fold of MapSeq", says: []string{"run r", "fold of MapSeq a"}, flow: foldingFlow},
	{name: "fold of MapSeq on replay", replay: true, says: []string{"run r", "fold of MapSeq a"}, flow: foldingFlow},
	{name: "source of MapSeq", says: []string{"run r", "source of MapSeq a"}, flow: sourceFlow},
	{name: "source of MapSeq on replay", replay: true, says: []string{"run r", "source of MapSeq a"}, flow: sourceFlow},
	{name: "MarshalJSON of a result", says: []string{"step a", "oddOut"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Step(ctx, "a", yields(oddOut{1}))
		return err
	}},
	{name: "UnmarshalJSON of a result", says: []string{"step a", "oddIn"}, flow: resultFlow},
	{name: "UnmarshalJSON of a result on replay", replay: true, parked: durable.CodeUndecodable, says: []string{"run r", "a holds", "oddIn"}, flow: resultFlow},
	{name: "UnmarshalJSON of an item's result on replay", replay: true, parked: durable.CodeUndecodable, says: []string{"run r", "a[0]", "oddIn"}, flow: func(ctx context.Context, _ *prank) error {
		if _, err := durable.Map(ctx, "a", []int{1, 2}, durable.MapOptions{}, func(ctx context.Context, n int) (oddIn, error) { return oddIn{n}, nil }); err != nil {
			return err
		}
		return durable.Do(ctx, "hold", held)
	}},
	{name: "UnmarshalJSON of a branch's result on replay", replay: true, parked: durable.CodeUndecodable, says: []string{"run r", "a holds", "oddIn"}, flow: func(ctx context.Context, _ *prank) error {
		if _, err := durable.Go(ctx, "a", yields(oddIn{1})).Wait(ctx); err != nil {
			return err
		}
		return durable.Do(ctx, "hold", held)
	}},
	{name: "UnmarshalJSON of saved progress", replay: true, parked: durable.CodeUndecodable, says: []string{"run r", "progress", "oddIn"}, flow: func(ctx context.Context, _ *prank) error {
		return durable.Do(ctx, "hold", func(ctx context.Context) error {
			if _, _, err := durable.Progress[oddIn](ctx); err != nil {
				return err
			}
			if err := durable.SaveProgress(ctx, oddIn{1}); err != nil {
				return err
			}
			return held(ctx)
		})
	}},
	{name: "MarshalJSON of an item", says: []string{"run r", "step a", "oddOut"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Map(ctx, "a", []oddOut{{1}, {2}}, durable.MapOptions{}, func(context.Context, oddOut) (int, error) { return 1, nil })
		return err
	}},
	{name: "MarshalJSON of an item on replay", replay: true, says: []string{"run r", "step a", "oddOut"}, flow: func(ctx context.Context, _ *prank) error {
		if _, err := durable.Map(ctx, "a", []oddOut{{1}, {2}}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, v oddOut) (int, error) {
			if v.N == 2 {
				return 1, durable.Do(ctx, "hold", held)
			}
			return 1, nil
		}); err != nil {
			return err
		}
		return nil
	}},
	{name: "MarshalJSON of WithInput", says: []string{"run r", "step a", "oddOut"}, flow: func(ctx context.Context, _ *prank) error {
		return durable.Do(ctx, "a", fails(nil), durable.WithInput(oddOut{1}))
	}},
	{name: "MarshalJSON of a published value", says: []string{"run r", "a", "oddOut"}, flow: func(ctx context.Context, _ *prank) error {
		return durable.Publish(ctx, "a", oddOut{1})
	}},
	{name: "MarshalJSON of a note", unharmed: true, flow: func(ctx context.Context, _ *prank) error {
		return durable.Do(ctx, "a", func(ctx context.Context) error { durable.Note(ctx, "n", oddOut{1}); return nil })
	}},
	{name: "UnmarshalJSON of a registered error, in a step", says: []string{"step a", "odd"}, flow: func(ctx context.Context, _ *prank) error {
		return durable.Do(ctx, "a", fails(&oddErr{1}))
	}},
	{name: "UnmarshalJSON of a registered error, in a branch", says: []string{"odd"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Go(ctx, "a", func(context.Context) (int, error) { return 0, &oddErr{1} }).Wait(ctx)
		return err
	}},
	{name: "UnmarshalJSON of a registered error, in an item", says: []string{"a[0]", "odd"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Map(ctx, "a", []int{1}, durable.MapOptions{}, func(context.Context, int) (int, error) { return 0, &oddErr{1} })
		return err
	}},
	{name: "UnmarshalJSON of a registered error, at the end", says: []string{"odd"}, flow: func(context.Context, *prank) error { return &oddErr{1} }},
	{name: "UnmarshalJSON of a registered error, on replay", replay: true, says: []string{"step a", "odd"}, flow: func(ctx context.Context, _ *prank) error {
		err := durable.Do(ctx, "a", fails(&oddErr{1}))
		if holdErr := durable.Do(ctx, "hold", held); holdErr != nil {
			return holdErr
		}
		return err
	}},
	{name: "MarshalJSON of a registered error, in a branch", says: []string{"odd"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Go(ctx, "a", func(context.Context) (int, error) { return 0, &oddErr2{1} }).Wait(ctx)
		return err
	}},
	{name: "MarshalJSON of a registered error, at the end", says: []string{"odd"}, flow: func(context.Context, *prank) error { return &oddErr2{1} }},
	{name: "Error, in a step", says: []string{"step a", "oddText"}, flow: func(ctx context.Context, _ *prank) error {
		return durable.Do(ctx, "a", fails(&oddText{1}))
	}},
	{name: "Error, in a branch", says: []string{"oddText"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Go(ctx, "a", func(context.Context) (int, error) { return 0, &oddText{1} }).Wait(ctx)
		return err
	}},
	{name: "Error, in an item", says: []string{"a[0]", "oddText"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Map(ctx, "a", []int{1}, durable.MapOptions{}, func(context.Context, int) (int, error) { return 0, &oddText{1} })
		return err
	}},
	{name: "Error, at the end", says: []string{"oddText"}, flow: func(context.Context, *prank) error { return &oddText{1} }},
	{name: "Error, in a compensation", says: []string{"no stock", "oddText"}, flow: func(ctx context.Context, _ *prank) error {
		if err := durable.Compensate(ctx, "undo a", fails(&oddText{1})); err != nil {
			return err
		}
		return errors.New("no stock")
	}},
	{name: "Unwrap, in a step", says: []string{"step a", "odd"}, flow: func(ctx context.Context, _ *prank) error {
		return durable.Do(ctx, "a", fails(&oddChain{1}))
	}},
	{name: "Unwrap, in an item", says: []string{"a[0]", "odd"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Map(ctx, "a", []int{1}, durable.MapOptions{}, func(context.Context, int) (int, error) { return 0, &oddChain{1} })
		return err
	}},
	{name: "Unwrap, at the end", says: []string{"odd"}, flow: func(context.Context, *prank) error { return &oddChain{1} }},
	{name: "As and Is, in a step", says: []string{"step a", "odd"}, flow: func(ctx context.Context, _ *prank) error {
		return durable.Do(ctx, "a", fails(&oddAs{1}))
	}},
	{name: "As and Is, in an item", says: []string{"a[0]", "odd"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Map(ctx, "a", []int{1}, durable.MapOptions{}, func(context.Context, int) (int, error) { return 0, &oddAs{1} })
		return err
	}},
	{name: "As and Is, at the end", says: []string{"odd"}, flow: func(context.Context, *prank) error { return &oddAs{1} }},
	{name: "String of a value given to panic", says: []string{"panic"}, flow: func(ctx context.Context, _ *prank) error {
		_, err := durable.Go(ctx, "a", func(context.Context) (int, error) { panic(oddShown{1}) }).Wait(ctx)
		return err
	}},
	{name: "Codec.Encode", arms: true, says: []string{"step a"}, options: func(o *durable.Options, _ *prank) { o.Codec = oddCodec{encode: true} }, flow: stepFlow},
	{name: "Codec.Decode", arms: true, says: []string{"step a"}, options: func(o *durable.Options, _ *prank) { o.Codec = oddCodec{decode: true} }, flow: stepFlow},
	{name: "Codec.Decode on replay", replay: true, parked: durable.CodeUndecodable, says: []string{"run r"}, options: func(o *durable.Options, _ *prank) { o.Codec = oddCodec{decode: true} }, flow: plainFlow},
	{name: "upcaster", replay: true, parked: durable.CodeUndecodable, says: []string{"run r", "a holds", "From(1) of odd"}, options: func(o *durable.Options, p *prank) {
		o.Types = []durable.TypeDef{durable.Type[oddV1]("odd", 1)}
		if p.armed.Load() {
			o.Types = []durable.TypeDef{durable.Type[oddV2]("odd", 2, durable.From(1, func(o oddV1) (oddV2, error) { playNow(); return oddV2{N: o.N}, nil }))}
		}
	}, flow: func(ctx context.Context, p *prank) error {
		var err error
		if p.armed.Load() {
			_, err = durable.Step(ctx, "a", yields(oddV2{1, 2}))
		} else {
			_, err = durable.Step(ctx, "a", yields(oddV1{1}))
		}
		if err != nil {
			return err
		}
		return durable.Do(ctx, "hold", held)
	}},
	{name: "Keys.Current", unharmed: true, options: func(o *durable.Options, _ *prank) {
		o.Encrypt = oddKeys{Keys: durable.StaticKeys("k", map[string][]byte{"k": make([]byte, 32)}), current: true}
	}, flow: plainFlow},
	{name: "Keys.Key on replay", replay: true, options: func(o *durable.Options, p *prank) {
		// The current key is another one by now; the one before cannot be had.
		id := "k"
		if p.armed.Load() {
			id = ""
		}
		o.Encrypt = oddKeys{Keys: durable.StaticKeys(id, map[string][]byte{"k": make([]byte, 32)}), key: true}
	}, parked: durable.CodeUndecodable, flow: plainFlow},
	{name: "archive", unharmed: true, context: true, options: func(o *durable.Options, p *prank) { o.Archive = oddArchive{p} }, flow: plainFlow},
	{name: "log handler", unharmed: true, options: func(o *durable.Options, p *prank) {
		o.Logger = slog.New(oddHandler{Handler: slog.DiscardHandler, p: p})
	}, flow: plainFlow},
}

// held is a body that holds the first process.
func held(ctx context.Context) error {
	if present.Load().armed.Load() {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func foldingFlow(ctx context.Context, p *prank) error {
	_, err := durable.MapSeq(ctx, "a", count5(nil), durable.MapOptions{Concurrency: 2}, func(_ context.Context, n int) (int, error) { return n, nil }, 0, func(sum, n int) int {
		if n == 2 {
			p.play(ctx)
		}
		return sum + n
	})
	if err != nil {
		return err
	}
	return durable.Do(ctx, "hold", heldOn(p))
}

func sourceFlow(ctx context.Context, p *prank) error {
	_, err := durable.MapSeq(ctx, "a", count5(p), durable.MapOptions{Concurrency: 2}, func(_ context.Context, n int) (int, error) { return n, nil }, 0, func(sum, n int) int { return sum + n })
	if err != nil {
		return err
	}
	return durable.Do(ctx, "hold", heldOn(p))
}

func resultFlow(ctx context.Context, p *prank) error {
	if _, err := durable.Step(ctx, "a", yields(oddIn{1})); err != nil {
		return err
	}
	return durable.Do(ctx, "hold", heldOn(p))
}

func plainFlow(ctx context.Context, _ *prank) error {
	if _, err := durable.Step(ctx, "a", yields(1)); err != nil {
		return err
	}
	return durable.Do(ctx, "hold", held)
}

// stepFlow arms the prank for a step.
func stepFlow(ctx context.Context, p *prank) error {
	p.armed.Store(true)
	_, err := durable.Step(ctx, "a", yields("x"))
	return err
}

func heldOn(*prank) func(context.Context) error { return held }

var pranks = map[string]func(ctx context.Context){
	"panic":  func(context.Context) { panic("bang") },
	"Goexit": func(context.Context) { runtime.Goexit() },
	"block":  func(ctx context.Context) { <-ctx.Done() },
}

func TestUserCodeNeverEndsTheProcessNorStrandsARun(t *testing.T) {
	for _, place := range userPlaces {
		for name, do := range pranks {
			if name == "block" && !place.context {
				continue
			}
			t.Run(place.name+"/"+name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) { place.check(t, w, name, do) })
			})
		}
	}
}

func (place *userPlace) check(t *testing.T, w *world, name string, do func(context.Context)) {
	p := &prank{do: do}
	present.Store(p)
	wf := durable.Define("wf", func(ctx context.Context, _ int) (int, error) { return 1, place.flow(ctx, p) })
	options := func() durable.Options {
		o := with(wf)
		o.Errors = []durable.ErrorKind{durable.ErrorType[*oddErr]("odd"), durable.ErrorType[*oddErr2]("odd2")}
		if place.options != nil {
			place.options(&o, p)
		}
		return o
	}
	w.boot(t, options())
	if place.replay {
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.crash()
		p.armed.Store(true)
		w.expire()
		w.boot(t, options())
	} else {
		p.armed.Store(!place.arms)
		start(t, w, wf, "r", 0)
	}
	pass(time.Minute)
	if name == "block" && !place.unharmed {
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
		w.eventually("r", store.Cancelled)
		return
	}
	defer func() {
		require.NotZero(t, p.done.Load(), "the prank was not played")
		p.armed.Store(false)
	}()
	h, err := wf.Handle(w.ctx(), "r")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(w.ctx(), time.Hour)
	defer cancel()
	_, err = h.Wait(ctx)
	row := w.row("r")
	switch {
	case place.parked != "":
		require.Equal(t, store.Interrupted, row.Status, "%v\n%s", err, w.log)
		require.Equal(t, place.parked, row.Code)
	case place.unharmed:
		require.NoError(t, err)
		return
	default:
		require.Equal(t, store.Failed, row.Status, "%v\n%s", err, w.log)
	}
	for _, part := range append(slices.Clone(place.says), "run r") {
		require.ErrorContains(t, err, part)
	}
	if name == "panic" && !strings.Contains(place.name, "registered error") && !strings.Contains(place.name, "Unwrap") && !strings.Contains(place.name, "As and Is") && place.name != "String of a value given to panic" {
		require.ErrorContains(t, err, "bang")
	}
}

// What can be nil is refused where it is given, or means what its doc says.
func TestNilUserCodeIsRefusedOrMeansNone(t *testing.T) {
	var noContext context.Context
	var (
		noBody  func(context.Context) (int, error)
		noDo    func(context.Context) error
		noItem  func(context.Context, int) (int, error)
		noError *oddText // an error that is not nil, and whose methods meet a nil pointer
	)
	o := durable.MapOptions{}
	add := func(a, b int) int { return a + b }
	one := func(_ context.Context, n int) (int, error) { return n, nil }
	for name, c := range map[string]struct {
		flow func(ctx context.Context) error
		ok   bool
		says string
	}{
		"Step": {flow: func(ctx context.Context) error { _, err := durable.Step(ctx, "a", noBody); return err }, says: "the function is nil"},
		"Do":   {flow: func(ctx context.Context) error { return durable.Do(ctx, "a", noDo) }, says: "the function is nil"},
		"Retry": {flow: func(ctx context.Context) error {
			_, err := durable.Retry(ctx, "a", durable.Policy{}, noBody)
			return err
		}, says: "the function is nil"},
		"Once": {flow: func(ctx context.Context) error { _, err := durable.Once(ctx, "a", noBody); return err }, says: "the function is nil"},
		"Seek": {flow: func(ctx context.Context) error {
			_, err := durable.Seek(ctx, "a", durable.Policy{}, noBody, func(int) error { return nil })
			return err
		}, says: "the function is nil"},
		"Seek's check": {flow: func(ctx context.Context) error {
			_, err := durable.Seek(ctx, "a", durable.Policy{}, yields(1), nil)
			return err
		}, says: "check is nil"},
		"Reconcile": {flow: func(ctx context.Context) error {
			_, err := durable.Once(ctx, "a", yields(1), durable.Reconcile[int](nil))
			return err
		}, ok: true},
		"Compensate": {flow: func(ctx context.Context) error { return durable.Compensate(ctx, "a", nil) }, says: "the function is nil"},
		"Go":         {flow: func(ctx context.Context) error { _, err := durable.Go(ctx, "a", noBody).Wait(ctx); return err }, says: "the function is nil"},
		"Group":      {flow: func(ctx context.Context) error { g := durable.NewGroup(ctx); g.Go("a", nil); return g.Wait() }, says: "the function is nil"},
		"Map":        {flow: func(ctx context.Context) error { _, err := durable.Map(ctx, "a", []int{1}, o, noItem); return err }, says: "the function is nil"},
		"MapSeq": {flow: func(ctx context.Context) error {
			_, err := durable.MapSeq(ctx, "a", count5(nil), o, noItem, 0, add)
			return err
		}, says: "a function is nil"},
		"MapSeq's fold": {flow: func(ctx context.Context) error {
			_, err := durable.MapSeq(ctx, "a", count5(nil), o, one, 0, nil)
			return err
		}, says: "a function is nil"},
		"MapSeq's source": {flow: func(ctx context.Context) error { _, err := durable.MapSeq(ctx, "a", nil, o, one, 0, add); return err }, says: "a function is nil"},
		"RetryIf": {flow: func(ctx context.Context) error {
			n := 0
			_, err := durable.Retry(ctx, "a", durable.Policy{}, func(context.Context) (int, error) {
				if n++; n < 3 {
					return 0, errors.New("again")
				}
				return n, nil
			})
			return err
		}, ok: true},
		"an error that is a nil pointer":           {flow: func(ctx context.Context) error { return durable.Do(ctx, "a", fails(noError)) }, says: "step a: odd"},
		"a registered error that is a nil pointer": {flow: func(ctx context.Context) error { return durable.Do(ctx, "a", fails((*oddErr)(nil))) }, says: "step a"},
		"a nil pointer as *StepError":              {flow: func(ctx context.Context) error { return durable.Do(ctx, "a", fails((*durable.StepError)(nil))) }, says: "StepError"},
		"panic(nil)": {flow: func(ctx context.Context) error {
			return durable.Do(ctx, "a", func(context.Context) error { panic(nil) })
		}, says: "panic"},
		"a nil context": {flow: func(context.Context) error { return durable.Do(noContext, "a", fails(nil)) }, says: "nil context"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				present.Store(&prank{do: func(context.Context) {}})
				wf := durable.Define("wf", func(ctx context.Context, _ int) (int, error) { return 1, c.flow(ctx) })
				opts := with(wf)
				opts.Errors = []durable.ErrorKind{durable.ErrorType[*oddErr]("odd")}
				w.open(t, opts)
				ctx, cancel := context.WithTimeout(w.ctx(), time.Hour)
				defer cancel()
				_, err := start(t, w, wf, "r", 0).Wait(ctx)
				if c.ok {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, c.says)
				require.Equal(t, store.Failed, w.row("r").Status)
			})
		})
	}
	ctx := context.Background()
	for name, o := range map[string]durable.Options{
		"workflow function": with(durable.Define[int, int]("wf", nil)),
		"definition":        with(nil),
		"Around":            {Around: []func(context.Context, durable.AttemptInfo, func(context.Context) error) error{nil}},
		"upcaster":          {Types: []durable.TypeDef{durable.Type[oddV2]("odd", 2, durable.From[oddV1, oddV2](1, nil))}},
		"codec's name":      {Codec: panicName{}},
		"archive's Off":     {Archive: panicOff{}},
		"sentinel":          {Errors: []durable.ErrorKind{durable.Sentinel("x", nil)}},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			_, err := durable.Open(ctx, w.data.Handle(), o)
			require.ErrorIs(t, err, durable.ErrInvalid, name)
		})
	}
}

type panicName struct{ oddCodec }

func (panicName) Name() string { panic("bang") }

type panicOff struct{ oddArchive }

func (panicOff) Off() bool { runtime.Goexit(); return true }

// The message of a nil pointer is the same everywhere, and the stack is in the history alone.
func TestALineAboutAPanicNamesItsPlace(t *testing.T) {
	var nowhere *struct{ n int }
	ofStep := func(ctx context.Context, _ int) (int, error) {
		return durable.Step(ctx, "s", func(context.Context) (int, error) { return nowhere.n, nil })
	}
	for name, c := range map[string]struct {
		flow func(context.Context, int) (int, error)
		omit bool
	}{
		"of a step":           {ofStep, false},
		"of the function":     {func(context.Context, int) (int, error) { return nowhere.n, nil }, false},
		"of a branch":         {func(ctx context.Context, n int) (int, error) { return durable.Go(ctx, "b", ofBranch).Wait(ctx) }, false},
		"without the message": {ofStep, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", c.flow)
				o := with(wf)
				o.OmitTexts = c.omit
				w.boot(t, o)
				_, err := wf.Run(w.ctx(), "r", 0)
				require.Error(t, err)
				pass(time.Minute)
				found := w.log.find("WARN durable: run failed")
				require.Len(t, found, 1)
				require.Regexp(t, `source=\S+/usercode_test.go:\d+`, found[0])
				require.NotEqual(t, c.omit, strings.Contains(found[0], " nil "))
			})
		})
	}
}

func ofBranch(context.Context) (int, error) {
	var m map[string]*int
	return *m["x"], nil
}
