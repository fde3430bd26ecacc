// Package proxy stands between a client and a PostgreSQL server and breaks the
// connection at chosen moments: before a request reaches the server, or after
// the server has carried it out and before the client learns it.
package proxy

import (
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// Action is what happens to a request.
type Action int

// What the proxy can do with a request.
const (
	Pass Action = iota
	// CutBefore closes the connection; the server never sees the request.
	CutBefore
	// CutReply lets the server carry the request out, waits until it has, and
	// closes the connection without a word to the client.
	CutReply
	// CutBlind sends the request on and closes the connection at once, so that
	// the server may still be at it when the client is back.
	CutBlind
	// CutLate closes the connection to the client and keeps the request. The server gets it when
	// the test calls Deliver.
	CutLate
	// Refuse answers a simple query as a server does that does not know a parameter; the
	// server never sees it.
	Refuse
)

// Request is what a client sends before it waits for the server: one simple
// query, or extended messages up to a Sync.
type Request struct {
	// SQL of the simple query, or of the prepared statements that are executed.
	SQL []string
	// Executes: it runs something, rather than only preparing or closing.
	Executes bool
}

// Policy decides about each request. It is called from many goroutines.
type Policy func(Request) Action

// Proxy is a listening proxy.
type Proxy struct {
	listener net.Listener
	target   string
	all      sync.WaitGroup

	mu     sync.Mutex
	policy Policy
	cuts   int
	conns  []net.Conn
	closed bool
	kept   []kept
}

// kept is a request that the server has yet to get.
type kept struct{ send, done chan struct{} }

// New starts a proxy in front of target, a host and port. It is closed when t
// ends.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := Listen(target)
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// Listen is New for a program that is no test; the caller closes the proxy.
func Listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target}
	p.all.Go(p.accept)
	return p, nil
}

// DSN returns dsn, which must have the form of a URL, led through the proxy.
func (p *Proxy) DSN(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

// Target returns the host and port of a DSN that has the form of a URL.
func Target(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return ""
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "5432")
	}
	return u.Host
}

// SetPolicy replaces the policy; nil passes everything.
func (p *Proxy) SetPolicy(f Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.policy = f
}

// Cuts returns how many connections were cut by the policy.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// CutAll closes all present connections; new ones are accepted.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// Deliver gives the server the requests that CutLate has kept, one after the other, and returns
// when it has carried them out.
func (p *Proxy) Deliver() {
	p.mu.Lock()
	list := p.kept
	p.kept = nil
	p.mu.Unlock()
	for _, k := range list {
		close(k.send)
		<-k.done
	}
}

// keepRequest registers a request for Deliver. done is closed when its connection has ended.
func (p *Proxy) keepRequest(done chan struct{}) (send chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := kept{send: make(chan struct{}), done: done}
	p.kept = append(p.kept, k)
	return k.send
}

func (p *Proxy) decide(r Request) Action {
	p.mu.Lock()
	policy := p.policy
	p.mu.Unlock()
	if policy == nil {
		return Pass
	}
	a := policy(r)
	if a != Pass && a != Refuse {
		p.mu.Lock()
		p.cuts++
		p.mu.Unlock()
	}
	return a
}

// Close cuts all connections and ends the proxy.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.CutAll()
	p.all.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(client) })
	}
}

// keep registers c, so that CutAll and close reach it.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return false
	}
	p.conns = append(p.conns, c)
	return true
}

func (p *Proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = slices.DeleteFunc(p.conns, func(o net.Conn) bool { return o == c })
}

func (p *Proxy) serve(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.forget(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	if !p.keep(server) {
		return
	}
	defer p.forget(server)
	l := &link{proxy: p, client: client, server: server, statements: map[string]string{}, over: make(chan struct{})}
	l.run()
}
