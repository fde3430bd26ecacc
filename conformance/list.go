package conformance

import (
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

var listCases = []Case{
	{Name: "an empty store lists nothing", Clauses: "S16", run: listEmpty},
	{Name: "each field of a filter selects by itself", Clauses: "S16", run: listFields},
	{Name: "every two fields of a filter must match both", Clauses: "S16", run: listPairs},
	{Name: "values are compared as they are, whatever they contain", Clauses: "S16", run: listLiteral},
	{Name: "time windows are half open", Clauses: "S16", run: listWindows},
	{Name: "orphans and mail are found", Clauses: "S16, S20", run: listOrphansAndMail},
	{Name: "what is not archived is found", Clauses: "S16", run: listUnarchived},
	{Name: "a message that came since a run was archived is not archived", Clauses: "S10, S13, S14", run: listUnarchivedMessage},
	{Name: "the newest come first, or the oldest", Clauses: "S16", run: listOrder},
	{Name: "the last event comes along where it is asked for", Clauses: "S4, S16", run: listWithLast},
}

func listEmpty(t *T) {
	s := t.open()
	p, err := s.List(t.Context(), store.Filter{})
	require.NoError(t, err)
	require.Empty(t, p.Runs)
	require.Empty(t, p.Next)
	require.Empty(t, t.count(s, store.Filter{}, store.ByStatus))
	t.run(s, "r")
	require.Empty(t, t.list(s, store.Filter{Workflows: []string{"none"}}))
}

// shelf creates runs that differ in every field a filter uses, and returns them as they
// are read back.
func (t *T) shelf(s store.Store) []store.Run {
	t.Helper()
	t.beat(s, "alive")
	pick := func(i int, values ...string) string { return values[i%len(values)] }
	base := t.now()
	for i := range 24 {
		id := pick(i, "order-", "order_", "Order-", "mail/") + string(rune('a'+i))
		status := store.Statuses()[i%8]
		w := t.run(s, id, func(r *store.Run) {
			r.CreatedAt = base + store.Time(i)
			r.Workflow = pick(i, "order", "mail", "Order")
			r.Version = pick(i/3, "v1", "v2")
			r.Status = store.Running
			if !status.Terminal() {
				r.Status = status
				r.Owner = pick(i, "", "alive", "dead")
				r.Paused = i%5 == 1
			}
			r.Code = pick(i, "", "not_registered", "quarantined")
			r.Queue = pick(i/2, "", "mail", "print")
			r.Parent = pick(i/4, "", "p1", "p2")
			r.Attributes = map[string]string{"customer": pick(i, "a", "b", "c", "d"), "tier": pick(i/5, "", "gold")}
			if i%6 == 0 {
				delete(r.Attributes, "tier")
			}
		})
		if status.Terminal() {
			c := w.end(status)
			c.Row.EndedAt = ptr(base + store.Time(1000+i))
			w.must(s, c)
		} else if i%2 == 0 {
			t.must(s, send(signal(id, "1")))
		}
	}
	runs := t.list(s, store.Filter{OldestFirst: true})
	require.Len(t, runs, 24)
	return runs
}

// criterion is a filter by one field, and what it means.
type criterion struct {
	name  string
	set   func(*store.Filter)
	match func(*store.Run) bool
}

// Each of the criteria selects some runs of the shelf but not all.
func criteria(shelf []store.Run) []criterion {
	in := func(values ...string) func(string) bool {
		return func(v string) bool { return slices.Contains(values, v) }
	}
	mid, updated := shelf[12].CreatedAt, make([]store.Time, len(shelf))
	for i, r := range shelf {
		updated[i] = r.UpdatedAt
	}
	slices.Sort(updated)
	half := updated[12]
	some := []string{shelf[1].ID, shelf[5].ID, shelf[20].ID, "absent"}
	ended := shelf[0].CreatedAt + 1012
	terminal := func(r *store.Run) bool { return r.Status.Terminal() }
	return []criterion{
		{"IDs", func(f *store.Filter) { f.IDs = some }, func(r *store.Run) bool { return in(some...)(r.ID) }},
		{"IDPrefix", func(f *store.Filter) { f.IDPrefix = "order_" }, func(r *store.Run) bool { return len(r.ID) > 6 && r.ID[:6] == "order_" }},
		{"Workflows", func(f *store.Filter) { f.Workflows = []string{"order"} }, func(r *store.Run) bool { return r.Workflow == "order" }},
		{"Workflows, two", func(f *store.Filter) { f.Workflows = []string{"mail", "Order"} }, func(r *store.Run) bool { return r.Workflow != "order" }},
		{"Versions", func(f *store.Filter) { f.Versions = []string{"v2"} }, func(r *store.Run) bool { return r.Version == "v2" }},
		{"Statuses", func(f *store.Filter) { f.Statuses = []store.Status{store.Running, store.Failed} }, func(r *store.Run) bool { return r.Status == store.Running || r.Status == store.Failed }},
		{"Codes", func(f *store.Filter) { f.Codes = []string{"quarantined"} }, func(r *store.Run) bool { return r.Code == "quarantined" }},
		{"Codes, none", func(f *store.Filter) { f.Codes = []string{""} }, func(r *store.Run) bool { return r.Code == "" }},
		{"Queues", func(f *store.Filter) { f.Queues = []string{"mail"} }, func(r *store.Run) bool { return r.Queue == "mail" }},
		{"Queues, unnamed", func(f *store.Filter) { f.Queues = []string{"", "print"} }, func(r *store.Run) bool { return r.Queue != "mail" }},
		{"Owners", func(f *store.Filter) { f.Owners = []string{"dead"} }, func(r *store.Run) bool { return r.Owner == "dead" }},
		{"Owners, nobody", func(f *store.Filter) { f.Owners = []string{""} }, func(r *store.Run) bool { return r.Owner == "" }},
		{"Parents", func(f *store.Filter) { f.Parents = []string{"p1", "p2"} }, func(r *store.Run) bool { return r.Parent != "" }},
		{"Parents, roots", func(f *store.Filter) { f.Parents = []string{""} }, func(r *store.Run) bool { return r.Parent == "" }},
		{"Attributes", func(f *store.Filter) { f.Attributes = map[string]string{"customer": "b"} }, func(r *store.Run) bool { return r.Attributes["customer"] == "b" }},
		{"Attributes, two", func(f *store.Filter) { f.Attributes = map[string]string{"customer": "d", "tier": "gold"} }, func(r *store.Run) bool { return r.Attributes["customer"] == "d" && r.Attributes["tier"] == "gold" }},
		{"Attributes, set to nothing", func(f *store.Filter) { f.Attributes = map[string]string{"tier": ""} }, func(r *store.Run) bool { v, ok := r.Attributes["tier"]; return ok && v == "" }},
		{"CreatedFrom", func(f *store.Filter) { f.CreatedFrom = mid }, func(r *store.Run) bool { return r.CreatedAt >= mid }},
		{"CreatedTo", func(f *store.Filter) { f.CreatedTo = mid }, func(r *store.Run) bool { return r.CreatedAt < mid }},
		{"UpdatedFrom", func(f *store.Filter) { f.UpdatedFrom = half }, func(r *store.Run) bool { return r.UpdatedAt >= half }},
		{"UpdatedTo", func(f *store.Filter) { f.UpdatedTo = half }, func(r *store.Run) bool { return r.UpdatedAt < half }},
		{"EndedFrom", func(f *store.Filter) { f.EndedFrom = ended }, func(r *store.Run) bool { return r.EndedAt >= ended }},
		{"EndedTo", func(f *store.Filter) { f.EndedTo = ended }, func(r *store.Run) bool { return r.EndedAt != 0 && r.EndedAt < ended }},
		{"Orphaned", func(f *store.Filter) { f.Orphaned = true }, func(r *store.Run) bool { return r.Owner == "dead" && !terminal(r) }},
		{"Mail", func(f *store.Filter) { f.Mail = true }, func(r *store.Run) bool { return r.Inbox > r.Seen }},
		{"Paused", func(f *store.Filter) { f.Paused = true }, func(r *store.Run) bool { return r.Paused }},
	}
}

func (t *T) requireListed(s store.Store, shelf []store.Run, name string, f store.Filter, match func(*store.Run) bool) int {
	t.Helper()
	var want []store.Run
	for i := range shelf {
		if match(&shelf[i]) {
			want = append(want, shelf[i])
		}
	}
	f.OldestFirst, f.Limit = true, 5
	require.Equal(t, want, t.list(s, f), "S16: %s: exactly the runs that match", name)
	n, err := s.Count(t.Context(), f, "")
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), n[""], "S16: %s: counted", name)
	return len(want)
}

