package doors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/wire"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A desk is a door through which queues and schedules are operated. Whatever door it is, it
// answers in the types of package client.
type desk interface {
	queues() ([]client.Queue, error)
	queue(name string) (client.Queue, error)
	pauseQueue(name, reason string) error
	resumeQueue(name string) error
	dead(queue string) (ids []string, err error)
	retry(queue, id string, dry bool) error
	retryAll(queue string, dry bool) (ids []string, err error)

	schedules() ([]client.Schedule, error)
	schedule(name string) (client.Schedule, error)
	pauseSchedule(name, reason string) error
	resumeSchedule(name string) error
	trigger(name, key string) (runID string, err error)
	backfill(name string, from, to time.Time, dry bool) (client.Backfill, error)
	deleteSchedule(name string) error
}

// codeOf says of what kind a refusal is, in one word for all doors; empty: none.
func codeOf(err error) string {
	var no *durable.NotResumableError
	var exit *cli.ExitError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &exit):
		return map[int]string{cli.ExitNotFound: "not found", cli.ExitRefused: "conflict", cli.ExitUsage: "invalid"}[exit.Code]
	case errors.Is(err, durable.ErrNotFound), errors.Is(err, operate.ErrScheduleNotFound), errors.Is(err, client.ErrNotFound):
		return "not found"
	case errors.As(err, &no), errors.Is(err, client.ErrConflict):
		return "conflict"
	case errors.Is(err, durable.ErrInvalid), errors.Is(err, client.ErrInvalid):
		return "invalid"
	}
	return "unexpected: " + err.Error()
}

// inLibrary calls package operate.
type inLibrary struct {
	op  *operate.Operator
	now func() store.Time
}

var background = context.Background()

func (l inLibrary) queues() (list []client.Queue, err error) {
	found, err := l.op.Queues(background)
	for i := range found {
		list = append(list, wire.Queue(&found[i], l.now(), time.UTC))
	}
	return list, err
}

func (l inLibrary) queue(name string) (client.Queue, error) {
	found, err := l.op.Queues(background, name)
	if err != nil {
		return client.Queue{}, err
	}
	return wire.Queue(&found[0], l.now(), time.UTC), nil
}

func (l inLibrary) pauseQueue(name, reason string) error {
	return l.op.PauseQueue(background, name, reason)
}
func (l inLibrary) resumeQueue(name string) error { return l.op.ResumeQueue(background, name) }

func (l inLibrary) dead(queue string) (ids []string, err error) {
	page, err := l.op.DeadLetters(background, queue, 0, "")
	for i := range page.Runs {
		ids = append(ids, page.Runs[i].ID)
	}
	return ids, err
}

func (l inLibrary) retry(_, id string, dry bool) error {
	_, err := l.op.RetryDeadLetter(background, id, operate.RetryOptions{DryRun: dry})
	return err
}

func (l inLibrary) retryAll(queue string, dry bool) (ids []string, err error) {
	for plan, no := range l.op.RetryDeadLetters(background, queue, operate.RetryOptions{DryRun: dry}) {
		if no != nil {
			err = errors.Join(err, no)
			continue
		}
		ids = append(ids, plan.RunID)
	}
	return ids, err
}

func (l inLibrary) schedules() (list []client.Schedule, err error) {
	found, err := l.op.Schedules(background)
	for i := range found {
		list = append(list, wire.Schedule(&found[i]))
	}
	return list, err
}

func (l inLibrary) schedule(name string) (client.Schedule, error) {
	found, err := l.op.Schedules(background, name)
	if err != nil {
		return client.Schedule{}, err
	}
	return wire.Schedule(&found[0]), nil
}

func (l inLibrary) pauseSchedule(name, reason string) error {
	return l.op.PauseSchedule(background, name, reason)
}
func (l inLibrary) resumeSchedule(name string) error { return l.op.ResumeSchedule(background, name) }
func (l inLibrary) trigger(name, key string) (string, error) {
	return l.op.TriggerSchedule(background, name, key)
}
func (l inLibrary) deleteSchedule(name string) error { return l.op.DeleteSchedule(background, name) }

func (l inLibrary) backfill(name string, from, to time.Time, dry bool) (client.Backfill, error) {
	plan, err := l.op.PlanBackfill(background, name, from, to)
	if err != nil {
		return client.Backfill{}, err
	}
	b := client.Backfill{Fires: len(plan), DryRun: dry}
	if dry {
		for _, f := range plan {
			if f.Exists {
				b.Existing++
			} else {
				b.Started, b.RunIDs = b.Started+1, append(b.RunIDs, f.RunID)
			}
		}
	} else {
		did, err := l.op.BackfillSchedule(background, name, from, to)
		if err != nil {
			return client.Backfill{}, err
		}
		b.Started, b.Existing, b.RunIDs = did.Started, did.Existing, did.RunIDs
	}
	if n := len(b.RunIDs); n > 0 {
		b.First, b.Last = b.RunIDs[0], b.RunIDs[n-1]
	}
	return b, nil
}

