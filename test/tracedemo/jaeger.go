package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/holdfast-dev/holdfast/test/otlptest"
)

// jaeger is a Jaeger all-in-one that keeps traces in memory.
type jaeger struct {
	cmd              *exec.Cmd
	log              bytes.Buffer
	done             chan struct{}
	collector, query string // addresses, "http://127.0.0.1:4318"
}

// startJaeger starts it on free ports of the loopback and waits until it answers.
func startJaeger(ctx context.Context, binary string) (*jaeger, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	j := &jaeger{done: make(chan struct{}), collector: "http://" + ports[0], query: "http://" + ports[1]}
	args := []string{"--collector.otlp.enabled=true", "--collector.otlp.http.host-port=" + ports[0], "--query.http-server.host-port=" + ports[1]}
	for _, unused := range []string{
		"admin.http", "collector.grpc-server", "collector.http-server", "collector.otlp.grpc", "http-server", "query.grpc-server",
	} {
		args = append(args, "--"+unused+".host-port=127.0.0.1:0")
	}
	for _, unused := range []string{"jaeger-binary", "jaeger-compact", "zipkin-compact"} {
		args = append(args, "--processor."+unused+".server-host-port=127.0.0.1:0")
	}
	j.cmd = exec.CommandContext(ctx, binary, args...)
	j.cmd.Env = append(os.Environ(), "SPAN_STORAGE_TYPE=memory")
	j.cmd.Stdout, j.cmd.Stderr = &j.log, &j.log
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting Jaeger: %w", err)
	}
	go func() {
		defer close(j.done)
		_ = j.cmd.Wait() // stop and the deadline below say why
	}()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if j.answers(ctx, j.query+"/api/services") && j.answers(ctx, j.collector+"/") {
			return j, nil
		}
		select {
		case <-j.done:
			return nil, fmt.Errorf("the backend, Jaeger, ended:\n%s", j.log.String())
		case <-ctx.Done():
			_ = j.stop()
			return nil, fmt.Errorf("the backend, Jaeger, does not answer: %w\n%s", context.Cause(ctx), j.log.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freePorts returns addresses of the loopback that nobody listens at now.
func freePorts(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after all are chosen, so that they differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

func (j *jaeger) answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}

// stop ends it.
func (j *jaeger) stop() error {
	if err := j.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping Jaeger: %w", err)
	}
	<-j.done
	return nil
}

// answer is what the query API says of a trace.
type answer struct {
	Data []struct {
		Spans []struct {
			TraceID, SpanID, OperationName string
			References                     []struct{ RefType, TraceID, SpanID string }
			StartTime, Duration            int64 // microseconds
			Tags                           []tag
		}
	}
}

type tag struct {
	Key   string
	Value any
}

// trace reads a trace back; it is empty while Jaeger does not know it.
func (j *jaeger) trace(ctx context.Context, id string) ([]otlptest.Span, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.query+"/api/traces/"+id, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking Jaeger for a trace: %w", err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		return nil, nil
	case http.StatusOK:
	default:
		return nil, fmt.Errorf("asking Jaeger for trace %s: %s", id, resp.Status)
	}
	d := json.NewDecoder(resp.Body)
	d.UseNumber()
	var a answer
	if err := d.Decode(&a); err != nil {
		return nil, fmt.Errorf("reading Jaeger's answer: %w", err)
	}
	return a.spans(), nil
}

func (a *answer) spans() []otlptest.Span {
	var spans []otlptest.Span
	for _, t := range a.Data {
		for _, s := range t.Spans {
			begin := time.UnixMicro(s.StartTime)
			o := otlptest.Span{
				TraceID: s.TraceID, ID: s.SpanID, Name: s.OperationName,
				Begin: begin, End: begin.Add(time.Duration(s.Duration) * time.Microsecond), Attributes: otlptest.Attributes{},
			}
			for _, ref := range s.References {
				if ref.RefType == "CHILD_OF" {
					o.Parent = ref.SpanID
				} else {
					o.Links = append(o.Links, otlptest.SpanLink{TraceID: ref.TraceID, ID: ref.SpanID})
				}
			}
			for _, tag := range s.Tags {
				o.Attributes[tag.Key] = tag.Value
				switch tag.Key {
				case "error":
					o.Failed = tag.Value == true
				case "otel.status_description":
					o.Status = fmt.Sprint(tag.Value)
				}
			}
			spans = append(spans, o)
		}
	}
	return spans
}
