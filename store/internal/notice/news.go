// Package notice has what the stores share of telling listeners, in this process and in
// others, what a commit has done; see store.Notifier.
//
// A message to other processes is a line of text: the sender, a space, and the escaped ids
// of the runs with commas between them, or a star for all runs. An element that begins with
// an exclamation mark, which no escaped id contains, says what has happened to the runs, as
// the number of a store.News. A program that knows no such elements takes it for the id of a
// run that it does not have, and looks at everything.
package notice

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// most is how many runs News names; beyond that, it says to look at everything.
const most = 1024

// News is what commits have done that others may be waiting for. Its zero value is none.
type News struct {
	ids      []string
	mail     []int64 // for each of ids, as in store.Notice
	what     store.News
	vague    bool // of some of the runs it is not known what has happened to them
	all      bool
	requests bool
}

// Everything is the news to look at everything.
func Everything() News { return News{all: true} }

// Requests is the news that there may be requests.
func Requests() News { return News{requests: true} }

// Of is the news that something has happened to these runs, of which nothing more is known.
func Of(ids ...string) (n News) {
	for _, id := range ids {
		n.add(id, 0, -1)
	}
	return n
}

// Empty reports whether there is nothing to tell.
func (n *News) Empty() bool { return len(n.ids) == 0 && !n.all && !n.requests }

func (n *News) add(id string, what store.News, mail int64) {
	n.ids, n.mail = append(n.ids, id), append(n.mail, mail)
	n.what |= what
	n.vague = n.vague || what == 0
	n.bound()
}

// bound gives up naming runs when there are too many.
func (n *News) bound() {
	if len(n.ids) > most {
		n.all = true
	}
	if n.all {
		n.ids, n.mail = nil, nil
	}
}

// Merge adds other news.
func (n *News) Merge(o News) {
	if len(o.ids) > 0 {
		n.ids, n.mail = append(n.ids, o.ids...), append(n.mail, o.mail...)
	}
	n.what |= o.what
	n.vague, n.all, n.requests = n.vague || o.vague, n.all || o.all, n.requests || o.requests
	n.bound()
}

// Take returns the news, and leaves none.
func (n *News) Take() News {
	taken := *n
	*n = News{}
	return taken
}

// Tell calls fn with the notices that n amounts to.
func (n *News) Tell(fn func(store.Notice)) {
	switch {
	case n.all:
		fn(store.Notice{})
		return
	case len(n.ids) > 0:
		fn(store.Notice{RunIDs: n.ids, Mail: n.numbers(), News: n.known()})
	}
	if n.requests {
		fn(store.Notice{Requests: true})
	}
}

// numbers returns what is known of messages, nil if that is nothing.
func (n *News) numbers() []int64 {
	if slices.ContainsFunc(n.mail, func(m int64) bool { return m > 0 }) {
		return n.mail
	}
	return nil
}

func (n *News) known() store.News {
	if n.vague {
		return 0
	}
	return n.what
}

// Created notes that a run was inserted.
func (n *News) Created(run *store.Run, now store.Time) {
	switch {
	case run.Owner != "":
	case run.Due(now):
		n.add(run.ID, store.NewsClaimable, 0)
	case run.WakeAt > now:
		n.add(run.ID, store.NewsStatus|store.NewsTime, 0)
	default:
		n.add(run.ID, store.NewsStatus, 0)
	}
}

// Changed notes that the row of a run was written; after need not have more than Owner,
// Status, Paused and WakeAt, and before the same but for WakeAt. due says whether a claim may take
// the run, as far as it is known.
func (n *News) Changed(before, after *store.Run, due bool) {
	var what store.News
	if after.Owner != before.Owner || after.Status != before.Status || after.Paused != before.Paused {
		what |= store.NewsStatus
	}
	if after.Owner == "" && due {
		what |= store.NewsClaimable
	}
	if after.Owner == "" && after.WakeAt != 0 && !after.Status.Terminal() {
		what |= store.NewsTime
	}
	if over(after.Status) && !over(before.Status) {
		what |= store.NewsPlace
	}
	if what == 0 && after.Owner == "" {
		what = store.NewsStatus
	}
	if what != 0 {
		n.add(after.ID, what, 0)
	}
}

// Carried is Changed for a store that knows of the row no more than Owner, Status and Paused, and what c sets.
func (n *News) Carried(c *store.Change, before, after *store.Run) {
	row, may := *after, MayBeDue(after.Status)
	switch {
	case c.Row != nil && c.Row.WakeAt != nil:
		row.WakeAt = *c.Row.WakeAt
	case may && row.Status != store.Interrupted:
		row.WakeAt = 1 // it may have a time
	}
	n.Changed(before, &row, may)
}

// over reports whether a run of this status holds no place that it may have held before.
func over(s store.Status) bool { return s.Terminal() || s == store.Interrupted }

// MayBeDue reports whether a run of this status, of which nothing else is known, may be due.
func MayBeDue(s store.Status) bool {
	return s == store.Pending || s == store.Interrupted || s == store.Waiting
}

// Sent notes that the message with this number was delivered to a run.
func (n *News) Sent(id, owner string, number int64) {
	what := store.NewsMail
	if owner == "" {
		what |= store.NewsClaimable
	}
	n.add(id, what, number)
}

// Deleted notes that a run is gone.
func (n *News) Deleted(id string) { n.add(id, store.NewsStatus|store.NewsPlace, 0) }

// Messages puts news into as few messages as possible, each of at most size bytes unless a
// single id is longer.
func (n *News) Messages(from string, size int) []string {
	everything := []string{from + " *"}
	if n.all || len(n.ids) == 0 {
		return everything
	}
	ids := slices.Compact(slices.Sorted(slices.Values(n.ids)))
	mark := ""
	if what := n.known(); what != 0 {
		mark = ",!" + strconv.Itoa(int(what))
	}
	var list []string
	var b strings.Builder
	for _, id := range ids {
		id = url.QueryEscape(id)
		if b.Len() > 0 && b.Len()+1+len(id)+len(mark) > size {
			list = append(list, b.String()+mark)
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteString(from + " ")
		} else {
			b.WriteByte(',')
		}
		b.WriteString(id)
	}
	if list = append(list, b.String()+mark); len(list) > 4 {
		return everything
	}
	return list
}

// Parse reads a message. What it does not understand, such as the form of a newer program,
// is the news to look at everything.
func Parse(message string) (from string, n News) {
	from, list, ok := strings.Cut(message, " ")
	if !ok || list == "*" || strings.Contains(list, " ") {
		return from, Everything()
	}
	var what store.News
	for f := range strings.SplitSeq(list, ",") {
		if mark, is := strings.CutPrefix(f, "!"); is {
			v, err := strconv.ParseUint(mark, 10, 16)
			if err != nil {
				return from, Everything()
			}
			what |= store.News(v)
			continue
		}
		id, err := url.QueryUnescape(f)
		if err != nil {
			return from, Everything()
		}
		n.ids, n.mail = append(n.ids, id), append(n.mail, -1)
	}
	if len(n.ids) == 0 {
		return from, Everything()
	}
	n.what, n.vague = what, what == 0
	n.bound()
	return from, n
}
