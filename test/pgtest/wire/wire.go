// Package wire stands between two programs as the network does, and is cut as a network is:
// nothing arrives any more, and nobody is told. What was on its way arrives when it is mended.
package wire

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// Wire is a way to one address.
type Wire struct {
	listener net.Listener
	target   string
	all      sync.WaitGroup

	mu     sync.Mutex
	whole  chan struct{} // closed while nothing is cut
	closed bool
	conns  []net.Conn
}

// New returns a way to target, a host and port, which ends with t.
func New(t testing.TB, target string) *Wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("wire: %v", err)
	}
	w := &Wire{listener: l, target: target, whole: make(chan struct{})}
	close(w.whole)
	w.all.Go(w.accept)
	t.Cleanup(w.close)
	return w
}

// Port returns the port of the loopback interface where the way begins.
func (w *Wire) Port() int { return w.listener.Addr().(*net.TCPAddr).Port }

// String returns the host and port where the way begins.
func (w *Wire) String() string { return fmt.Sprint("127.0.0.1:", w.Port()) }

// Cut cuts the way, if it is whole.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isWhole() {
		w.whole = make(chan struct{})
	}
}

// Mend mends the way, if it is cut.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isWhole() {
		close(w.whole)
	}
}

func (w *Wire) isWhole() bool {
	select {
	case <-w.whole:
		return true
	default:
		return false
	}
}

// passes waits until the way is whole, and reports whether it is still there.
func (w *Wire) passes() bool {
	w.mu.Lock()
	whole := w.whole
	w.mu.Unlock()
	<-whole
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.closed
}

func (w *Wire) close() {
	w.mu.Lock()
	w.closed = true
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.mu.Unlock()
	_ = w.listener.Close()
	w.Mend()
	w.all.Wait()
}

func (w *Wire) accept() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.all.Go(func() { w.serve(from) })
	}
}

func (w *Wire) serve(from net.Conn) {
	defer from.Close()
	if !w.keep(from) || !w.passes() {
		return
	}
	to, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer to.Close()
	if !w.keep(to) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { w.copy(from, to) })
	w.copy(to, from)
	back.Wait()
}

// keep registers c, which close ends.
func (w *Wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.conns = append(w.conns, c)
	}
	return !w.closed
}

// copy passes on what arrives, and the end of it: that too only when the way is whole.
func (w *Wire) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !w.passes() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if err == nil {
			continue
		}
		if half, ok := to.(*net.TCPConn); ok && err == io.EOF {
			_ = half.CloseWrite()
			return
		}
		_ = to.Close()
		return
	}
}
