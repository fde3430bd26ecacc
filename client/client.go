package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
)

// Client calls one server. Make one with New; it may be used from any goroutine.
type Client struct {
	base    string
	http    *http.Client
	options Options
}

// Options configure a Client. The zero value works.
type Options struct {
	// HTTPClient sends the requests; nil: http.DefaultClient. Its Timeout, if it has
	// one, also ends streams, which then reconnect.
	HTTPClient *http.Client
	// Header is sent with every request: an Authorization, for example. It is sent only
	// to the server: a redirect to another one, or from https to http, is not followed.
	Header http.Header
}

// New makes a client of the server at an address such as
// "http://127.0.0.1:8233" or "https://ops.example.com/durable", where the handler
// is mounted. Nothing is sent yet.
func New(server string, o Options) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("client: %q is no address of a server: give one like http://127.0.0.1:8233", server)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("client: the address of a server has no query, fragment or password: put credentials into Options.Header")
	}
	hc := http.Client{}
	if o.HTTPClient != nil {
		hc = *o.HTTPClient
	}
	if hc.CheckRedirect == nil {
		hc.CheckRedirect = func(r *http.Request, via []*http.Request) error {
			// The same host is not enough: over http, an eavesdropper would read the
			// Authorization that was meant for https.
			if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host {
				return &redirectError{fmt.Sprintf("to %s://%s, which is another one: if it is right, give that address", r.URL.Scheme, r.URL.Host)}
			}
			if len(via) >= maxRedirects {
				return &redirectError{"too often, at last to " + r.URL.Redacted()}
			}
			return nil
		}
	}
	return &Client{base: strings.TrimRight(u.String(), "/"), http: &hc, options: o}, nil
}

// maxRedirects is how many redirects are followed for one request.
const maxRedirects = 10

// redirectError is a redirect that is not followed. Another try would end there, too.
type redirectError struct{ where string }

func (e *redirectError) Error() string { return "client: the server redirects " + e.where }

// Server returns the address the client was made with.
func (c *Client) Server() string { return c.base }

// path joins segments, each encoded, so that any id is one segment: otherwise "." and
// ".." would be taken for directories.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		switch s {
		case ".", "..":
			b.WriteString(strings.ReplaceAll(s, ".", "%2E"))
		default:
			b.WriteString(url.PathEscape(s))
		}
	}
	return b.String()
}

// runPath returns the path of a run, or of something below it.
func runPath(id string, below ...string) string {
	return "/api/runs/" + EscapeID(id) + path(below...)
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	// A segment is never empty unless a name or an id is, and servers take an address with
	// an empty one for another address: that of run "wait" for the wait of run "".
	if strings.Contains(path, "//") || strings.HasSuffix(path, "/") {
		return nil, &Error{Status: http.StatusBadRequest, Code: "invalid", Message: "client: an id or a name is empty", Next: "say which one is meant"}
	}
	to := c.base + path
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("client: the request cannot be encoded: %w", err)
		}
		reader = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, to, reader)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	for k, v := range c.options.Header {
		r.Header[k] = v
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	// The trace and the baggage of ctx, if the program has set a propagator.
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(r.Header))
	return r, nil
}

// maxAnswer is the largest answer that is read as one document.
const maxAnswer = 64 << 20

// call sends a request and reads its answer into out.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	r, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return errorOf(resp)
	}
	if out == nil {
		return nil
	}
	in := &answer{r: io.LimitReader(resp.Body, maxAnswer)}
	err = json.NewDecoder(in).Decode(out)
	switch {
	case err == nil:
		return nil
	case in.err != nil:
		return c.broken(ctx, in.err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return c.broken(ctx, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("client: the answer of %s cannot be read: %w", c.base, err)
}

// answer reads the body of an answer, and keeps the error that has ended it early.
type answer struct {
	r   io.Reader
	err error
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}

// broken returns the error for an answer of which only a part has come. Whoever has asked
// knows as little as without an answer.
func (c *Client) broken(ctx context.Context, err error) error {
	return c.unreachable(ctx, fmt.Errorf("the answer broke off: %w", err))
}

// unreachable returns the error for a request without an answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &UnreachableError{Server: c.base, Err: err}
}

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var out T
	err := c.call(ctx, http.MethodGet, path, query, nil, &out)
	return out, err
}

func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var out T
	err := c.call(ctx, http.MethodPost, path, nil, body, &out)
	return out, err
}

// ListOptions select runs. Every field that is set must match, with any element of a
// list. The zero value selects all runs.
type ListOptions struct {
	Workflows, Versions, Statuses, Codes, Queues, Owners, Parents []string

	IDs        []string          // of the runs
	Prefix     string            // of the id
	Search     string            // part of the id
	Key        string            // of the step the run has reached
	Error      string            // part of the reason
	Attributes map[string]string // each must have this value
	Since      string            // created since: a moment, or how long ago ("24h", "7d")
	Until      string

	OldestFirst bool
	Limit       int    // of a page; 0: the server's
	Cursor      string // Runs.Next of the page before
	Counts      bool   // also count the runs by status
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	for name, list := range map[string][]string{"workflow": o.Workflows, "version": o.Versions, "status": o.Statuses, "code": o.Codes, "queue": o.Queues, "owner": o.Owners} {
		for _, one := range list {
			q.Add(name, FilterValue(one))
		}
	}
	if len(o.IDs) > 0 {
		q["id"] = o.IDs
	}
	if len(o.Parents) > 0 {
		q["parent"] = o.Parents // the server reads no lists here: an id may have a comma
	}
	for name, v := range map[string]string{"prefix": o.Prefix, "q": o.Search, "key": o.Key, "error": o.Error, "since": o.Since, "until": o.Until, "cursor": o.Cursor} {
		if v != "" {
			q.Set(name, v)
		}
	}
	for k, v := range o.Attributes {
		q.Add("attribute", k+"="+v)
	}
	if o.OldestFirst {
		q.Set("order", "oldest")
	}
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Counts {
		q.Set("counts", "1")
	}
	return q
}

