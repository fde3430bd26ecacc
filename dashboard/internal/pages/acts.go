package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
)

// A Form is a form of a page that does what a route of the API does. Without a script the
// browser submits the form, and it is turned into the request that the script would have
// sent.
type Form struct {
	Name   string
	Action string            // that is passed to May
	fields map[string]string // name to kind: text, number, flag, json, jsons
	serve  func(url.Values) func(http.ResponseWriter, *http.Request) error
	done   string // the message afterwards: a key of notices
}

// Forms returns the forms of the page, one for each act.
func (rp *RunPage) Forms() []Form {
	fixed := func(serve func(http.ResponseWriter, *http.Request) error) func(url.Values) func(http.ResponseWriter, *http.Request) error {
		return func(url.Values) func(http.ResponseWriter, *http.Request) error { return serve }
	}
	reason := map[string]string{"reason": "text"}
	return []Form{
		{"resume", web.ActionResume, map[string]string{"reset_failures": "flag", "force": "flag", "from_checkpoint": "number"}, fixed(rp.acts.Resume), "resume"},
		{"cancel", web.ActionCancel, reason, fixed(rp.acts.Cancel), "cancel"},
		{"pause", web.ActionPause, reason, fixed(rp.acts.Pause), "pause"},
		{"unpause", web.ActionUnpause, reason, fixed(rp.acts.Unpause), "unpause"},
		{"fork", web.ActionFork, map[string]string{"id": "text", "at": "number", "edits": "jsons", "reason": "text", "force": "flag"}, fixed(rp.acts.Fork), "fork"},
		{"jump", web.ActionJump, map[string]string{"to": "number", "reason": "text", "force": "flag"}, fixed(rp.acts.Jump), "jump"},
		{"edit", web.ActionEdit, map[string]string{"key": "text", "value": "json", "reason": "text", "force": "flag"}, fixed(rp.acts.Edit), "edit"},
		{"answer", web.ActionAnswer, map[string]string{"wait": "text", "reason": "text", "value": "json"}, func(form url.Values) func(http.ResponseWriter, *http.Request) error {
			verdict := form.Get("verdict")
			if verdict != "approve" && verdict != "reject" {
				return func(http.ResponseWriter, *http.Request) error {
					return web.BadRequest("verdict=%q is neither approve nor reject: nothing was answered", view.Clip(verdict))
				}
			}
			return rp.acts.Verdict(verdict == "approve")
		}, ""},
	}
}

// Do carries a form out and leads back to the run.
func (rp *RunPage) Do(a Form) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		answer, err := carryOut(r, a.fields, a.serve)
		if err != nil {
			return err
		}
		id, done := r.PathValue("id"), a.done
		var said client.Done
		if a.Name == "fork" && json.Unmarshal(answer.body.Bytes(), &said) == nil && said.RunID != "" {
			id = said.RunID
		}
		if a.Name == "cancel" && json.Unmarshal(answer.body.Bytes(), &said) == nil && said.Run != nil && said.Run.Status != "cancelled" {
			done = "cancelling" // the page says which process carries it out
		}
		if a.Name == "answer" {
			done = "approve"
			if r.PostForm.Get("verdict") == "reject" {
				done = "reject"
			}
		}
		http.Redirect(w, r, rp.Site.Run(id)+"?done="+done, http.StatusSeeOther)
		return nil
	}
}

// carryOut does what a form asks for, as a route of the API does it.
func carryOut(r *http.Request, fields map[string]string, serve func(url.Values) func(http.ResponseWriter, *http.Request) error) (*kept, error) {
	if err := r.ParseForm(); err != nil {
		return nil, web.BadForm(err)
	}
	body, err := jsonOf(r.PostForm, fields)
	if err != nil {
		return nil, err
	}
	api := r.Clone(r.Context())
	api.Body = io.NopCloser(bytes.NewReader(body))
	api.URL.RawQuery = ""
	answer := &kept{header: http.Header{}}
	return answer, serve(r.PostForm)(answer, api)
}

// jsonOf turns a form into the body for the route of the API.
func jsonOf(form url.Values, fields map[string]string) ([]byte, error) {
	m := map[string]any{}
	for name, kind := range fields {
		if kind == "jsons" {
			values, err := jsonsOf(form, name)
			if err != nil {
				return nil, err
			}
			if len(values) > 0 {
				m[name] = values
			}
			continue
		}
		s := form.Get(name)
		if s == "" {
			continue
		}
		switch kind {
		case "number":
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return nil, web.BadRequest("%s=%q is no number", name, s)
			}
			m[name] = n
		case "flag":
			m[name] = true
		case "json":
			if !json.Valid([]byte(s)) {
				return nil, web.BadRequest("%s is not JSON: a text needs quotation marks around it", name)
			}
			m[name] = json.RawMessage(s)
		default:
			m[name] = s
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("dashboard: a form cannot be encoded: %w", err)
	}
	return b, nil
}

// jsonsOf makes an object of the fields of a form that are called "name:key". None of them
// may be empty: an intended value would be missing.
func jsonsOf(form url.Values, name string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for field := range form {
		key, ok := strings.CutPrefix(field, name+":")
		if !ok {
			continue
		}
		s := form.Get(field)
		if !json.Valid([]byte(s)) {
			return nil, web.BadRequest("the result of %s is not JSON: a text needs quotation marks around it, and nothing is null", key)
		}
		values[key] = json.RawMessage(s)
	}
	return values, nil
}

// kept keeps an answer instead of sending it.
type kept struct {
	header http.Header
	body   bytes.Buffer
}

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }
func (k *kept) WriteHeader(int)             {}
