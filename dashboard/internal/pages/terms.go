package pages

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
)

// terms are the tokens of a query: "workflow:checkout status:failed order-4".
type terms []string

// Bounds of a query: each term is shown as a link that repeats all others.
const (
	maxQuery = 2000 // bytes
	maxTerms = 20
)

// parseTerms splits a query into its terms. One beyond the bounds is refused as a whole:
// part of it would find the wrong runs.
func parseTerms(query string) (terms, error) {
	if len(query) > maxQuery {
		return nil, web.BadRequest("the filter has %d bytes: at most %d can be used", len(query), maxQuery)
	}
	ts := strings.Fields(query)
	if len(ts) > maxTerms {
		return nil, web.BadRequest("the filter has %d words: at most %d can be used", len(ts), maxTerms)
	}
	return ts, nil
}

// termNames are the names before a colon, and what the API calls them.
var termNames = map[string]string{
	"workflow": "workflow", "version": "version", "status": "status", "code": "code", "queue": "queue", "parent": "parent",
	"key": "key", "error": "error", "since": "since", "until": "until", "prefix": "prefix", "owner": "owner",
	"sort": "order", // ids may begin with "order:"
}

// columnsTerm is the name of a term that says what the list shows, not which runs.
const columnsTerm = "columns"

// split cuts a term into name and value. A term without a known name is part of an id.
func (ts terms) split(t string) (name, value string) {
	if name, value, ok := strings.Cut(t, ":"); ok && (termNames[name] != "" || name == columnsTerm) {
		return name, value
	}
	if strings.Contains(t, "=") {
		return "attribute", t
	}
	return "q", t
}

// unknown warns of a term that looks like a filter by a field that does not exist: the
// term is searched for in ids, which may have a colon, too.
func (ts terms) unknown() string {
	for _, t := range ts {
		name, value, ok := strings.Cut(t, ":")
		if !ok || value == "" || termNames[name] != "" || name == columnsTerm || strings.ContainsFunc(name, func(c rune) bool { return c < 'a' || c > 'z' }) || name == "" {
			continue
		}
		return view.Clip(t) + " was looked for in ids: " + view.Clip(name) + " is no field. There are " + strings.Join(slices.Sorted(maps.Keys(termNames)), ", ") + "."
	}
	return ""
}

// listing reads the terms the way the API reads its parameters.
func (ts terms) listing(now time.Time) (*read.Listing, error) {
	values := url.Values{}
	for _, t := range ts {
		name, value := ts.split(t)
		if name == columnsTerm {
			continue
		}
		values.Add(cmp.Or(termNames[name], name), value)
	}
	return read.ParseListing(values, now)
}

// value is the value of the last term of a name; empty: there is none.
func (ts terms) value(name string) string {
	found := ""
	for _, t := range ts {
		if n, value := ts.split(t); n == name {
			found = value
		}
	}
	return found
}

// without returns the query without terms of these names.
func (ts terms) without(names ...string) string {
	var kept []string
	for _, t := range ts {
		if n, _ := ts.split(t); !slices.Contains(names, n) {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, " ")
}

// place matches what comes before the error of a step in a reason: where it was, and in
// which attempt. See durable.StepError.
var place = regexp.MustCompile(`^step .+?: (?:attempt \d+(?: of \d+)?: )?`)

// errorOf is the error in a reason, without where it happened.
func errorOf(reason string) string { return place.ReplaceAllString(reason, "") }

// errorTerm is a term of a filter that finds an error again, with a space before it.
// Filters are words, so it is the longest word that may be shown; empty: there is none.
func errorTerm(redact func(string) string, reason string) string {
	longest := ""
	for word := range strings.FieldsSeq(redact(errorOf(reason))) {
		word = strings.Trim(word, ".,:;…")
		if len(word) > len(longest) && !strings.ContainsAny(word, ":=") && strings.Contains(reason, word) {
			longest = word
		}
	}
	if longest == "" {
		return ""
	}
	return " error:" + longest
}
