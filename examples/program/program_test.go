package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// The program of docs/guides/deploying.md, started twice as a user would.
func TestTheProgramRunsAndRunsAgain(t *testing.T) {
	for name, dsn := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "app.db") },
		"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) {
			dsn := dsn(t)
			for range 2 {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				address := l.Addr().String()
				require.NoError(t, l.Close())
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- run(ctx, dsn, address) }()
				transport := new(http.Transport)
				c, err := client.New("http://"+address, client.Options{HTTPClient: &http.Client{Transport: transport}})
				require.NoError(t, err)
				soon, done := context.WithTimeout(t.Context(), 20*time.Second)
				out, err := c.Wait(soon, "greet-ann")
				done()
				require.NoError(t, err)
				var n int
				require.NoError(t, out.Decode(&n))
				require.Equal(t, 1, n)
				list, err := c.Schedules(t.Context())
				require.NoError(t, err)
				require.Len(t, list, 1)
				transport.CloseIdleConnections()
				stop()
				require.NoError(t, <-ended)
			}
		})
	}
}
