package dashboard

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheServerGivesUpOnWhoIsSlow(t *testing.T) {
	srv := newServer(context.Background(), http.NotFoundHandler())
	for name, limit := range map[string]time.Duration{
		"a request's head": srv.ReadHeaderTimeout, "a request": srv.ReadTimeout, "an answer": srv.WriteTimeout, "the next request": srv.IdleTimeout,
	} {
		require.Positive(t, limit, name)
		require.LessOrEqual(t, limit, 2*time.Minute, name)
	}
	require.Positive(t, srv.MaxHeaderBytes)

	srv.ReadHeaderTimeout = 50 * time.Millisecond // the same server, sooner
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: lo"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = bufio.NewReader(conn).ReadString('x')
	require.Error(t, err)
	ne, timeout := err.(net.Error)
	require.False(t, timeout && ne.Timeout(), "the server closed the connection, not the test")
	require.NoError(t, srv.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}
