package dashboard_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
)

// sendAs sends a request as it stands.
func (s *site) sendAs(request string) int {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(s.t, err)
	defer c.Close()
	_, err = io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n"))
	require.NoError(s.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

// A proxy on this machine makes the whole world come from loopback. What it passes
// on is no request of this machine, also where it adds no header that says so.
func TestWhatAProxyPassesOnIsNotFromThisMachine(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{Hosts: []string{"runs.example.com"}})
	s.failed("r")
	host := strings.TrimPrefix(s.url, "http://")
	post := func(proto, host, headers string) string {
		return fmt.Sprintf("POST /api/runs/r/resume %s\nHost: %s\nContent-Type: application/json\nContent-Length: 2\n%s\n{}", proto, host, headers)
	}
	for what, request := range map[string]string{
		"nginx as it comes":                    post("HTTP/1.0", host, "Connection: close\n"),
		"nginx with the Host of the client":    post("HTTP/1.0", "runs.example.com", "Connection: close\n"),
		"HTTP/1.1 with the Host of the client": post("HTTP/1.1", "runs.example.com", ""),
		"a page of the name outside":           post("HTTP/1.1", host, "Origin: https://runs.example.com\nSec-Fetch-Site: same-origin\n"),
		"Envoy":                                post("HTTP/1.1", host, "X-Envoy-Expected-Rq-Timeout-Ms: 15000\n"),
		"a scheme alone":                       post("HTTP/1.1", host, "X-Forwarded-Proto: https\n"),
		"reading through nginx":                fmt.Sprintf("GET /api/runs HTTP/1.0\nHost: %s\n\n", host),
	} {
		require.Equal(t, http.StatusForbidden, s.sendAs(request), what)
	}
	require.Equal(t, "failed", s.until("r", "failed").Status)
	require.Equal(t, http.StatusOK, s.sendAs(post("HTTP/1.1", host, "")), "a program on this machine")
}