func listFields(t *T) {
	s := t.open()
	shelf := t.shelf(s)
	for _, c := range criteria(shelf) {
		var f store.Filter
		c.set(&f)
		n := t.requireListed(s, shelf, c.name, f, c.match)
		require.NotZero(t, n, "%s selects something", c.name)
		require.Less(t, n, len(shelf), "%s does not select all", c.name)
		t.requireListed(s, shelf, c.name+", each value twice", twice(f), c.match)
	}
	for name, f := range map[string]store.Filter{
		"empty lists":     {IDs: []string{}, Workflows: []string{}, Statuses: []store.Status{}, Owners: []string{}, Attributes: map[string]string{}},
		"the zero filter": {},
	} {
		t.requireListed(s, shelf, name, f, func(*store.Run) bool { return true })
	}
	if c := capabilities(s).RunKinds; c != nil {
		want := map[store.RunKind]bool{}
		for i := range shelf {
			if r := &shelf[i]; !r.Status.Terminal() {
				want[store.RunKind{Workflow: r.Workflow, Version: r.Version, Queue: r.Queue}] = true
			}
		}
		kinds, err := c.RunKinds(t.Context())
		require.NoError(t, err)
		got := map[store.RunKind]bool{}
		for _, k := range kinds {
			require.False(t, got[k], "a kind is told once")
			got[k] = true
		}
		require.Equal(t, want, got, "the kinds of unfinished runs, and no others")
	}
}

