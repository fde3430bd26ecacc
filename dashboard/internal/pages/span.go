package pages

import (
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/store"
)

// spanView is the choice of when the runs that are listed were started.
type spanView struct {
	Label    string // what is chosen
	Choices  []view.Toggle
	From, To string // as the fields of the form hold them
	Zone     string
}

// spans are the choices that one click makes.
var spans = []struct{ Since, Label string }{{"1h", "Last hour"}, {"24h", "Last 24 hours"}, {"7d", "Last 7 days"}, {"30d", "Last 30 days"}}

// withSpan returns the query with the times of the form in place of its own. An empty
// field leaves what the query says.
func withSpan(query string, values url.Values) (string, error) {
	for _, field := range []struct{ name, term string }{{"from", "since"}, {"to", "until"}} {
		text := strings.TrimSpace(values.Get(field.name))
		if text == "" {
			continue
		}
		if text == spanText(fixed(terms(strings.Fields(query)).value(field.term))) {
			continue // as it was shown
		}
		at, err := spanMoment(text)
		if err != nil {
			return query, err
		}
		query = strings.TrimSpace(terms(strings.Fields(query)).without(field.term) + " " + field.term + ":" + at.UTC().Format(time.RFC3339))
	}
	return query, nil
}

// fixed is the moment that a term names; 0: there is none, or it is counted back from now.
func fixed(value string) store.Time {
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return 0
	}
	return store.TimeOf(at)
}

// spanOf offers the choices. The fields hold those times of the filter that are not counted
// back from now.
func spanOf(site view.Site, ts terms) spanView {
	from, to := ts.value("since"), ts.value("until")
	rest := ts.without("since", "until")
	v := spanView{Label: "Any time", Zone: view.Now().Time().In(view.Zone).Format("MST")}
	switch {
	case from != "" && to != "":
		v.Label = "Started in a span"
	case from != "":
		v.Label = "Started since then"
	case to != "":
		v.Label = "Started until then"
	}
	v.Choices = append(v.Choices, view.Toggle{Label: "Any time", URL: site.List(rest), On: from == "" && to == ""})
	for _, s := range spans {
		on := from == s.Since && to == ""
		if on {
			v.Label = s.Label
		}
		v.Choices = append(v.Choices, view.Toggle{Label: s.Label, URL: site.List(strings.TrimSpace(rest + " since:" + s.Since)), On: on})
	}
	v.From, v.To = spanText(fixed(from)), spanText(fixed(to))
	return v
}

func spanText(t store.Time) string {
	if t == 0 {
		return ""
	}
	return t.Time().In(view.Zone).Format(time.DateTime)
}
