package postgres

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unacknowledged is how long data may stay without an answer from the peer's
// kernel. Keep-alive does not count while data are under way.
const unacknowledged = 30 * time.Second

func limitUnacknowledged(network, _ string, c syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	return c.Control(func(fd uintptr) {
		// Where a kernel refuses, its own limit of some minutes holds.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
}
