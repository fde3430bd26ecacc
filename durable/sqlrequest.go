package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/requests"
	"github.com/holdfast-dev/holdfast/store"
)

// sqlRequests is what requests that programs have made by SQL mean to an engine.
type sqlRequests struct{ eng *Engine }

// newDrainer returns what answers requests that programs have made by SQL; nil if the
// store has no table of them, or this engine executes nothing.
func newDrainer(e *Engine) *requests.Drainer {
	can := store.CapabilitiesOf(e.store)
	table := can.Requests
	if table == nil || len(e.program.defs.served) == 0 {
		return nil
	}
	// A store that tells of requests is hardly asked for those of which it has not told.
	every := e.options.Lease
	if !can.HearsRequests {
		every /= 5
	}
	d := &requests.Drainer{
		Table: table, Log: e.log.Logger, Now: e.now, Ready: e.claims.Recovered, Blocked: e.sealer.Ready, Every: every, Keep: cmp.Or(e.options.Retention.Requests, DefaultKeepRequests),
		Form: sqlRequests{e}.form, Done: sqlRequests{e}.done,
	}
	for i := range e.program.defs.served {
		d.Serves = append(d.Serves, e.program.defs.served[i].Workflow)
	}
	d.Start()
	return d
}

// form returns the change that carries a request out.
func (s sqlRequests) form(ctx context.Context, r store.Request) (store.Change, error) {
	for column, text := range map[string]string{"input": r.Input, "attributes": r.Attributes, "headers": r.Headers} {
		if err := guard.JSON([]byte(text)); err != nil {
			return store.Change{}, fmt.Errorf("durable: %s %w: %w", column, err, ErrInvalid)
		}
	}
	switch r.Kind {
	case store.RequestStart:
		return s.start(ctx, &r)
	case store.RequestSignal:
		return s.signal(&r)
	case store.RequestCancel:
		data, err := json.Marshal(history.MessageData{Reason: guard.Text(r.Reason, guard.MaxText)})
		if err != nil {
			return store.Change{}, err
		}
		return s.message(store.Message{To: r.RunID, Kind: store.KindCancel, ID: newExecutorID(), Data: data})
	}
	return store.Change{}, fmt.Errorf("durable: a request of kind %q is not known to this version: %w", r.Kind, ErrInvalid)
}

func (s sqlRequests) start(ctx context.Context, r *store.Request) (store.Change, error) {
	e := s.eng
	def := e.program.defs.find(r.Workflow, r.Version)
	if def == nil {
		def = &definition{name: r.Workflow, version: r.Version, input: reflect.TypeFor[json.RawMessage]()}
		if err := def.check(); err != nil {
			return store.Change{}, err
		}
		if r.Input == "" {
			r.Input = "null"
		}
	}
	env, err := e.sealer.EncodeJSON(def.input, json.RawMessage(r.Input))
	if err != nil {
		return store.Change{}, fmt.Errorf("durable: the input of workflow %s is no %s: %w", r.Workflow, def.input, err)
	}
	id := r.RunID
	if id == "" {
		id = generateID(def.name, e.now().Time(), 3) // long, because they are many
	}
	if err := checkRunID(id); err != nil {
		return store.Change{}, err
	}
	list, err := startOptionsOf(r)
	if err != nil {
		return store.Change{}, err
	}
	var o startOptions
	if err := o.apply(ctx, e, id, list); err != nil {
		return store.Change{}, fmt.Errorf("durable: starting run %q of workflow %s: %w", id, r.Workflow, err)
	}
	row, created, _, span, _ := e.newborn(ctx, def, id, env, &o)
	defer span.End()
	created.At = row.CreatedAt
	new(commit.Head).Append(id, &created)
	return store.Change{Start: []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: []store.Event{created}}}}, nil
}

// startOptionsOf returns what a request says about its start as a caller of Start would.
func startOptionsOf(r *store.Request) (list []StartOption, err error) {
	attributes, err := requests.Object("attributes", r.Attributes)
	if err != nil {
		return nil, err
	}
	headers, err := requests.Object("headers", r.Headers)
	if err != nil {
		return nil, err
	}
	list = append(list, Attributes(attributes), Priority(int(r.Priority)))
	for key, value := range headers {
		list = append(list, Header(key, value))
	}
	if r.Queue != "" {
		list = append(list, OnQueue(r.Queue))
	}
	if r.Partition != "" {
		list = append(list, Partition(r.Partition))
	}
	if r.Dedup != "" {
		list = append(list, Dedup(r.Dedup))
	}
	if r.WakeAt != 0 {
		list = append(list, StartAt(r.WakeAt.Time()))
	}
	return list, nil
}

func (s sqlRequests) signal(r *store.Request) (store.Change, error) {
	if err := store.CheckName("signal name", r.Name); err != nil {
		return store.Change{}, err
	}
	if err := checkSignalID(r.ID); err != nil {
		return store.Change{}, err
	}
	value := json.RawMessage("null")
	if r.Input != "" {
		value = json.RawMessage(r.Input)
	}
	if !json.Valid(value) {
		return store.Change{}, fmt.Errorf("durable: the value of signal %s is no JSON: %w", r.Name, ErrInvalid)
	}
	payload, err := s.eng.sealer.EncodeAny(s.eng.sealer.Limit(), value)
	if err != nil {
		return store.Change{}, fmt.Errorf("durable: the value of signal %s: %w", r.Name, err)
	}
	m := store.Message{To: r.RunID, Kind: store.KindSignal, Name: r.Name, ID: r.ID, Payload: payload}
	if m.ID == "" {
		m.ID = newExecutorID()
	}
	return s.message(m)
}

func (s sqlRequests) message(m store.Message) (store.Change, error) {
	if err := checkRunID(m.To); err != nil {
		return store.Change{}, err
	}
	m.At = s.eng.now()
	s.eng.mailroom.seal(&m)
	return store.Change{Send: []store.Message{m}}, nil
}

// done does what follows a request that was carried out: it wakes the run that it
// concerns. If the process ends before that, a heartbeat does it.
func (s sqlRequests) done(ctx context.Context, a store.Answer, c store.Change) {
	e := s.eng
	switch {
	case len(c.Start) > 0:
		row := c.Start[0].Create
		if a.Request.RunID == "" || s.startedNow(ctx, row) {
			e.metrics.RunStarted(row)
			e.log.AboutRun(slog.LevelInfo, row, "durable: run started", slog.Int64("request", a.Request.No))
		}
		e.claims.Expect(row, row.ID)
	case a.Request.Kind == store.RequestCancel:
		h, err := e.store.Load(ctx, a.RunID, store.Cursor{NoEvents: true})
		if err == nil && e.cancelIdle(ctx, h, a.Request.Reason) == nil && h.Run.Status == store.Pending {
			return
		}
		e.mailroom.toldOf(a.RunID)
	default:
		e.mailroom.toldOf(a.RunID)
	}
}

// startedNow reports whether a start that succeeded has created its run: the run may have been there.
func (s sqlRequests) startedNow(ctx context.Context, row *store.Run) bool {
	h, err := s.eng.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	return err == nil && h.Run.CreatedAt == row.CreatedAt
}