// twice names each value of a list again, which is what two flags of a command with the same value do.
func twice(f store.Filter) store.Filter {
	f.IDs, f.Workflows, f.Versions = slices.Repeat(f.IDs, 2), slices.Repeat(f.Workflows, 2), slices.Repeat(f.Versions, 2)
	f.Statuses, f.Codes, f.Queues = slices.Repeat(f.Statuses, 2), slices.Repeat(f.Codes, 2), slices.Repeat(f.Queues, 2)
	f.Owners, f.Parents = slices.Repeat(f.Owners, 2), slices.Repeat(f.Parents, 2)
	return f
}

func listPairs(t *T) {
	s := t.open()
	shelf := t.shelf(s)
	all := criteria(shelf)
	for i, a := range all {
		for _, b := range all[i+1:] {
			var f, fa, fb store.Filter
			a.set(&fa)
			b.set(&fb)
			a.set(&f)
			b.set(&f)
			// Two criteria of one field: the second has replaced the first.
			if overwrites(fa, fb) {
				continue
			}
			t.requireListed(s, shelf, a.name+" and "+b.name, f, func(r *store.Run) bool { return a.match(r) && b.match(r) })
		}
	}
	var f store.Filter
	f.Workflows, f.Statuses, f.Queues, f.Parents = []string{"order"}, []store.Status{store.Pending, store.Running, store.Waiting}, []string{"", "mail"}, []string{"", "p1"}
	f.Attributes, f.CreatedFrom, f.CreatedTo = map[string]string{"customer": "a"}, shelf[0].CreatedAt, shelf[20].CreatedAt
	t.requireListed(s, shelf, "seven fields", f, func(r *store.Run) bool {
		return r.Workflow == "order" && slices.Contains(f.Statuses, r.Status) && r.Queue != "print" && r.Parent != "p2" &&
			r.Attributes["customer"] == "a" && r.CreatedAt < f.CreatedTo
	})
}

func overwrites(a, b store.Filter) bool {
	return a.Workflows != nil && b.Workflows != nil || a.Codes != nil && b.Codes != nil || a.Queues != nil && b.Queues != nil ||
		a.Owners != nil && b.Owners != nil || a.Parents != nil && b.Parents != nil || a.Attributes != nil && b.Attributes != nil
}