// overHTTP calls package client.
type overHTTP struct{ c *client.Client }

func (h overHTTP) queues() ([]client.Queue, error)         { return h.c.Queues(background) }
func (h overHTTP) queue(name string) (client.Queue, error) { return h.c.Queue(background, name) }
func (h overHTTP) pauseQueue(name, reason string) error {
	_, err := h.c.PauseQueue(background, name, reason)
	return err
}

func (h overHTTP) resumeQueue(name string) error {
	_, err := h.c.ResumeQueue(background, name)
	return err
}

func (h overHTTP) dead(queue string) (ids []string, err error) {
	if _, err := h.c.Queue(background, queue); err != nil {
		return nil, err // a filter finds nothing on a queue that does not exist
	}
	page, err := h.c.ListRuns(background, client.ListOptions{Queues: []string{queue}, Statuses: []string{"failed"}, OldestFirst: true})
	for i := range page.Runs {
		ids = append(ids, page.Runs[i].ID)
	}
	return ids, err
}

func (h overHTTP) retry(_, id string, dry bool) error {
	_, err := h.c.Retry(background, id, dry)
	return err
}

func (h overHTTP) retryAll(queue string, dry bool) (ids []string, err error) {
	if _, err := h.c.Queue(background, queue); err != nil {
		return nil, err
	}
	bulk, err := h.c.RetryAll(background, client.BulkRequest{Filter: map[string][]string{"queue": {queue}}, DryRun: dry, Matching: 100})
	for _, r := range bulk.Runs {
		if r.Done {
			ids = append(ids, r.RunID)
		}
	}
	return ids, err
}

func (h overHTTP) schedules() ([]client.Schedule, error) { return h.c.Schedules(background) }
func (h overHTTP) schedule(name string) (client.Schedule, error) {
	return h.c.Schedule(background, name)
}

func (h overHTTP) pauseSchedule(name, reason string) error {
	_, err := h.c.PauseSchedule(background, name, reason)
	return err
}

func (h overHTTP) resumeSchedule(name string) error {
	_, err := h.c.ResumeSchedule(background, name)
	return err
}

func (h overHTTP) trigger(name, key string) (string, error) {
	done, err := h.c.TriggerSchedule(background, name, key)
	return done.RunID, err
}

func (h overHTTP) backfill(name string, from, to time.Time, dry bool) (client.Backfill, error) {
	return h.c.BackfillSchedule(background, name, client.BackfillRequest{From: from, To: to, DryRun: dry})
}

func (h overHTTP) deleteSchedule(name string) error {
	_, err := h.c.DeleteSchedule(background, name)
	return err
}

// onPages sends the forms of the pages where they have one; what no form does, and what
// there is to read, it asks the API for.
type onPages struct {
	overHTTP
	server string
}

// submit sends a form, and reads the page that it leads to.
func (p onPages) submit(path string, form url.Values) error {
	resp, err := http.PostForm(p.server+path, form) //nolint:gosec // the server of the test
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode == http.StatusNotFound:
		return client.ErrNotFound
	case resp.StatusCode == http.StatusConflict:
		return client.ErrConflict
	case resp.StatusCode == http.StatusBadRequest, resp.StatusCode == http.StatusUnprocessableEntity:
		return client.ErrInvalid
	}
	return fmt.Errorf("%s: %s: %s", path, resp.Status, body)
}

func (p onPages) pauseQueue(name, reason string) error {
	return p.submit("/queues/"+client.EscapeID(name)+"/do/pause", url.Values{"reason": {reason}})
}

func (p onPages) resumeQueue(name string) error {
	return p.submit("/queues/"+client.EscapeID(name)+"/do/resume", url.Values{})
}

func (p onPages) retryAll(queue string, dry bool) ([]string, error) {
	plan, err := p.overHTTP.retryAll(queue, true)
	if err == nil && !dry {
		err = p.submit("/bulk/retry", url.Values{"q": {"queue:" + queue + " status:failed"}, "matching": {fmt.Sprint(len(plan))}})
	}
	return plan, err
}

func (p onPages) pauseSchedule(name, reason string) error {
	return p.submit("/schedules/"+client.EscapeID(name)+"/do/pause", url.Values{"reason": {reason}})
}

func (p onPages) resumeSchedule(name string) error {
	return p.submit("/schedules/"+client.EscapeID(name)+"/do/resume", url.Values{})
}

func (p onPages) trigger(name, key string) (string, error) {
	if err := p.submit("/schedules/"+client.EscapeID(name)+"/do/trigger", url.Values{"key": {key}}); err != nil {
		return "", err
	}
	s, err := p.schedule(name)
	if err != nil || len(s.Last) == 0 {
		return "", errors.Join(err, errors.New("the page has started no run"))
	}
	return s.Last[0].RunID, nil
}

