package stream

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
)

// A frame is one message of a stream, ready to be sent.
type frame struct {
	// id is what a returning client says it has seen; 0: the frame has none.
	id int64
	// body is the whole message.
	body []byte
}

// newFrame makes a message; v becomes its data. id may be 0.
func newFrame(event string, id int64, v any) frame {
	data, err := json.Marshal(v)
	if err != nil {
		// As with WriteJSON.
		panic(fmt.Errorf("dashboard: a message cannot be encoded: %w", err))
	}
	b := make([]byte, 0, len(data)+64)
	b = append(b, "event: "+event+"\n"...)
	if id != 0 {
		b = append(b, "id: "+strconv.FormatInt(id, 10)+"\n"...)
	}
	b = append(b, "data: "...)
	b = append(b, data...) // encoded JSON contains no line feed
	return frame{id: id, body: append(b, "\n\n"...)}
}

// A packet is what goes to all clients of a hub at once.
type packet struct {
	frames []frame
	body   []byte // all of them
	// Ids of the first and the last frame that have one; 0: none has.
	first, last int64
}

func newPacket(frames []frame) *packet {
	p := &packet{frames: frames}
	for _, f := range frames {
		if p.body = append(p.body, f.body...); f.id != 0 {
			if p.last = f.id; p.first == 0 {
				p.first = f.id
			}
		}
	}
	return p
}

// How much is kept for a slow client, in packets, and how long it may take to read a
// message.
const (
	maxBehind = 64
	maxWrite  = 10 * time.Second
)

// Streams are the open streams of a handler. They start no goroutine until one is
// opened, and none that outlives the last one.
type Streams struct {
	*web.Env
	read   *read.Reader
	limits Limits

	mu     sync.Mutex
	n      int
	client map[string]int
	runs   map[string]*runHub
	all    *listHub
}

// Limits bound the streams.
type Limits struct {
	// Max and PerClient are how many streams may be open at a time, in all and per
	// address.
	Max, PerClient int
	// Heartbeat is how often a silent stream shows that it is alive.
	Heartbeat time.Duration
}

// New makes Streams. It opens none.
func New(env *web.Env, reader *read.Reader, limits Limits) *Streams {
	return &Streams{Env: env, read: reader, limits: limits, client: map[string]int{}, runs: map[string]*runHub{}}
}

// Open is how many streams are open.
func (s *Streams) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// enter adds a stream to the count, unless there are too many. leave removes it.
func (s *Streams) enter(r *http.Request) (leave func(), err error) {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = r.RemoteAddr
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return nil, web.ErrCrossOrigin // such a page cannot read the stream, and would use up the limit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.n >= s.limits.Max:
		return nil, web.NewError(http.StatusServiceUnavailable, "too_many_streams", "too many streams are open", "try again later, or raise dashboard.Options.MaxStreams")
	case s.client[from] >= s.limits.PerClient:
		return nil, web.NewError(http.StatusTooManyRequests, "too_many_streams", "too many streams are open from your address", "close some, or raise dashboard.Options.MaxStreamsPerClient")
	}
	s.n++
	s.client[from]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.n--
		if s.client[from]--; s.client[from] == 0 {
			delete(s.client, from)
		}
	}, nil
}

// A sink writes a stream to one client.
type sink struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	last int64 // id of the last frame that had one
}

// headOnly answers a HEAD request, which would otherwise count against the limit
// forever.
func headOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Content-Type", "text/event-stream")
	return true
}

// begin writes the head of a stream. From then on errors are messages.
func begin(w http.ResponseWriter) *sink {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // otherwise nginx buffers messages
	w.WriteHeader(http.StatusOK)
	return &sink{w: w, ctl: http.NewResponseController(w)}
}

// send writes frames. An error means that the client is gone or too slow.
func (s *sink) send(frames ...frame) error {
	// The server's own limit is for a whole answer, and a stream has no end.
	_ = s.ctl.SetWriteDeadline(time.Now().Add(maxWrite))
	for _, f := range frames {
		if _, err := s.w.Write(f.body); err != nil {
			return err
		}
		if f.id != 0 {
			s.last = f.id
		}
	}
	return s.ctl.Flush()
}

// pass sends what a hub has published, except what the client has caught up with.
func (s *sink) pass(p *packet) error {
	if p.first == 0 || p.first > s.last {
		return s.send(frame{id: p.last, body: p.body})
	}
	var frames []frame
	for _, f := range p.frames {
		if f.id == 0 || f.id > s.last {
			frames = append(frames, f)
		}
	}
	return s.send(frames...)
}

// beat writes a comment, so that each side knows that the other is there.
func (s *sink) beat() error { return s.send(frame{body: []byte(": still here\n\n")}) }

// fail tells the client about an error and ends the stream.
func (s *sink) fail(h *Streams, err error) {
	_, p := h.Problem(err)
	_ = s.send(newFrame("problem", 0, p))
}

// lastSeen reads where a returning client wants to continue: the header that a browser
// sends on its own, or the query.
func lastSeen(r *http.Request) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		return web.QueryInt(r, "after")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, web.BadRequest("Last-Event-ID %q is no number", text)
	}
	return n, nil
}

// A subscriber is one client of a hub. The hub closes it when it has fallen too far
// behind: it then reads what it has missed from the store.
type subscriber struct {
	packets chan *packet
	behind  chan struct{} // closed when one did not fit
	once    sync.Once
	// from is the number of the last event before those that it gets.
	from int64
	// resting: the run had failed when it joined.
	resting bool
}

func newSubscriber() *subscriber {
	return &subscriber{packets: make(chan *packet, maxBehind), behind: make(chan struct{})}
}

// offer passes a packet on without blocking.
func (s *subscriber) offer(p *packet) {
	select {
	case s.packets <- p:
	default:
		s.once.Do(func() { close(s.behind) })
	}
}
