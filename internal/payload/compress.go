package payload

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-dev/holdfast/store"
)

// zstdName names the compression in the header of a payload.
const zstdName = "zstd"

// compressor compresses and decompresses payloads. Its parts are created on first use,
// and hold no goroutine.
type compressor struct {
	above   int // bytes; negative: never
	encoder func() (*zstd.Encoder, error)
	decoder func() (*zstd.Decoder, error)
}

// newCompressor takes Options.CompressAbove and the limit of the store for a payload.
func newCompressor(above, limit int) *compressor {
	// What was written under a higher limit than today's stays readable. Nothing larger
	// was ever written, whatever a damaged or malicious header says.
	most := max(limit, store.DefaultLimits().Payload)
	return &compressor{
		above: above,
		encoder: sync.OnceValues(func() (*zstd.Encoder, error) {
			// The envelope already has a checksum.
			return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		}),
		decoder: sync.OnceValues(func() (*zstd.Decoder, error) {
			return zstd.NewReader(nil, zstd.WithDecoderMaxMemory(uint64(most)), zstd.WithDecoderLowmem(true))
		}),
	}
}

// compress returns data compressed, if it is large enough for that and becomes
// smaller by at least an eighth.
func (c *compressor) compress(data []byte) (small []byte, ok bool) {
	if c.above < 0 || len(data) <= c.above {
		return nil, false
	}
	enc, err := c.encoder()
	if err != nil {
		return nil, false
	}
	small = enc.EncodeAll(data, make([]byte, 0, len(data)/4))
	return small, len(small) <= len(data)-len(data)/8
}

// errBadCompression: the compressed data is damaged.
var errBadCompression = errors.New("it cannot be decompressed")

func (c *compressor) decompress(name string, data []byte) ([]byte, error) {
	if name != zstdName {
		return nil, fmt.Errorf("it is compressed with %q, which this program does not know: use a newer one", name)
	}
	dec, err := c.decoder()
	if err != nil {
		return nil, err
	}
	plain, err := dec.DecodeAll(data, nil)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, fmt.Errorf("it takes more room decompressed than any payload may: %w", store.ErrTooLarge)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadCompression, err)
	}
	return plain, nil
}