func listLiteral(t *T) {
	s := t.open()
	texts := oddTexts()
	texts = texts[:len(texts)-2] // too long for a name
	for _, text := range texts {
		t.run(s, text+"!", func(r *store.Run) {
			r.Workflow, r.Version, r.Queue, r.Parent, r.Owner, r.Code = text, text, text, text, text, text
			r.Attributes = map[string]string{text: text, "other": "x"}
		})
	}
	for _, text := range texts {
		for name, f := range map[string]store.Filter{
			"Workflows": {Workflows: []string{text}}, "Versions": {Versions: []string{text}}, "Queues": {Queues: []string{text}},
			"Parents": {Parents: []string{text}}, "Owners": {Owners: []string{text}}, "Codes": {Codes: []string{text}},
			"Attributes": {Attributes: map[string]string{text: text}}, "IDPrefix": {IDPrefix: text + "!"}, "IDs": {IDs: []string{text + "!"}},
		} {
			require.Equal(t, []string{text + "!"}, ids(t.list(s, f)), "S16: %s %q", name, text)
		}
		require.Empty(t, t.list(s, store.Filter{Attributes: map[string]string{text: "x"}}), "a value belongs to its name")
	}
	require.Len(t, t.list(s, store.Filter{Workflows: texts}), len(texts))
	t.run(s, "torn \uFFFD!", func(r *store.Run) {
		r.Workflow, r.Version, r.Queue, r.Parent, r.Owner, r.Code = "torn \uFFFD", "torn \uFFFD", "torn \uFFFD", "torn \uFFFD", "torn \uFFFD", "torn \uFFFD"
	})
	for _, torn := range []string{"torn \xff", "torn \x00"} {
		for name, f := range map[string]store.Filter{
			"Workflows": {Workflows: []string{torn, "a"}}, "Versions": {Versions: []string{torn, "a"}}, "Queues": {Queues: []string{torn, "a"}},
			"Parents": {Parents: []string{torn, "a"}}, "Owners": {Owners: []string{torn, "a"}}, "Codes": {Codes: []string{torn, "a"}},
			"IDs": {IDs: []string{torn + "!", "a!"}}, "Statuses": {Statuses: []store.Status{store.Status(torn), store.Pending, store.Running}, Workflows: []string{"a"}},
		} {
			require.Equal(t, []string{"a!"}, ids(t.list(s, f)), "S16: %s, beside %q, which no run has", name, torn)
			require.Equal(t, map[string]int64{"": 1}, t.count(s, f, ""), "S16: %s, beside %q, which no run has", name, torn)
		}
	}
	require.Empty(t, t.list(s, store.Filter{IDPrefix: "%"}))
	require.Empty(t, t.list(s, store.Filter{Workflows: []string{"' OR 1=1 --", "x') OR ('1'='1"}, IDPrefix: "'"}))
	require.Equal(t, []string{"UPPER!"}, ids(t.list(s, store.Filter{IDPrefix: "UPP"})), "prefixes are case sensitive")
	require.Equal(t, []string{"emoji 👩‍👩‍👧 🚚!"}, ids(t.list(s, store.Filter{IDPrefix: "emoji 👩"})))
}

func listWindows(t *T) {
	s := t.open()
	base := t.now()
	for i := range 5 {
		w := t.run(s, string(rune('a'+i)), func(r *store.Run) { r.CreatedAt, r.Status = base+store.Time(i), store.Running })
		if i < 3 {
			c := w.end(store.Completed)
			c.Row.EndedAt = ptr(base + store.Time(100+i))
			w.must(s, c)
		}
	}
	at := func(i int) store.Time { return base + store.Time(i) }
	for want, f := range map[string]store.Filter{
		"bcd":   {CreatedFrom: at(1), CreatedTo: at(4)},
		"c":     {CreatedFrom: at(2), CreatedTo: at(3)},
		"":      {CreatedFrom: at(2), CreatedTo: at(2)},
		"de":    {CreatedFrom: at(3)},
		"ab":    {CreatedTo: at(2)},
		"abcde": {CreatedFrom: at(0), CreatedTo: at(5)},
		"b":     {EndedFrom: at(101), EndedTo: at(102)},
		"bc":    {EndedFrom: at(101)},
		"a":     {EndedTo: at(101)},
		"abc":   {EndedTo: at(1000)}, // a run that has not ended is in no such window
	} {
		var got string
		f.OldestFirst = true
		for _, r := range t.list(s, f) {
			got += r.ID
		}
		require.Equal(t, want, got, "S16: %+v", f)
	}
	r := t.row(s, "a")
	require.Contains(t, ids(t.list(s, store.Filter{UpdatedFrom: r.UpdatedAt, UpdatedTo: r.UpdatedAt + 1})), "a", "S24: UpdatedAt is the store's")
	require.NotContains(t, ids(t.list(s, store.Filter{UpdatedTo: r.UpdatedAt})), "a")
	require.NotContains(t, ids(t.list(s, store.Filter{UpdatedFrom: r.UpdatedAt + 1})), "a")
}

