package durable_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// cursor keeps its state from encoding/json.
type cursor struct{ at int }

// partlyKept embeds one and has state of its own that is kept.
type partlyKept struct {
	cursor
	N int
}

// inner is not exported, and its field is kept by embedding.
type inner struct{ N int }

type outer struct{ inner }

// token has an encoding of its own.
type token struct{ text string }

func (t token) MarshalText() ([]byte, error)     { return []byte(t.text), nil }
func (t *token) UnmarshalText(text []byte) error { t.text = string(text); return nil }

func resultOf[T any](v T) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, err := durable.Step(ctx, "make", func(context.Context) (T, error) { return v, nil })
		return err
	}
}

func TestAStructThatWouldLoseItsStateIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		call func(ctx context.Context) error
		says string
	}{
		"itself":               {resultOf(cursor{1}), "durable_test.cursor has no exported fields"},
		"a pointer":            {resultOf(&cursor{1}), "durable_test.cursor has no exported fields"},
		"in a list":            {resultOf([]cursor{{1}}), "durable_test.cursor has no exported fields"},
		"in a map":             {resultOf(map[string]*cursor{"a": {1}}), "durable_test.cursor has no exported fields"},
		"encoded by a pointer": {resultOf(*big.NewInt(7)), "use *big.Int"},
		"in an interface":      {resultOf[any](cursor{1}), "durable_test.cursor has no exported fields"},
		"behind an interface":  {resultOf[any](&cursor{1}), "durable_test.cursor has no exported fields"},
		"progress":             {func(ctx context.Context) error { return durable.Publish(ctx, "make", cursor{1}) }, "durable_test.cursor has no exported fields"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, c.call(ctx) })
				w.boot(t, with(wf))
				_, err := run(t, w, wf, "r", 0)
				var enc *durable.EncodeError
				require.ErrorAs(t, err, &enc)
				require.ErrorContains(t, err, c.says)
			})
		})
	}
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, cursor) (int, error) { return 0, nil })
		w.boot(t, with(wf))
		_, err := wf.Start(w.ctx(), "r", cursor{1})
		var enc *durable.EncodeError
		require.ErrorAs(t, err, &enc, "as an input")
		_, err = w.eng.Get(w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

func TestAStructWhoseStateIsKeptIsAccepted(t *testing.T) {
	check := func(name string, call func(ctx context.Context) error) {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, call(ctx) })
				w.boot(t, with(wf))
				_, err := run(t, w, wf, "r", 0)
				require.NoError(t, err)
			})
		})
	}
	check("nothing to keep", resultOf(struct{}{}))
	check("a pointer to nothing", resultOf(&struct{}{}))
	check("some is kept", resultOf(partlyKept{cursor{1}, 2}))
	check("embedded", resultOf(outer{inner{1}}))
	check("a time", resultOf(time.Now()))
	check("its own encoding", resultOf(token{"x"}))
	check("its own encoding by a pointer", resultOf(big.NewInt(7)))
	check("in a list, by a pointer", resultOf([]big.Int{*big.NewInt(7)}))
	type list []list
	check("a type that holds itself", resultOf(list{}))
}

// boxed is kept by gob alone.
type boxed struct{ n int }

func (b boxed) GobEncode() ([]byte, error)   { return []byte{byte(b.n)}, nil }
func (b *boxed) GobDecode(data []byte) error { b.n = int(data[0]); return nil }

type gobCodec struct{}

func (gobCodec) Name() string { return "gob" }
func (gobCodec) Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}
func (gobCodec) Decode(data []byte, v any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}

func TestAnotherCodecDecidesWhatItKeeps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			b, err := durable.Step(ctx, "make", func(context.Context) (boxed, error) { return boxed{7}, nil })
			return b.n, err
		})
		o := with(wf)
		o.Codec = gobCodec{}
		w.boot(t, o)
		out, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}
