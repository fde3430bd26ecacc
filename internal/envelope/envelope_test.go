package envelope_test

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/envelope"
)

func TestASealedPayloadOpensAgain(t *testing.T) {
	for _, typ := range []string{"", "-", "main.Receipt", "struct { A int }", "a@b%20c\n", "pair[int,map[string]bool]"} {
		for _, payload := range [][]byte{nil, []byte("{}"), []byte("line\nline"), {0, 0xff}} {
			got, err := envelope.Open(envelope.Seal(envelope.Prefix("json", typ, 3), payload))
			require.NoError(t, err, "type %q", typ)
			require.Equal(t, typ, got.Type)
			require.Equal(t, 3, got.TypeVersion)
			require.Equal(t, "json", got.Codec)
			require.True(t, bytes.Equal(payload, got.Payload))
		}
	}
}

func TestTheHeaderIsReadableByAPerson(t *testing.T) {
	require.Equal(t, "hf1 json main.Receipt@1 - - dbea4e35\n{\"tracking\":\"H-7\"}",
		string(envelope.Seal(envelope.Prefix("json", "main.Receipt", 1), []byte(`{"tracking":"H-7"}`))))
}

func TestCompressionAndKeyStandInTheHeader(t *testing.T) {
	want := envelope.Envelope{Codec: "json", Type: "order", TypeVersion: 3, Compression: "zstd", KeyID: "a key@home", Payload: []byte{0, '\n', 0xff}}
	b := envelope.Seal(want.Header(), want.Payload)
	require.Equal(t, "hf1 json order@3 zstd a%20key%40home ", string(b[:len(want.Header())]))
	require.False(t, envelope.IsPlain(b))
	got, err := envelope.Open(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, c := range []envelope.Envelope{{Compression: "zstd"}, {KeyID: "k"}, {Type: "x - - "}} {
		require.Equal(t, c.Compression == "" && c.KeyID == "", envelope.IsPlain(envelope.Seal(c.Header(), nil)), "%+v", c)
	}
	for _, b := range []string{"", "\n", " - - \n", "hf1 json int@1 - - 0000000"} {
		require.False(t, envelope.IsPlain([]byte(b)), "%q", b)
	}
}

func TestAWholeNumberIsSealedLikeItsDigits(t *testing.T) {
	prefix := envelope.Prefix("json", "int", 1)
	for _, n := range []int64{0, 7, -1, 1<<63 - 1, -1 << 63} {
		want := envelope.Seal(prefix, strconv.AppendInt(nil, n, 10))
		start := envelope.StartOf(prefix)
		require.Equal(t, string(want), string(start.AppendInt(nil, n)))
		payload, ok := start.Open(want)
		require.True(t, ok)
		require.Equal(t, strconv.FormatInt(n, 10), string(payload))
		want[len(want)-1] ^= 1
		_, ok = start.Open(want)
		require.False(t, ok)
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	sound := envelope.Seal(envelope.Prefix("json", "int", 1), []byte("12345"))
	for i := range sound {
		for bit := range 8 {
			b := bytes.Clone(sound)
			b[i] ^= 1 << bit
			_, err := envelope.Open(b)
			var future *envelope.FutureError
			require.True(t, errors.Is(err, envelope.ErrDamaged) || errors.As(err, &future), "byte %d bit %d: %v", i, bit, err)
		}
	}
}

func TestAFormatFromTheFutureIsRefusedByBothNumbers(t *testing.T) {
	_, err := envelope.Open([]byte("hf7 whatever may stand here\n{}"))
	var future *envelope.FutureError
	require.ErrorAs(t, err, &future)
	require.Equal(t, 7, future.Have)
	require.Equal(t, envelope.Version, future.Know)
	require.ErrorContains(t, err, "format 7 is newer than format 1")
}

func TestTheMemoryOfAnEnvelopeThatNobodyKeepsIsUsedAgain(t *testing.T) {
	var space envelope.Space
	start := envelope.StartOf(envelope.Prefix("json", "int", 1))
	made := func(n int64) []byte {
		return space.Took(start.AppendInt(space.Take(start.Len()+envelope.IntRoom), n))
	}
	for n := range int64(20) {
		kept, returned := made(n), made(n)
		space.Return(returned)
		next := made(n + 1)
		require.Same(t, &returned[0], &next[0])
		space.Return(kept) // it is not the last one
		space.Return(nil)
		after := made(n + 2)
		for i, b := range [][]byte{kept, next, after} {
			payload, ok := start.Open(b)
			require.True(t, ok)
			require.Equal(t, strconv.FormatInt(n+int64(i), 10), string(payload))
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("hf1 json int@1 - - 00000000\n"))
	f.Add(envelope.Seal(envelope.Prefix("json", "main.T", 2), []byte(`{"a":1}`)))
	f.Add([]byte("hf99999999999999999999 \n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := envelope.Open(b); err == nil && !bytes.HasSuffix(b, e.Payload) {
			t.Fatal("the payload is not what stands behind the header")
		}
	})
}