func (p onPages) backfill(name string, from, to time.Time, dry bool) (client.Backfill, error) {
	plan, err := p.overHTTP.backfill(name, from, to, true)
	if err != nil || dry {
		return plan, err
	}
	plan.DryRun = false
	return plan, p.submit("/schedules/"+client.EscapeID(name)+"/do/backfill", url.Values{"from": {from.Format(time.RFC3339)}, "to": {to.Format(time.RFC3339)}})
}

func (p onPages) deleteSchedule(name string) error {
	return p.submit("/schedules/"+client.EscapeID(name)+"/do/delete", url.Values{})
}

// atTerminal calls commands, which print JSON.
type atTerminal struct {
	eng  *durable.Engine // in which the commands are mounted; nil: they are a program of their own
	args []string        // where they act
	open func() (store.Store, error)
}

// call runs a command and reads the values that it has printed.
func call[T any](a atTerminal, args ...string) (list []T, err error) {
	cmd := cli.Command(a.eng, cli.Stores(cli.Backend{
		Name: "the store", Takes: func(string) bool { return true },
		Open: func(context.Context, string) (store.Store, error) { return a.open() },
	}))
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append(append([]string{}, args...), append(a.args, "--json")...))
	err = cmd.Execute()
	for d := json.NewDecoder(&out); err == nil && d.More(); {
		var v T
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("%v: %w", args, err)
		}
		list = append(list, v)
	}
	return list, err
}

func call1[T any](a atTerminal, args ...string) (v T, err error) {
	list, err := call[T](a, args...)
	if err != nil {
		return v, err
	}
	if len(list) != 1 {
		return v, fmt.Errorf("%v has printed %d values", args, len(list))
	}
	return list[0], nil
}

// act is a command of which only the outcome matters.
func (a atTerminal) act(args ...string) error {
	_, err := call[any](a, args...)
	return err
}

func dryRun(dry bool, args ...string) []string {
	if dry {
		args = append(args, "--dry-run")
	}
	return args
}

func (a atTerminal) queues() ([]client.Queue, error) { return call[client.Queue](a, "queues", "ls") }
func (a atTerminal) queue(name string) (client.Queue, error) {
	return call1[client.Queue](a, "queues", "show", name)
}

func (a atTerminal) pauseQueue(name, reason string) error {
	return a.act("queues", "pause", name, "--reason", reason)
}
func (a atTerminal) resumeQueue(name string) error { return a.act("queues", "resume", name) }

// printed is what the commands print of a run.
type printed struct {
	ID    string `json:"id"`
	RunID string `json:"run_id"`
	Done  bool   `json:"done"`
}

func (a atTerminal) dead(queue string) (ids []string, err error) {
	list, err := call[printed](a, "queues", "dead", queue)
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	return ids, err
}

func (a atTerminal) retry(queue, id string, dry bool) error {
	return a.act(dryRun(dry, "queues", "retry", queue, id)...)
}

func (a atTerminal) retryAll(queue string, dry bool) (ids []string, err error) {
	list, err := call[printed](a, dryRun(dry, "queues", "retry", queue, "--all")...)
	for _, p := range list {
		if p.Done {
			ids = append(ids, p.ID)
		}
	}
	return ids, err
}

func (a atTerminal) schedules() ([]client.Schedule, error) {
	return call[client.Schedule](a, "schedules", "ls")
}

func (a atTerminal) schedule(name string) (client.Schedule, error) {
	return call1[client.Schedule](a, "schedules", "show", name)
}

func (a atTerminal) pauseSchedule(name, reason string) error {
	return a.act("schedules", "pause", name, "--reason", reason)
}
func (a atTerminal) resumeSchedule(name string) error { return a.act("schedules", "resume", name) }

func (a atTerminal) trigger(name, key string) (string, error) {
	did, err := call1[struct {
		RunID string `json:"run_id"`
	}](a, "schedules", "trigger", name, "--key", key)
	return did.RunID, err
}

func (a atTerminal) backfill(name string, from, to time.Time, dry bool) (client.Backfill, error) {
	return call1[client.Backfill](a, dryRun(dry, "schedules", "backfill", name, "--from", from.Format(time.RFC3339), "--to", to.Format(time.RFC3339))...)
}

func (a atTerminal) deleteSchedule(name string) error {
	return a.act("schedules", "rm", name, "--yes")
}

// read returns what is in the middle of a page.
func read(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get(address) //nolint:gosec // the server of the test
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", address, body)
	_, main, _ := strings.Cut(string(body), "<main")
	main, _, _ = strings.Cut(main, "</main>")
	return strings.Join(strings.Fields(main), " ")
}
