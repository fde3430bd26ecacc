package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// ErrExposed: a server was to listen beyond loopback without Options.Authorize.
var ErrExposed = errors.New("dashboard: refusing to listen beyond loopback without Options.Authorize: whoever reaches the port could resume, cancel and edit runs. Listen on 127.0.0.1, or say who may do what")

// Listen opens the address that ListenAndServe serves, so that a program can learn the
// port before it serves. Errors: ErrExposed; those of net.Listen.
func Listen(ctx context.Context, addr string, o Options) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dashboard: listening on %s: %w", addr, err)
	}
	if err := exposed(l, o); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// exposed returns an error if any client that reaches l could act. The opened address
// decides, not what a name might resolve to.
func exposed(l net.Listener, o Options) error {
	if o.Authorize != nil {
		return nil
	}
	switch a := l.Addr().(type) {
	case *net.TCPAddr:
		if a.IP.IsLoopback() {
			return nil
		}
	case *net.UnixAddr:
		return nil // file permissions decide who may connect
	}
	return fmt.Errorf("%w (address %s)", ErrExposed, l.Addr())
}

// ListenAndServe serves the handler of eng on a TCP address ("127.0.0.1:8233"),
// with timeouts, until ctx ends; then it ends the streams, gives requests in progress some
// seconds to finish, and returns nil. For TLS put a proxy in front, or build your own
// server around Handler.
//
// Errors: ErrExposed when the address is not one of loopback and o.Authorize is
// nil; those of the network.
func ListenAndServe(ctx context.Context, addr string, eng *durable.Engine, o Options) error {
	l, err := Listen(ctx, addr, o)
	if err != nil {
		return err
	}
	return Serve(ctx, l, eng, o)
}

// Serve is ListenAndServe on a listener, which it closes.
func Serve(ctx context.Context, l net.Listener, eng *durable.Engine, o Options) error {
	if err := exposed(l, o); err != nil {
		return errors.Join(err, l.Close())
	}
	streams, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	srv := newServer(streams, Handler(eng, o))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("dashboard: serving %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	// Requests in progress may finish; streams never would.
	soon, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	grace := time.AfterFunc(time.Second, end)
	defer grace.Stop()
	err := srv.Shutdown(soon)
	<-served
	if err != nil {
		return fmt.Errorf("dashboard: some requests did not end in time: %w", errors.Join(err, srv.Close()))
	}
	return nil
}

// newServer makes a server that gives up on clients that are slow to send a request, to
// read an answer, or to send the next request. base ends the streams.
func newServer(base context.Context, h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      2 * time.Minute, // a stream sets its own, again and again
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
}
