package pages

import (
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// queuesView is the list of queues, or one of them.
type queuesView struct {
	Queues []queueView
}

// queueView is a queue as the pages show it.
type queueView struct {
	client.Queue
	URL, Form, API string // of its page, of its forms, and of the routes for them
	Runs, Dead     string // lists of its runs, and of those that failed; empty: no filter can say its name
	Retry          string // the dry run that retries those; empty: none has failed, or it is not allowed
	Age, RateIs    string
	Full           bool
	MayAct         bool
	NextIs         string // when the rate lets the next run begin; empty: now
	ShowPartitions bool
	MorePartitions bool
}

func (li *Lists) queueView(r *http.Request, q *operate.Queue) queueView {
	w := li.Wire.Queue(q)
	v := queueView{Queue: w, URL: li.queueURL(q.Name), MayAct: li.May(r, web.ActionQueue, "") == nil}
	v.Form, v.API = v.URL+"/do/", li.Site.Prefix+"/api/queues/"+client.EscapeID(q.Name)+"/"
	dead := ""
	if !strings.ContainsFunc(q.Name, unicode.IsSpace) { // a filter is words
		runs := "queue:" + client.FilterValue(q.Name)
		dead = runs + " status:failed"
		v.Runs, v.Dead = li.Site.List(runs), li.Site.List(dead)
	}
	if dead != "" && q.Failed > 0 && li.May(r, web.ActionResume, "") == nil {
		v.Retry = li.Site.Prefix + "/bulk?" + url.Values{"act": {"retry"}, "q": {dead}}.Encode()
	}
	if q.Oldest != 0 {
		v.Age = outline.About(time.Duration(w.AgeMS) * time.Millisecond)
	}
	v.RateIs = outline.RateText(q.Queue)
	if q.NextAt > view.Now() {
		v.NextIs = outline.Clock(q.NextAt, view.Now(), view.Zone)
	}
	v.Full = q.Max > 0 && q.Placed >= int64(q.Max)
	v.ShowPartitions = len(w.Partitions) > 1 || len(w.Partitions) == 1 && w.Partitions[0].Name != ""
	v.MorePartitions = len(w.Partitions) == store.MaxPartitionsShown
	return v
}

// queueURL is the address of the page of a queue.
func (sh *Shell) queueURL(name string) string {
	return sh.Site.Prefix + "/queues/" + client.EscapeID(name)
}

// Queues lists the queues.
func (li *Lists) Queues(w http.ResponseWriter, r *http.Request) error {
	v := &queuesView{}
	l := layout{Title: "Queues", Nav: "queues", Body: v, Stream: li.Site.Prefix + "/api/stream"}
	queues, err := operate.On(li.Engine).Queues(r.Context())
	if err != nil {
		return err
	}
	if err := li.badges(r.Context(), &l); err != nil {
		return err
	}
	for i := range queues {
		v.Queues = append(v.Queues, li.queueView(r, &queues[i]))
	}
	return li.render(w, r, http.StatusOK, "queues", l)
}

// Queue shows one queue.
func (li *Lists) Queue(w http.ResponseWriter, r *http.Request) error {
	queues, err := operate.On(li.Engine).Queues(r.Context(), r.PathValue("queue"))
	if err != nil {
		return err
	}
	v := li.queueView(r, &queues[0])
	l := layout{Title: queues[0].Name, Nav: "queues", Body: &v, Stream: li.Site.Prefix + "/api/stream"}
	if err := li.badges(r.Context(), &l); err != nil {
		return err
	}
	return li.render(w, r, http.StatusOK, "queue", l)
}

// DoQueue carries a form of a queue out, and leads back to the queue.
func (li *Lists) DoQueue(serve func(http.ResponseWriter, *http.Request) error, done string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := carryOut(r, map[string]string{"reason": "text"}, func(url.Values) func(http.ResponseWriter, *http.Request) error { return serve }); err != nil {
			return err
		}
		http.Redirect(w, r, li.queueURL(r.PathValue("queue"))+"?done="+done, http.StatusSeeOther)
		return nil
	}
}
