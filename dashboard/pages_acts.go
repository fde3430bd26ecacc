package dashboard

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
)

// A pageAct is a form of a page that does what a route of the API does: without a
// script the form comes here and is turned into what the script would have sent.
type pageAct struct {
	name   string
	action Action
	fields map[string]string // name to kind: text, number, flag, json, jsons
	serve  func(*handler, url.Values) func(http.ResponseWriter, *http.Request) error
	done   string // what is said afterwards: a key of notices
}

// notices are what a page may say about an act that was done. An address cannot
// make it say anything else.
var notices = map[string]string{
	"resume": "Resumed.", "cancel": "Cancelled.", "cancelling": "The cancel is recorded.", "pause": "Paused.", "unpause": "It goes on.", "approve": "Approved.", "reject": "Rejected.",
	"fork": "Forked: this is the copy.", "jump": "Taken back.", "edit": "The result was replaced. Resume the run to go on with it.",
}

func (h *handler) pageActs() []pageAct {
	fixed := func(serve func(*handler, http.ResponseWriter, *http.Request) error) func(*handler, url.Values) func(http.ResponseWriter, *http.Request) error {
		return func(h *handler, _ url.Values) func(http.ResponseWriter, *http.Request) error {
			return func(w http.ResponseWriter, r *http.Request) error { return serve(h, w, r) }
		}
	}
	reason := map[string]string{"reason": "text"}
	return []pageAct{
		{"resume", ActionResume, map[string]string{"reset_failures": "flag", "force": "flag", "from_checkpoint": "number"}, fixed((*handler).postResume), "resume"},
		{"cancel", ActionCancel, reason, fixed((*handler).postCancel), "cancel"},
		{"pause", ActionPause, reason, fixed((*handler).postPause), "pause"},
		{"unpause", ActionUnpause, reason, fixed((*handler).postUnpause), "unpause"},
		{"fork", ActionFork, map[string]string{"id": "text", "at": "number", "edits": "jsons", "reason": "text", "force": "flag"}, fixed((*handler).postFork), "fork"},
		{"jump", ActionJump, map[string]string{"to": "number", "reason": "text", "force": "flag"}, fixed((*handler).postJump), "jump"},
		{"edit", ActionEdit, map[string]string{"key": "text", "value": "json", "reason": "text", "force": "flag"}, fixed((*handler).postEdit), "edit"},
		{"answer", ActionAnswer, map[string]string{"wait": "text", "reason": "text", "value": "json"}, func(h *handler, form url.Values) func(http.ResponseWriter, *http.Request) error {
			return h.postVerdict(form.Get("verdict") != "reject")
		}, ""},
	}
}

// act carries a form out and leads back to the run.
func (h *handler) act(a pageAct) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := r.ParseForm(); err != nil {
			return badForm(err)
		}
		body, err := jsonOf(r.PostForm, a.fields)
		if err != nil {
			return err
		}
		api := r.Clone(r.Context())
		api.Body = io.NopCloser(bytes.NewReader(body))
		api.URL.RawQuery = ""
		answer := &kept{header: http.Header{}}
		if err := a.serve(h, r.PostForm)(answer, api); err != nil {
			return err
		}
		id, done := r.PathValue("id"), a.done
		var said client.Done
		if a.name == "fork" && json.Unmarshal(answer.body.Bytes(), &said) == nil && said.RunID != "" {
			id = said.RunID
		}
		if a.name == "cancel" && json.Unmarshal(answer.body.Bytes(), &said) == nil && said.Run != nil && said.Run.Status != "cancelled" {
			done = "cancelling" // the page says who carries it out
		}
		if a.name == "answer" {
			done = "approve"
			if r.PostForm.Get("verdict") == "reject" {
				done = "reject"
			}
		}
		http.Redirect(w, r, h.runURL(id)+"?done="+done, http.StatusSeeOther)
		return nil
	}
}

// jsonOf makes the body of the API's route of a form.
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
				return nil, badRequest("%s=%q is no number", name, s)
			}
			m[name] = n
		case "flag":
			m[name] = true
		case "json":
			if !json.Valid([]byte(s)) {
				return nil, badRequest("%s is no JSON: a text needs quotation marks around it", name)
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

// jsonsOf makes an object of the fields of a form that are called "name:key". None
// of them may be empty: what somebody meant to give would be missed.
func jsonsOf(form url.Values, name string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for field := range form {
		key, ok := strings.CutPrefix(field, name+":")
		if !ok {
			continue
		}
		s := form.Get(field)
		if !json.Valid([]byte(s)) {
			return nil, badRequest("the result of %s is no JSON: a text needs quotation marks around it, and nothing is null", key)
		}
		values[key] = json.RawMessage(s)
	}
	return values, nil
}

// kept is an answer that is not sent.
type kept struct {
	header http.Header
	body   bytes.Buffer
}

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }
func (k *kept) WriteHeader(int)             {}
