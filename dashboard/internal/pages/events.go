package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

type eventView struct {
	Seq       int64
	Time      string
	Branch    int32
	Type, Key string
	Detail    string
	Gone      bool
}

// eventsView is the list of events on the page of a run.
type eventsView struct {
	Events  []eventView
	Earlier string // address of older events
}

const eventsShown = 25

// events lists the newest events, of all branches.
func (rp *RunPage) events(ctx context.Context, o *outline.Outline, q *view.Query, link func(url.Values) string) (v eventsView, err error) {
	before, _ := strconv.ParseInt(q.Values.Get("before"), 10, 64)
	last := o.LastSeq
	if before > 0 && before <= last {
		last = before - 1
	}
	hist, err := rp.Engine.Store().Load(ctx, o.Run.ID, store.Cursor{All: true, After: max(last-eventsShown, 0), AfterMessage: 1<<63 - 1})
	if err != nil {
		return v, fmt.Errorf("run %s: %w", o.Run.ID, err)
	}
	lineage := store.LineageOf(hist.Branches, hist.Run.Branch)
	for e, err := range hist.Events {
		if err != nil {
			return v, fmt.Errorf("run %s: reading its events: %w", o.Run.ID, err)
		}
		if e.Seq > last {
			break
		}
		v.Events = append(v.Events, eventView{
			Seq: e.Seq, Time: e.At.Time().In(view.Zone).Format("15:04:05.000"), Branch: e.Branch, Type: string(e.Type), Key: e.Key,
			Detail: detailOf(rp.Redact.Event(&e)), Gone: !lineage.Has(&e),
		})
	}
	slices.Reverse(v.Events)
	if n := len(v.Events); n > 0 && v.Events[n-1].Seq > 1 {
		v.Earlier = link(q.With("before", strconv.FormatInt(v.Events[n-1].Seq, 10))) + "#events"
	}
	return v, nil
}

// detailOf is what an event says besides its type and key.
func detailOf(e *store.Event) string {
	e2 := *e
	e2.Key, e2.Attempt = "", 0
	said := strings.TrimPrefix(strings.TrimPrefix(operate.Describe(e2), string(e.Type)), ": ")
	var parts []string
	if e.Attempt > 1 || e.Attempt == 1 && e.Type == store.AttemptFailed {
		parts = append(parts, fmt.Sprintf("attempt %d", e.Attempt))
	}
	if e.Took > 0 {
		parts = append(parts, outline.Duration(e.Took))
	}
	if said = strings.TrimSpace(said); said != "" {
		parts = append(parts, outline.OneLine(said, 160))
	}
	var d struct {
		Prompt string `json:"prompt"`
		Name   string `json:"name"`
		Child  string `json:"child"`
		By     string `json:"by"`
	}
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &d) == nil {
		switch {
		case d.Prompt != "":
			parts = append(parts, "“"+outline.OneLine(d.Prompt, 120)+"”")
		case d.Child != "":
			parts = append(parts, d.Child)
		case e.Type.Claims():
			parts = append(parts, d.Name)
		case d.By != "":
			parts = append(parts, "by "+d.By)
		}
	}
	return strings.Join(parts, " · ")
}
