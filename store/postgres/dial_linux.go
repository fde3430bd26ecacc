package postgres

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unacknowledged is how long sent data may stay unacknowledged by the peer's
// kernel. Keep-alive does not apply while data is in flight.
const unacknowledged = 30 * time.Second

func limitUnacknowledged(network, _ string, c syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	return c.Control(func(fd uintptr) {
		// If a kernel refuses, its own limit of some minutes applies.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
}