func listOrphansAndMail(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.beat(s, "short", leased)
	for _, id := range []string{"o1", "o2"} {
		t.run(s, id, func(r *store.Run) { r.Status, r.Owner = store.Waiting, "short" })
	}
	t.claimed(s, "alive", "owned")
	ended := t.claimed(s, "alive", "ended")
	ended.must(s, ended.end(store.Completed))
	t.kill(d, s, "short")
	require.Equal(t, []string{"o1", "o2"}, sortedIDs(t.list(s, store.Filter{Orphaned: true})))
	require.Equal(t, map[string]int64{"short": 2}, t.count(s, store.Filter{Orphaned: true}, store.ByOwner))
	t.beat(s, "short")
	require.Empty(t, t.list(s, store.Filter{Orphaned: true}), "it lives again")

	t.must(s, send(signal("o1", "1"), signal("owned", "1")))
	require.Equal(t, []string{"o1", "owned"}, sortedIDs(t.list(s, store.Filter{Mail: true})))
	w := t.at(t.row(s, "owned"))
	w.must(s, w.patch(store.RowPatch{Seen: ptr(int64(1))}))
	require.Equal(t, []string{"o1"}, ids(t.list(s, store.Filter{Mail: true})))
}

func listUnarchived(t *T) {
	s := t.open()
	for _, id := range []string{"never", "partly", "wholly"} {
		w := t.claimed(s, "x", id)
		w.steps(s, 3)
	}
	last := t.load(s, "partly", store.Cursor{NoEvents: true}).Run.Last.Seq
	for id, seq := range map[string]int64{"partly": last - 1, "wholly": last} {
		w := t.at(t.row(s, id))
		w.must(s, w.patch(store.RowPatch{ArchivedSeq: &seq}))
	}
	unarchived := store.Filter{Unarchived: true, OldestFirst: true, Limit: 1}
	require.Equal(t, []string{"never", "partly"}, sortedIDs(t.list(s, unarchived)))
	require.Equal(t, map[string]int64{"": 2}, t.count(s, unarchived, ""))
	w := t.at(t.row(s, "wholly"))
	w.steps(s, 1)
	require.Equal(t, []string{"never", "partly", "wholly"}, sortedIDs(t.list(s, unarchived)), "its log has grown since")
}

func listUnarchivedMessage(t *T) {
	s := t.open()
	w := t.claimed(s, "x", "r")
	w.steps(s, 3)
	seq, none, one := t.load(s, "r", store.Cursor{NoEvents: true}).Run.Last.Seq, int64(0), int64(1)
	archived := func(inbox *int64) store.Change {
		c := t.at(t.row(s, "r")).patch(store.RowPatch{ArchivedSeq: &seq})
		c.Expect.Inbox = inbox
		return c
	}
	unarchived := store.Filter{Unarchived: true}
	t.must(s, archived(&none))
	require.Empty(t, t.list(s, unarchived))
	t.must(s, send(signal("r", "1")))
	require.Equal(t, int64(1), t.row(s, "r").ArchivedSeq, "S13: the message is in no archive")
	require.Equal(t, []string{"r"}, ids(t.list(s, unarchived)))
	require.ErrorIs(t, t.commit(s, archived(&none)), store.ErrFenced, "S10: a message came since it was archived")
	require.Equal(t, int64(1), t.row(s, "r").ArchivedSeq, "S10: what was refused has changed nothing")
	t.must(s, archived(&one))
	require.Empty(t, t.list(s, unarchived))
	t.must(s, send(signal("r", "1")))
	require.Empty(t, t.list(s, unarchived), "S14: a message that is dropped changes nothing")
}

func listOrder(t *T) {
	s := t.open()
	base := t.now()
	// Two at each moment: the order of creation decides between them.
	for i, at := range []store.Time{3, 1, 2, 3, 1, 2} {
		t.run(s, string(rune('a'+i)), func(r *store.Run) { r.CreatedAt = base + at })
	}
	for range 2 {
		require.Equal(t, []string{"b", "e", "c", "f", "a", "d"}, ids(t.list(s, store.Filter{OldestFirst: true, Limit: 2})))
		require.Equal(t, []string{"d", "a", "f", "c", "e", "b"}, ids(t.list(s, store.Filter{Limit: 4})))
	}
}

func listWithLast(t *T) {
	s := t.open()
	for i := range 5 {
		w := t.run(s, string(rune('a'+i)))
		w.steps(s, i)
	}
	for _, r := range t.list(s, store.Filter{WithLast: true, Limit: 2}) {
		require.Equal(t, t.row(s, r.ID), r)
		require.Equal(t, int64(r.ID[0]-'a')+1, r.Last.Seq)
	}
	for _, r := range t.list(s, store.Filter{}) {
		require.Nil(t, r.Last)
	}
}
