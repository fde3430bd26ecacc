package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// link is one proxied connection. It understands as much of the protocol (3.0)
// as it takes to tell requests apart: every message but the very first has a
// type byte and a length.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	statements     map[string]string // SQL of prepared statements by name
	over           chan struct{}     // closed when the server says no more

	mu   sync.Mutex
	mute bool // replies are dropped
	cut  bool // the client's connection closes at the next ReadyForQuery
}

func (l *link) run() {
	var replies sync.WaitGroup
	replies.Go(l.replies)
	l.requests()
	replies.Wait()
}

// requests reads what the client sends and passes it on, request by request.
func (l *link) requests() {
	defer l.server.Close()
	in := bufio.NewReader(l.client)
	first, err := startup(in)
	if err != nil {
		return
	}
	if _, err := l.server.Write(first); err != nil {
		return
	}
	var request bytes.Buffer
	var r Request
	for {
		kind, msg, err := message(in)
		if err != nil {
			return
		}
		request.Write(msg)
		ends := l.note(kind, msg[5:], &r)
		if !ends {
			continue
		}
		if !l.forward(request.Bytes(), r) {
			return
		}
		request.Reset()
		r = Request{}
	}
}

// forward deals with one complete request and reports whether to go on.
func (l *link) forward(request []byte, r Request) bool {
	switch l.proxy.decide(r) {
	case CutBefore:
		_ = l.client.Close()
		return false
	case CutBlind:
		l.set(true, false)
		_, _ = l.server.Write(request)
		_ = l.client.Close()
		return false
	case CutLate:
		l.set(true, true)
		_ = l.client.Close()
		select {
		case <-l.proxy.keepRequest(l.over):
			_, _ = l.server.Write(request)
			<-l.over
		case <-l.over:
		}
		return false
	case CutReply:
		l.set(true, true)
	case Refuse:
		_, err := l.client.Write(refusal)
		return err == nil
	}
	_, err := l.server.Write(request)
	return err == nil
}

// refusal is an ErrorResponse (undefined_object), and ReadyForQuery.
var refusal = func() []byte {
	fields := "SERROR\x00VERROR\x00C42704\x00Munrecognized configuration parameter\x00\x00"
	msg := binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(fields)))
	return append(append(msg, fields...), 'Z', 0, 0, 0, 5, 'I')
}()

func (l *link) set(mute, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mute, l.cut = mute, cut
}

// note collects what a request does and reports whether it is complete.
func (l *link) note(kind byte, body []byte, r *Request) bool {
	switch kind {
	case 'Q':
		r.SQL = append(r.SQL, text(&body))
		r.Executes = true
		return true
	case 'P': // Parse: name, SQL
		name := text(&body)
		l.statements[name] = text(&body)
	case 'B': // Bind: portal, statement
		_ = text(&body)
		r.SQL = append(r.SQL, l.statements[text(&body)])
	case 'E':
		r.Executes = true
	case 'S', 'X', 'p': // Sync, Terminate, password
		return true
	}
	return false
}

// replies passes on what the server sends.
func (l *link) replies() {
	defer l.client.Close()
	defer close(l.over)
	in := bufio.NewReader(l.server)
	for {
		kind, msg, err := message(in)
		if err != nil {
			return
		}
		l.mu.Lock()
		mute, cut := l.mute, l.cut
		l.mu.Unlock()
		if cut && kind == 'Z' { // ReadyForQuery: the server has done it all
			return
		}
		if mute {
			continue
		}
		if _, err := l.client.Write(msg); err != nil {
			return
		}
	}
}

// startup reads the first message, which has no type.
func startup(in *bufio.Reader) ([]byte, error) {
	head, err := in.Peek(4)
	if err != nil {
		return nil, err
	}
	msg := make([]byte, binary.BigEndian.Uint32(head))
	_, err = io.ReadFull(in, msg)
	return msg, err
}

// message reads one message and returns its type and all its bytes.
func message(in *bufio.Reader) (byte, []byte, error) {
	head, err := in.Peek(5)
	if err != nil {
		return 0, nil, err
	}
	kind := head[0]
	msg := make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(in, msg)
	return kind, msg, err
}

// text cuts a zero-terminated string off the front of b.
func text(b *[]byte) string {
	s, rest, _ := bytes.Cut(*b, []byte{0})
	*b = rest
	return string(s)
}
