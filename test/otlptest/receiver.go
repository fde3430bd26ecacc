// Package otlptest receives what OpenTelemetry exporters send over OTLP/HTTP,
// as a collector does, and keeps it: spans and metrics, decoded from the
// protobuf of the collector. It is for tests, demonstrations and
// measurements, which compare what arrived with what happened, and print it.
//
//	r, err := otlptest.Listen("127.0.0.1:0")
//	defer r.Close()
//	os.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL())
//	// ... a program exports ...
//	for _, root := range otlptest.Trees(r.Spans()) {
//		root.Print(os.Stdout)
//	}
package otlptest

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxBody bounds one export, uncompressed.
const maxBody = 64 << 20

// Receiver is an OTLP/HTTP endpoint that keeps what it is sent. All methods may
// be called concurrently.
type Receiver struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}

	mu      sync.Mutex
	spans   []Span
	points  []Point
	bodies  [][]byte
	changed chan struct{} // closed and replaced when something arrives
}

// Listen begins to receive on addr, "127.0.0.1:0" for a free port.
func Listen(addr string) (*Receiver, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("otlptest: listening on %s: %w", addr, err)
	}
	r := &Receiver{listener: l, served: make(chan struct{}), changed: make(chan struct{})}
	r.server = &http.Server{Handler: r.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(r.served)
		_ = r.server.Serve(l) // it says that it was closed
	}()
	return r, nil
}

// URL is the endpoint: exporters append /v1/traces or /v1/metrics.
func (r *Receiver) URL() string { return "http://" + r.listener.Addr().String() }

// Close ends the endpoint, connections included. What was received stays.
func (r *Receiver) Close() error {
	err := r.server.Close()
	<-r.served
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (r *Receiver) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, q *http.Request) {
		// The request of the collector and the data it stores are one message
		// on the wire.
		var data trace.TracesData
		r.take(w, q, &data, func() { r.spans = append(r.spans, spansOf(&data)...) })
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, q *http.Request) {
		var data metrics.MetricsData
		r.take(w, q, &data, func() { r.points = append(r.points, pointsOf(&data)...) })
	})
	return mux
}

// take decodes a request into m, keeps it, and answers.
func (r *Receiver) take(w http.ResponseWriter, q *http.Request, m proto.Message, keep func()) {
	if t := q.Header.Get("Content-Type"); t != "application/x-protobuf" {
		http.Error(w, fmt.Sprintf("this receiver reads application/x-protobuf and got %q", t), http.StatusUnsupportedMediaType)
		return
	}
	body, err := readBody(q)
	if err == nil {
		err = proto.Unmarshal(body, m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	keep()
	r.bodies = append(r.bodies, body)
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	// The empty answer says that everything was accepted.
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(http.StatusOK)
}

func readBody(q *http.Request) ([]byte, error) {
	var from io.Reader = q.Body
	switch enc := q.Header.Get("Content-Encoding"); enc {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			return nil, fmt.Errorf("the body is not gzip: %w", err)
		}
		defer z.Close()
		from = z
	default:
		return nil, fmt.Errorf("content encoding %q is not known", enc)
	}
	body, err := io.ReadAll(io.LimitReader(from, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("the body is longer than %d bytes", maxBody)
	}
	return body, err
}

// Spans returns the spans received so far, in the order in which they came.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Span(nil), r.spans...)
}

// Points returns the data points of metrics received so far, in the order in which they
// came. A metric that was exported several times has several.
func (r *Receiver) Points() []Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Point(nil), r.points...)
}

// Bodies returns what came over the wire, uncompressed, to search it for what
// must not be in it.
func (r *Receiver) Bodies() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][]byte(nil), r.bodies...)
}

// Wait calls ok now and whenever something has arrived, and returns once it is true, or
// with the cause of ctx's end.
func (r *Receiver) Wait(ctx context.Context, ok func() bool) error {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
