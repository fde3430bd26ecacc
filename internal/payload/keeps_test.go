package payload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// raw records bytes as they are, and gives out what it is given.
type raw struct{}

func (raw) Name() string                    { return "raw" }
func (raw) Encode(v any) ([]byte, error)    { return v.([]byte), nil }
func (raw) Decode(data []byte, v any) error { *v.(*[]byte) = data; return nil }

func TestAValueThatIsChangedAfterItWasReadLeavesTheRecordAsItIs(t *testing.T) {
	s, err := payload.New(payload.Options{Codec: raw{}, CompressAbove: -1, Limits: store.DefaultLimits()})
	require.NoError(t, err)
	record, err := s.EncodeAny(s.Limit(), []byte("paid"))
	require.NoError(t, err)
	for range 2 {
		var v []byte
		_, err := s.Decode(payload.Place{Run: "r"}, record, &v)
		require.NoError(t, err)
		require.Equal(t, "paid", string(v))
		clear(v)
	}
}
