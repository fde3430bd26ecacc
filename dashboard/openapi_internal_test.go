package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
)

var updateOpenAPI = flag.Bool("update-openapi", false, "write openapi.json anew")

// An op says of a route what its types cannot.
type op struct {
	summary string
	query   []string // "name: what it means"
	request any      // nil: none
	answers map[int]any
	media   string // of the answer; empty: JSON
}

type (
	stuckOnly struct {
		Stuck []client.Stuck `json:"stuck"`
	}
	workflowsOnly struct {
		Workflows []client.Workflow `json:"workflows"`
	}
	branchesOnly struct {
		Branches []client.Branch `json:"branches"`
	}
	queuesOnly struct {
		Queues []client.Queue `json:"queues"`
	}
	schedulesOnly struct {
		Schedules []client.Schedule `json:"schedules"`
		More      int               `json:"more"`
	}
	readyOnly struct {
		Ready bool `json:"ready"`
	}
	either [2]any // a document of one of two forms
)

var filterQuery = []string{
	"workflow: names, repeated or separated by commas", "version: the same", "status: the same", "code: the same, of failure or interruption", "queue: the same", "owner: executor ids",
	"parent: id of the parent run", "prefix: of the id", "id: of a run, repeated", "q: part of the id", "key: of the step the run has come to", "error: part of the reason", "attribute: name=value, repeated",
	"since: created since; RFC 3339, a day, or how long ago: 90m, 7d", "until: created before", "order: newest (default) or oldest", "limit: of the page, up to 1000; a search by q, key or error may give some more or fewer",
	"cursor: next of the page before", "counts: 1 for counts by status",
}

var planQuery = []string{"from_checkpoint: number of an event to go back to", "from_key: the same by the key of a call", "reset_failures: give failed steps all their attempts again", "force: let a body that must run once run again"}