// ListRuns returns a page of runs.
func (c *Client) ListRuns(ctx context.Context, o ListOptions) (Runs, error) {
	return get[Runs](ctx, c, path("api", "runs"), o.query())
}

// AllRuns yields all matching runs, page by page. It ends after an error.
func (c *Client) AllRuns(ctx context.Context, o ListOptions) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for {
			page, err := c.ListRuns(ctx, o)
			if err != nil {
				yield(Run{}, err)
				return
			}
			for _, r := range page.Runs {
				if !yield(r, nil) {
					return
				}
			}
			if o.Cursor = page.Next; o.Cursor == "" {
				return
			}
		}
	}
}

// GetRun returns a run. ErrNotFound if there is none.
func (c *Client) GetRun(ctx context.Context, id string) (Run, error) {
	return get[Run](ctx, c, runPath(id), nil)
}

// EventsOptions select events of a run. The zero value is the whole current
// history.
type EventsOptions struct {
	After   int64 // only those with a greater number
	Tail    int   // only the last n of them; 0: all
	All     bool  // over all branches
	Branch  *int  // the history of this branch
	Skipped bool  // with the steps that were replayed when the run was resumed
	Limit   int   // of a page; 0: the server's
}

func (o EventsOptions) query() url.Values {
	q := url.Values{}
	for name, n := range map[string]int64{"after": o.After, "tail": int64(o.Tail), "limit": int64(o.Limit)} {
		if n > 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	if o.All {
		q.Set("all", "1")
	}
	if o.Skipped {
		q.Set("skipped", "1")
	}
	if o.Branch != nil {
		q.Set("branch", strconv.Itoa(*o.Branch))
	}
	return q
}

// Events returns a page of the events of a run.
func (c *Client) Events(ctx context.Context, id string, o EventsOptions) (Events, error) {
	return get[Events](ctx, c, runPath(id, "events"), o.query())
}

// History yields the events of a run in order, page by page. It ends after an error.
func (c *Client) History(ctx context.Context, id string, o EventsOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			page, err := c.Events(ctx, id, o)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range page.Events {
				if !yield(e, nil) {
					return
				}
			}
			if page.Next == 0 {
				return
			}
			o.After, o.Tail = page.Next, 0
		}
	}
}

// Payload downloads the user data of one event. The caller closes it. ErrForbidden if
// the server shows no payloads.
func (c *Client) Payload(ctx context.Context, id string, seq int64) (io.ReadCloser, error) {
	return c.download(ctx, runPath(id, "events", strconv.FormatInt(seq, 10), "payload"))
}

// Export downloads a run as a file that operate.Operator.Import reads. The caller
// closes it.
func (c *Client) Export(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.download(ctx, runPath(id, "export"))
}

func (c *Client) download(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := c.request(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, errorOf(resp)
	}
	return resp.Body, nil
}

// Branches lists the branches of a run, oldest first.
func (c *Client) Branches(ctx context.Context, id string) ([]Branch, error) {
	out, err := get[struct{ Branches []Branch }](ctx, c, runPath(id, "branches"), nil)
	return out.Branches, err
}

// Approvals lists the questions that runs ask people, the oldest first.
func (c *Client) Approvals(ctx context.Context) ([]Approval, error) {
	out, err := get[struct{ Approvals []Approval }](ctx, c, path("api", "approvals"), nil)
	return out.Approvals, err
}

// Stuck lists the runs that cannot go on without help.
func (c *Client) Stuck(ctx context.Context) ([]Stuck, error) {
	out, err := get[struct{ Stuck []Stuck }](ctx, c, path("api", "stuck"), nil)
	return out.Stuck, err
}

// Workflows lists the workflows whose code a live process has.
func (c *Client) Workflows(ctx context.Context) ([]Workflow, error) {
	out, err := get[struct{ Workflows []Workflow }](ctx, c, path("api", "workflows"), nil)
	return out.Workflows, err
}

// Health returns the state of the server.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return get[Health](ctx, c, path("api", "health"), nil)
}

// Counts returns numbers of runs.
func (c *Client) Counts(ctx context.Context) (Counts, error) {
	return get[Counts](ctx, c, path("api", "counts"), nil)
}

// ArchivedRuns lists everything in the server's archive.
func (c *Client) ArchivedRuns(ctx context.Context) (History, error) {
	all, err := get[History](ctx, c, path("runs", "history"), nil)
	for page := all; err == nil && page.Next != ""; all.Runs = append(all.Runs, page.Runs...) {
		page, err = get[History](ctx, c, path("runs", "history"), url.Values{"after": {page.Next}})
	}
	all.Next = ""
	return all, err
}
