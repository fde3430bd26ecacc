package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"
)

// terms are the tokens of a query: "workflow:checkout status:failed order-4".
type terms []string

func parseTerms(query string) terms { return strings.Fields(query) }

// names that stand before a colon, and what they are to the API.
var termNames = map[string]string{
	"workflow": "workflow", "version": "version", "status": "status", "code": "code", "queue": "queue", "parent": "parent",
	"key": "key", "error": "error", "since": "since", "until": "until", "prefix": "prefix", "owner": "owner",
	"sort": "order", // ids may begin with "order:"
}

// split takes a term apart; a term without a known name is part of an id.
func (ts terms) split(t string) (name, value string) {
	if name, value, ok := strings.Cut(t, ":"); ok && termNames[name] != "" {
		return name, value
	}
	if strings.Contains(t, "=") {
		return "attribute", t
	}
	return "q", t
}

// listing makes of the terms what the API would of its parameters.
func (ts terms) listing(now time.Time) (*listing, error) {
	values := url.Values{}
	for _, t := range ts {
		name, value := ts.split(t)
		values.Add(cmp.Or(termNames[name], name), value)
	}
	return parseListing(values, now)
}

// without returns the query without terms of a name.
func (ts terms) without(name string) string {
	var kept []string
	for _, t := range ts {
		if n, _ := ts.split(t); n != name {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, " ")
}

func (h *handler) tokens(ts terms) []tokenView {
	var out []tokenView
	for i, t := range ts {
		rest := slices.Concat(ts[:i:i], ts[i+1:])
		out = append(out, tokenView{Text: t, Without: h.listURL(strings.Join(rest, " "))})
	}
	return out
}
