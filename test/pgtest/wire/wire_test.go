package wire_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest/wire"
)

func TestWhatIsSentWhileTheWayIsCutArrivesWhenItIsMended(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	w := wire.New(t, l.Addr().String())
	c, err := net.Dial("tcp", w.String())
	require.NoError(t, err)
	defer c.Close()
	answer := func(within time.Duration) error {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(within)))
		_, err := io.ReadFull(c, make([]byte, 2))
		return err
	}
	_, err = c.Write([]byte("ab"))
	require.NoError(t, err)
	require.NoError(t, answer(time.Minute))
	w.Cut()
	_, err = c.Write([]byte("cd"))
	require.NoError(t, err, "nobody is told")
	require.Error(t, answer(50*time.Millisecond))
	w.Mend()
	require.NoError(t, answer(time.Minute))
}
