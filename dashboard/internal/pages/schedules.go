package pages

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// schedulesView is the list of schedules.
type schedulesView struct {
	Schedules []scheduleView
	More      int
}

// schedulesPerPage is how many schedules a page shows.
const schedulesPerPage = 200

// scheduleView is a schedule as the pages show it.
type scheduleView struct {
	client.Schedule
	URL, Form, API string // of its page, of its forms, and of the routes for them
	MayAct         bool
	Nexts          []momentView
	Fires          []fireView
	Since          string // for how long it has been paused
	Wrong          string // what a person should look at; empty: nothing
	Plan           *backfillView
}

// momentView is a moment, for people and for programs.
type momentView struct{ Text, At, In string }

type fireView struct {
	momentView
	Outcome string // in words
	Class   string // of its colour
	RunID   string
	URL     string
	Status  view.Status
	Reason  string
}

// backfillView is what a backfill would do.
type backfillView struct {
	client.Backfill
	From, To string
	Problem  string // why it cannot be done
}

func moment(t time.Time) momentView {
	now, at := view.Now(), store.TimeOf(t)
	m := momentView{Text: outline.Clock(at, now, view.Zone), At: t.UTC().Format(time.RFC3339)}
	if at > now {
		m.In = "in " + outline.About(at.Sub(now))
	} else {
		m.In = outline.About(now.Sub(at)) + " ago"
	}
	return m
}

func (li *Lists) scheduleView(r *http.Request, s *operate.ScheduleState) scheduleView {
	v := scheduleView{Schedule: li.Wire.Schedule(s), URL: li.scheduleURL(s.Name), MayAct: li.May(r, web.ActionSchedule, "") == nil}
	v.Form, v.API = v.URL+"/do/", li.Site.Prefix+"/api/schedules/"+client.EscapeID(s.Name)+"/"
	for _, at := range s.Next {
		v.Nexts = append(v.Nexts, moment(at))
	}
	if s.Paused {
		v.Since = outline.About(view.Now().Sub(store.TimeOf(s.PausedAt)))
	}
	for _, f := range v.Last {
		row := fireView{momentView: moment(f.At), Outcome: f.Outcome, RunID: f.RunID, Reason: f.Reason}
		switch f.Outcome {
		case "missed":
			row.Class = "c-wait"
			if f.Count > 1 {
				row.Outcome = count.Number(f.Count) + " missed, the last of them then"
			}
		case "refused":
			row.Class = "c-fail"
		}
		if f.Status != "" {
			row.URL, row.Status = li.Site.Run(f.RunID), view.Statuses[store.Status(f.Status)]
		}
		v.Fires = append(v.Fires, row)
	}
	switch {
	case v.Problem != "":
		v.Wrong = v.Problem
	case len(v.Fires) > 0 && v.Fires[0].Class != "":
		v.Wrong = strings.TrimSpace("last: " + v.Fires[0].Outcome + " " + v.Fires[0].Reason)
	}
	return v
}

// scheduleURL is the address of the page of a schedule.
func (sh *Shell) scheduleURL(name string) string {
	return sh.Site.Prefix + "/schedules/" + client.EscapeID(name)
}

// Schedules lists the schedules.
func (li *Lists) Schedules(w http.ResponseWriter, r *http.Request) error {
	v := &schedulesView{}
	l := layout{Title: "Schedules", Nav: "schedules", Body: v, Stream: li.Site.Prefix + "/api/stream"}
	states, err := li.read.Schedules(r.Context())
	if err != nil {
		return err
	}
	if err := li.badges(r.Context(), &l); err != nil {
		return err
	}
	for i := range states[:min(len(states), schedulesPerPage)] {
		v.Schedules = append(v.Schedules, li.scheduleView(r, &states[i]))
	}
	v.More = len(states) - len(v.Schedules)
	return li.render(w, r, http.StatusOK, "schedules", l)
}

// Schedule shows one schedule, and what a backfill of the span in the address would do.
func (li *Lists) Schedule(w http.ResponseWriter, r *http.Request) error {
	s, err := li.read.Schedule(r.Context(), r.PathValue("schedule"))
	if err != nil {
		return err
	}
	v := li.scheduleView(r, s)
	if q := r.URL.Query(); v.MayAct && q.Get("from")+q.Get("to") != "" {
		v.Plan = li.planBackfill(r, q.Get("from"), q.Get("to"))
	}
	l := layout{Title: s.Name, Nav: "schedules", Body: &v, Stream: li.Site.Prefix + "/api/stream"}
	if err := li.badges(r.Context(), &l); err != nil {
		return err
	}
	return li.render(w, r, http.StatusOK, "schedule", l)
}

// planBackfill makes the dry run of a backfill.
func (li *Lists) planBackfill(r *http.Request, from, to string) *backfillView {
	p := &backfillView{From: view.Clip(from), To: view.Clip(to)}
	req := client.BackfillRequest{DryRun: true}
	var err error
	if req.From, err = spanMoment(from); err == nil {
		req.To, err = spanMoment(to)
	}
	if err == nil {
		p.Backfill, err = li.acts.Backfill(r, &req)
	}
	if err != nil {
		_, problem := li.Problem(err)
		p.Problem = problem.Error.Message
		return p
	}
	p.From, p.To = req.From.UTC().Format(time.RFC3339), req.To.UTC().Format(time.RFC3339)
	return p
}

// spanMoment reads a moment as people type it: RFC 3339, a day, or a day and a time of the
// server's zone.
func spanMoment(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, form := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(form, s, view.Zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, web.BadRequest("%s is not a time: write 2026-11-23 02:00, or 2026-11-23T02:00:00Z", view.Clip(s))
}

// A ScheduleAct is an act on a schedule.
type ScheduleAct struct {
	Name   string
	Serve  func(http.ResponseWriter, *http.Request) error // as a route of the API
	fields map[string]string
}

// ScheduleActs returns the acts on schedules.
func (li *Lists) ScheduleActs() []ScheduleAct {
	return []ScheduleAct{
		{"pause", li.acts.PauseSchedule, map[string]string{"reason": "text"}},
		{"resume", li.acts.ResumeSchedule, nil},
		{"trigger", li.acts.TriggerSchedule, map[string]string{"key": "text"}},
		{"backfill", li.acts.BackfillSchedule, map[string]string{"from": "text", "to": "text"}},
		{"delete", li.acts.DeleteSchedule, map[string]string{"reason": "text"}},
	}
}

// DoSchedule carries a form of a schedule out, and leads back to the schedule.
func (li *Lists) DoSchedule(a ScheduleAct) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := carryOut(r, a.fields, func(url.Values) func(http.ResponseWriter, *http.Request) error { return a.Serve }); err != nil {
			return err
		}
		back := li.scheduleURL(r.PathValue("schedule"))
		if a.Name == "delete" {
			back = li.Site.Prefix + "/schedules"
		}
		http.Redirect(w, r, back+"?done="+a.Name+"schedule", http.StatusSeeOther)
		return nil
	}
}
