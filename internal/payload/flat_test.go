package payload_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

type (
	plain struct {
		ID     string
		Amount int64
		Paid   bool
		Rate   float64
		Small  float32
		Count  uint8
	}
	tagged struct {
		ID    string  `json:"id"`
		Note  string  `json:"note,omitempty"`
		N     int     `json:",omitempty"`
		Ratio float64 `json:"ratio.x-y_z"`
		In    inner   `json:"in,omitempty"`
		Last  uint64
	}
	inner struct {
		Text text
		On   bool `json:",omitempty"`
	}
	text     string
	allEmpty struct {
		A int    `json:",omitempty"`
		B string `json:",omitempty"`
	}
	// What follows is left to encoding/json, in part or as a whole.
	quoted struct {
		N int `json:"n,string"`
	}
	dropped struct {
		A int
		B int `json:"-"`
	}
	twins struct {
		Name string `json:"name"`
		NAME string
	}
	odd struct {
		A int `json:"a<b"`
		Ä int
	}
	sparse struct {
		F float64 `json:",omitempty"`
		S []int
		P *int
	}
	own   int
	owner struct{ Own own }
)

func (own) MarshalText() ([]byte, error) { return []byte("its own"), nil }

func (o *own) UnmarshalText([]byte) error { *o = 7; return nil }

// encodesAlike compares what the engine records of a value, and shows of it, with what
// encoding/json makes of it.
func encodesAlike[T any](t require.TestingT, v T) {
	s, err := payload.New(payload.Options{Codec: payload.JSON{}, CompressAbove: -1, Limits: store.DefaultLimits()})
	require.NoError(t, err)
	var results payload.Results
	for range 3 { // the first one is the one that finds no room
		seen := v
		env, err := payload.EncodeAt(s, s.Limit(), &seen, &results)
		want, fault := json.Marshal(v)
		if fault != nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		typ := reflect.TypeFor[T]().String()
		require.Equal(t, string(envelope.Seal(envelope.Prefix("json", typ, 1), want)), string(env))
		var again T
		require.NoError(t, json.Unmarshal(want, &again))
		require.Equal(t, again, seen)
		if f, ok := any(again).(float64); ok {
			require.Equal(t, math.Signbit(f), math.Signbit(any(seen).(float64)))
		}
		if n := len(want); typ != "int" { // every limit has room for an int
			_, err = payload.EncodeAt(s, n-1, &v, &results)
			require.ErrorIs(t, err, store.ErrTooLarge)
		}
	}
}

// anyText draws texts of all kinds: what HTML and JavaScript read otherwise, control
// characters, and bytes that are no UTF-8.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }),
		rapid.StringOfN(rapid.RuneFrom([]rune("<>&\"\\\b\f\n\r\t\x00\x1f\x7f\u2028\u2029\ufffd/ä€😀")), 0, 20, -1),
	)
}

func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
		0, math.Copysign(0, -1), 1e-6, 9.99e-7, 1e-7, 1e-10, 1e20, 1e21, -1e21, 1e22, 1e100, math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1),
	}))
}

func TestAValueIsRecordedAsEncodingJSONWritesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		str, f := anyText().Draw(t, "text"), anyFloat().Draw(t, "float")
		n, u, on := rapid.Int64().Draw(t, "int"), rapid.Uint64().Draw(t, "uint"), rapid.Bool().Draw(t, "bool")
		if rapid.Bool().Draw(t, "empty") {
			str, n, on = "", 0, false
		}
		in := inner{Text: text(str), On: on}
		encodesAlike(t, str)
		encodesAlike(t, text(str))
		encodesAlike(t, f)
		encodesAlike(t, float32(f))
		encodesAlike(t, n)
		encodesAlike(t, int8(n))
		encodesAlike(t, int(n))
		encodesAlike(t, u)
		encodesAlike(t, on)
		encodesAlike(t, in)
		encodesAlike(t, plain{ID: str, Amount: n, Paid: on, Rate: f, Small: float32(f), Count: uint8(u)})
		encodesAlike(t, tagged{ID: str, Note: str, N: int(n), Ratio: f, In: in, Last: u})
		encodesAlike(t, allEmpty{A: int(n), B: str})
		encodesAlike(t, quoted{N: int(n)})
		encodesAlike(t, dropped{A: int(n), B: 1})
		encodesAlike(t, twins{Name: str, NAME: "another"})
		encodesAlike(t, odd{A: int(n), Ä: 3})
		encodesAlike(t, sparse{F: f, S: []int{int(n)}})
		encodesAlike(t, owner{Own: own(n)})
		encodesAlike(t, [2]string{str, ""})
		encodesAlike(t, json.Number("12"))
	})
}

// An envelope that was made stays as it is while others are made beside it.
func TestAnEnvelopeIsNotOverwrittenByTheNext(t *testing.T) {
	s, err := payload.New(payload.Options{Codec: payload.JSON{}, CompressAbove: -1, Limits: store.DefaultLimits()})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		var results payload.Results
		var envs [][]byte
		var want []string
		for i := range rapid.IntRange(1, 200).Draw(t, "values") {
			var env []byte
			var err error
			if text := rapid.StringN(0, -1, 2000).Draw(t, "text"); i%3 == 0 {
				env, err = payload.EncodeAt(s, s.Limit(), &i, &results)
			} else {
				env, err = payload.EncodeAt(s, s.Limit(), &text, &results)
			}
			require.NoError(t, err)
			want = append(want, string(env))
			envs = append(envs, env)
			_ = append(env, "what a caller appends is not another's"...)
			switch rapid.IntRange(0, 3).Draw(t, "return") {
			case 0: // nobody keeps it
				results.Space.Return(env)
				envs, want = envs[:len(envs)-1], want[:len(want)-1]
			case 1: // only the last one can be returned
				if len(envs) > 1 {
					results.Space.Return(envs[len(envs)-2])
				}
			}
		}
		for i := range envs {
			require.Equal(t, want[i], string(envs[i]))
		}
	})
}