// ops has one entry for each route of the API.
var ops = map[string]op{
	"GET /api/openapi.json":   {summary: "This document", answers: map[int]any{200: map[string]any{}}},
	"GET /api/ready":          {summary: "Whether the engine can take work; for load balancers, without authorization", answers: map[int]any{200: readyOnly{}}},
	"GET /api/health":         {summary: "The state of the engine and the processes on its store", answers: map[int]any{200: client.Health{}}},
	"GET /api/counts":         {summary: "Numbers of runs", answers: map[int]any{200: client.Counts{}}},
	"GET /api/workflows":      {summary: "Workflows that somebody alive has the code of", answers: map[int]any{200: workflowsOnly{}}},
	"GET /api/stuck":          {summary: "Runs that cannot go on by themselves, and what to do", answers: map[int]any{200: stuckOnly{}}},
	"GET /api/approvals":      {summary: "What runs ask of people, the oldest question first", answers: map[int]any{200: client.Approvals{}}},
	"GET /api/history":        {summary: "Runs in the archive", query: []string{"after: next of the page before"}, answers: map[int]any{200: client.History{}}},
	"GET /api/queues":         {summary: "The queues: how full, why their runs wait, paused", answers: map[int]any{200: queuesOnly{}}},
	"GET /api/queues/{queue}": {summary: "A queue, with its partitions", answers: map[int]any{200: client.Queue{}}},
	"GET /api/stream":         {summary: "What changes in the list of runs, as server-sent events", query: []string{"after: as Last-Event-ID"}, answers: map[int]any{200: ""}, media: "text/event-stream"},

	"GET /api/runs":                           {summary: "A page of runs", query: filterQuery, answers: map[int]any{200: client.Runs{}}},
	"GET /api/runs/{id}":                      {summary: "A run", answers: map[int]any{200: client.Run{}}},
	"GET /api/runs/{id}/events":               {summary: "A page of a run's history", query: []string{"after: only events with a greater number", "tail: only the last n", "limit: of the page", "all: over all branches", "branch: the history of this branch", "skipped: with the steps that a resume replayed", "download: as a file, without a bound on its size"}, answers: map[int]any{200: client.Events{}}},
	"GET /api/runs/{id}/events/{seq}/payload": {summary: "The user data of an event, as a download", answers: map[int]any{200: ""}, media: "application/octet-stream"},
	"GET /api/runs/{id}/branches":             {summary: "The branches of a run's history", answers: map[int]any{200: branchesOnly{}}},
	"GET /api/runs/{id}/plan":                 {summary: "What a resume would do", query: planQuery, answers: map[int]any{200: client.Resumed{}}},
	"GET /api/runs/{id}/stream":               {summary: "What happens to a run, as server-sent events", query: []string{"after: as Last-Event-ID: number of the last event that was seen"}, answers: map[int]any{200: ""}, media: "text/event-stream"},
	"GET /api/runs/{id}/wait":                 {summary: "How a run has ended; answered when it has, or after a heartbeat with the state as it is", answers: map[int]any{200: client.Outcome{}}},
	"GET /api/runs/{id}/export":               {summary: "The run as a file that can be imported", answers: map[int]any{200: ""}, media: "application/octet-stream"},

	"POST /api/workflows/{name}/runs":            {summary: "Start a run; idempotent by its id", request: client.StartRequest{}, answers: map[int]any{201: client.Done{}}},
	"POST /api/bulk/resume":                      {summary: "Resume the runs that a filter selects, or, as a dry run, say what would become of each", request: client.BulkRequest{}, answers: map[int]any{200: client.Bulk{}}},
	"POST /api/bulk/cancel":                      {summary: "Ask the runs that a filter selects to end", request: client.BulkRequest{}, answers: map[int]any{200: client.Bulk{}}},
	"POST /api/runs/{id}/resume":                 {summary: "Continue a run that failed or was interrupted", query: []string{"dry_run: only say what it would do"}, request: client.ResumeOptions{}, answers: map[int]any{200: client.Resumed{}}},
	"POST /api/bulk/retry":                       {summary: "Let the failed runs that a filter selects get in line of their queues again, or, as a dry run, say what would become of each", request: client.BulkRequest{}, answers: map[int]any{200: client.Bulk{}}},
	"POST /api/runs/{id}/retry":                  {summary: "Let a failed run of a queue get in line again", query: []string{"dry_run: only say what it would do"}, request: client.RetryRequest{}, answers: map[int]any{200: client.Resumed{}}},
	"GET /api/schedules":                         {summary: "The schedules: their last fires and their next times", answers: map[int]any{200: schedulesOnly{}}},
	"GET /api/schedules/{schedule}":              {summary: "A schedule", answers: map[int]any{200: client.Schedule{}}},
	"POST /api/schedules/{schedule}/pause":       {summary: "Keep a schedule from firing", request: client.ReasonRequest{}, answers: map[int]any{200: client.ScheduleDone{}}},
	"POST /api/schedules/{schedule}/resume":      {summary: "Let a paused schedule fire again", request: client.ReasonRequest{}, answers: map[int]any{200: client.ScheduleDone{}}},
	"POST /api/schedules/{schedule}/trigger":     {summary: "Start a run of a schedule now; idempotent by a key", request: client.TriggerRequest{}, answers: map[int]any{200: client.ScheduleDone{}}},
	"POST /api/schedules/{schedule}/backfill":    {summary: "Start the runs of a span that has passed, or, as a dry run, say which", request: client.BackfillRequest{}, answers: map[int]any{200: client.Backfill{}}},
	"POST /api/schedules/{schedule}/delete":      {summary: "Remove a schedule; its runs stay", request: client.ReasonRequest{}, answers: map[int]any{200: client.ScheduleDone{}}},
	"POST /api/queues/{queue}/pause":             {summary: "Keep runs of a queue from getting a place", request: client.ReasonRequest{}, answers: map[int]any{200: client.QueueDone{}}},
	"POST /api/queues/{queue}/resume":            {summary: "Let runs of a paused queue get places again", request: client.ReasonRequest{}, answers: map[int]any{200: client.QueueDone{}}},
	"POST /api/runs/{id}/cancel":                 {summary: "Ask a run to end", request: client.ReasonRequest{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/runs/{id}/pause":                  {summary: "Stop a run until unpause", request: client.ReasonRequest{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/runs/{id}/unpause":                {summary: "Let a paused run go on", request: client.ReasonRequest{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/runs/{id}/signal/{name}":          {summary: "Send a value to a run", request: client.SignalRequest{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/runs/{id}/approve":                {summary: "Say yes to what a run asks", request: client.Answer{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/runs/{id}/reject":                 {summary: "Say no to what a run asks", request: client.Answer{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/runs/{id}/answer":                 {summary: "Answer what a run asks", request: client.Answer{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/runs/{id}/fork":                   {summary: "Make a new run of what this one has recorded", request: client.ForkRequest{}, answers: map[int]any{201: client.Done{}, 200: client.Resumed{}}},
	"POST /api/runs/{id}/jump":                   {summary: "Take a run back to an earlier point", request: client.JumpRequest{}, answers: map[int]any{200: client.Resumed{}}},
	"POST /api/runs/{id}/edit":                   {summary: "Replace a recorded result", request: client.EditRequest{}, answers: map[int]any{200: client.Resumed{}}},
	"POST /api/approvals/{wait}":                 {summary: "Answer an approval by its id, or the only one of a run", request: client.Answer{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/workflows/{id}/resume":            {summary: "Alias of /api/runs/{id}/resume that answers with the state of the run", query: []string{"dry_run: only say what it would do"}, request: client.ResumeOptions{}, answers: map[int]any{200: client.Run{}}},
	"POST /api/workflows/{id}/cancel":            {summary: "Alias of /api/runs/{id}/cancel", request: client.ReasonRequest{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/workflows/{id}/approve":           {summary: "Alias of /api/runs/{id}/approve", request: client.Answer{}, answers: map[int]any{200: client.Done{}}},
	"POST /api/workflows/{id}/reject":            {summary: "Alias of /api/runs/{id}/reject", request: client.Answer{}, answers: map[int]any{200: client.Done{}}},
	"GET /runs":                                  {summary: "Alias of /api/runs; with source=git of /api/history; a browser is sent to the page", query: append([]string{"source: live (default) or git"}, filterQuery...), answers: map[int]any{200: either{client.Runs{}, client.History{}}}},
	"GET /runs/history":                          {summary: "Alias of /api/history; never a run with that id", query: []string{"after: next of the page before"}, answers: map[int]any{200: client.History{}}},
	"GET /runs/{id}":                             {summary: "Alias of /api/runs/{id}; a browser gets the page", answers: map[int]any{200: client.Run{}}},
	"POST /workflows/{workflow}/resume/{run_id}": {summary: "Resume a run, also one that waits at a checkpoint and that nobody executes", query: []string{"dry_run: only say what it would do"}, request: client.ResumeOptions{}, answers: map[int]any{202: client.Done{}}},
	"POST /checkpoints/{wait}":                   {summary: "Alias of /api/approvals/{wait}", request: client.Answer{}, answers: map[int]any{200: client.Done{}}},
}

// schemas makes JSON schemas of Go types, named ones once.
type schemas map[string]any

func (s schemas) of(t reflect.Type) any {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{"description": "any JSON", "nullable": true}
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[either]():
		panic("either is made where it is used")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Interface:
		return map[string]any{"description": "any JSON", "nullable": true}
	}
	if _, done := s[t.Name()]; !done {
		s[t.Name()] = nil // for a type within itself
		s[t.Name()] = s.object(t)
	}
	return map[string]any{"$ref": "#/components/schemas/" + t.Name()}
}

func (s schemas) object(t reflect.Type) any {
	fields, required := map[string]any{}, []string{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = s.of(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	o := map[string]any{"type": "object", "properties": fields, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

func (s schemas) answer(v any) any {
	if pair, ok := v.(either); ok {
		return map[string]any{"anyOf": []any{s.of(reflect.TypeOf(pair[0])), s.of(reflect.TypeOf(pair[1]))}}
	}
	return s.of(reflect.TypeOf(v))
}

var pathParameter = regexp.MustCompile(`\{([a-z_]+)\}`)

// document makes the OpenAPI document of the routes.
func document(t *testing.T, routes []route) []byte {
	all := schemas{}
	paths := map[string]map[string]any{}
	problem := all.of(reflect.TypeFor[client.Problem]())
	for _, rt := range routes {
		if rt.page {
			continue
		}
		o, ok := ops[rt.method+" "+rt.pattern]
		require.True(t, ok, "%s %s is not described: add it to ops, run with -update-openapi, and describe it in docs/http-api.md", rt.method, rt.pattern)
		var parameters []any
		for _, m := range pathParameter.FindAllStringSubmatch(rt.pattern, -1) {
			parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
		for _, q := range o.query {
			name, what, _ := strings.Cut(q, ": ")
			parameters = append(parameters, map[string]any{"name": name, "in": "query", "description": what, "schema": map[string]any{"type": "string"}})
		}
		media := o.media
		if media == "" {
			media = "application/json"
		}
		responses := map[string]any{"default": map[string]any{"description": "an error", "content": map[string]any{"application/json": map[string]any{"schema": problem}}}}
		for status, v := range o.answers {
			responses[strconv.Itoa(status)] = map[string]any{"description": http.StatusText(status), "content": map[string]any{media: map[string]any{"schema": all.answer(v)}}}
		}
		operation := map[string]any{"summary": o.summary, "responses": responses}
		if rt.action != "" {
			operation["description"] = "Authorized as `" + string(rt.action) + "`."
		}
		if parameters != nil {
			operation["parameters"] = parameters
		}
		if o.request != nil {
			operation["requestBody"] = map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": all.of(reflect.TypeOf(o.request))}}}
		}
		if paths[rt.pattern] == nil {
			paths[rt.pattern] = map[string]any{}
		}
		paths[rt.pattern][strings.ToLower(rt.method)] = operation
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	require.NoError(t, enc.Encode(map[string]any{
		"openapi":    "3.0.3",
		"info":       map[string]any{"title": "Holdfast", "version": "1", "description": "Runs of a durable engine: see them, resume, answer, cancel, fork and edit them. Below the path the handler is mounted at. docs/http-api.md explains it."},
		"paths":      paths,
		"components": map[string]any{"schemas": all},
	}))
	return out.Bytes()
}

func TestTheOpenAPIDocumentDescribesEveryRoute(t *testing.T) {
	h := newHandler(nil, Options{})
	routes := slices.DeleteFunc(slices.Concat(h.apiRoutes(), h.queueRoutes(), h.scheduleRoutes()), func(rt route) bool { return rt.page })
	want := document(t, routes)
	if *updateOpenAPI {
		require.NoError(t, os.WriteFile("openapi.json", want, 0o644))
		return
	}
	require.Equal(t, string(want), string(openAPI), "run go test ./dashboard -run OpenAPI -update-openapi")
	described := 0
	for _, rt := range routes {
		if !rt.page {
			described++
		}
	}
	require.Len(t, ops, described, "ops has an entry for what is no route")
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background()))
}
