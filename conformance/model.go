package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/store"
)

var modelCases = []Case{
	{Name: "random changes do what a simple model does", Clauses: "S1, S2, S3, S5, S6, S8, S9, S10, S13, S14, S15, S19, S20, S21", run: modelAgrees},
	{Name: "claims, appends and yields of several clients are linearizable", Clauses: "S3, S4, S5, S19, S20, S22", run: modelLinearizable},
}

// model is what a store should do, in the plainest code.
type model map[string]*modelRun

type modelRun struct {
	row      store.Run // what the suite compares of it, see compare
	events   []store.Event
	messages []string // kind and id
}

func (m model) clone() model {
	c := make(model, len(m))
	for id, r := range m {
		copied := *r
		copied.events, copied.messages = slices.Clone(r.events), slices.Clone(r.messages)
		c[id] = &copied
	}
	return c
}

// commit returns the model after c, and the reasons for which a store should refuse c.
// With a reason the model stays as it is. A store may give any one of several.
func (m model) commit(c store.Change, live map[string]bool) (model, []error) {
	next := m.clone()
	var reasons []error
	if c.RunID != "" {
		done, why := next.own(c, live)
		if done {
			return m, nil // S6
		}
		reasons = append(reasons, why...)
	}
	for _, s := range c.Start {
		if r, ok := next[s.RunID]; !ok {
			_, why := next.own(s, live)
			reasons = append(reasons, why...)
		} else if !store.SameStart(&r.row, s.Create) {
			reasons = append(reasons, store.ErrExists)
		}
	}
	for _, msg := range c.Send {
		reasons = append(reasons, next.deliver(msg)...)
	}
	if len(reasons) > 0 {
		return m, reasons
	}
	return next, nil
}

// own does what c does to its own run. done says that it had been done before.
func (m model) own(c store.Change, live map[string]bool) (done bool, reasons []error) {
	r := m[c.RunID]
	switch {
	case r != nil && r.did(c):
		return true, nil
	case c.Create != nil && r != nil:
		return false, []error{store.ErrExists}
	case c.Create != nil:
		r = &modelRun{row: *c.Create}
		m[c.RunID] = r
	case r == nil:
		return false, []error{store.ErrNotFound}
	default:
		// Further reasons are collected as if it had not been refused: a store that
		// checks the messages before the fence may give either. The resulting model is
		// discarded.
		reasons = r.refuses(c, live)
	}
	c.Row.Apply(&r.row)
	r.row.Epoch = c.RowEpoch()
	if c.Yield || c.Expect.TakeEpoch {
		r.row.Owner = ""
	}
	r.events = append(r.events, stored(c)...)
	return false, reasons
}

func (r *modelRun) did(c store.Change) bool {
	if len(c.Events) == 0 {
		return false
	}
	i := len(c.Events) - 1
	if c.Create != nil {
		i = 0
	}
	e := c.Events[i]
	return e.Seq <= int64(len(r.events)) && r.events[e.Seq-1].Sum == e.Sum && r.events[e.Seq-1].Epoch == c.EventEpoch(i)
}

func (r *modelRun) refuses(c store.Change, live map[string]bool) (reasons []error) {
	if r.row.Epoch != c.Expect.Epoch || len(c.Events) > 0 && c.Events[0].Seq != int64(len(r.events))+1 {
		reasons = append(reasons, store.ErrFenced)
	}
	if c.Expect.Inbox != nil && *c.Expect.Inbox != int64(len(r.messages)) {
		reasons = append(reasons, store.ErrFenced)
	}
	if c.Expect.TakeEpoch && live[r.row.Owner] {
		reasons = append(reasons, store.ErrOwned)
	}
	if c.Expect.NoCancel && r.row.CancelAsked {
		reasons = append(reasons, store.ErrCancelAsked)
	}
	if len(c.Expect.Statuses) > 0 && !slices.Contains(c.Expect.Statuses, r.row.Status) ||
		c.Row != nil && c.Row.Status != nil && !store.MayFollow(r.row.Status, *c.Row.Status) {
		reasons = append(reasons, store.ErrStatus)
	}
	return reasons
}

func (m model) deliver(msg store.Message) []error {
	r, key := m[msg.To], fmt.Sprint(msg.Kind, " ", msg.ID)
	switch {
	case r == nil && msg.IfLive:
		return nil
	case r == nil:
		return []error{store.ErrNotFound}
	case slices.Contains(r.messages, key):
		return nil
	case r.row.Status.Terminal() && msg.IfLive:
		return nil
	case r.row.Status.Terminal():
		return []error{store.ErrStatus}
	}
	r.messages = append(r.messages, key)
	r.row.CancelAsked = r.row.CancelAsked || msg.Kind == store.KindCancel
	return nil
}

// claimable says whether a claim that names the run may take it.
func (r *modelRun) claimable(live map[string]bool) bool {
	return !r.row.Status.Terminal() && !live[r.row.Owner] && !r.row.Paused
}

// claim is what a claim does; the event is taken from the store's answer.
func (r *modelRun) claim(executor string, event store.Event) {
	strikes := int32(0)
	if r.row.Status == store.Running || r.row.Status == store.Resuming {
		strikes = 1
		if r.events[len(r.events)-1].Type.Claims() {
			strikes = r.row.Strikes + 1
		}
	}
	r.row.Strikes = strikes
	switch r.row.Status {
	case store.Pending:
		r.row.Status = store.Running
	case store.Waiting:
	default:
		r.row.Status = store.Resuming
		r.row.Resumes++
	}
	r.row.Owner = executor
	r.row.Epoch++
	r.events = append(r.events, event)
}

// compare describes how a loaded run differs from the model's; empty if it does not.
func (r *modelRun) compare(got loaded) string {
	type face struct {
		status         store.Status
		owner          string
		epoch          int64
		priority       int32
		cancel, paused bool
		strikes        int32
		resumes        int32
		inbox          int64
	}
	faceOf := func(r *store.Run) face {
		return face{r.Status, r.Owner, r.Epoch, r.Priority, r.CancelAsked, r.Paused, r.Strikes, r.Resumes, r.Inbox}
	}
	row := r.row
	row.Inbox = int64(len(r.messages))
	if want, have := faceOf(&row), faceOf(&got.Run); want != have {
		return fmt.Sprintf("the row is %+v, it should be %+v", have, want)
	}
	var messages []string
	for _, m := range got.Inbox {
		messages = append(messages, fmt.Sprint(m.Kind, " ", m.ID))
	}
	if !slices.Equal(r.messages, messages) {
		return fmt.Sprintf("the inbox is %q, it should be %q", messages, r.messages)
	}
	if !slices.EqualFunc(r.events, got.Events, func(a, b store.Event) bool {
		return a.Seq == b.Seq && a.Epoch == b.Epoch && a.Sum == b.Sum && a.Type == b.Type && a.Key == b.Key
	}) {
		return fmt.Sprintf("the log is %+v, it should be %+v", got.Events, r.events)
	}
	return ""
}

// modelAgrees plays random sequences against the model. All games use one
// store, each with its own ids and executors, and each goes on with the handle
// of the one before: what reopens it is a step of a game.
func modelAgrees(t *T) {
	d := t.fresh()
	var s store.Store
	t.Cleanup(func() {
		if s != nil {
			require.NoError(t, s.Close())
		}
	})
	game := 0
	rapid.Check(t, func(rt *rapid.T) {
		game++
		p := &player{t: t, rt: rt, d: d, s: s, model: make(model), live: make(map[string]bool), prefix: fmt.Sprintf("g%d-", game)}
		defer func() { s = p.s }()
		p.open()
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			p.step()
		}
		p.checkAll()
		p.leaveAll() // so that later games do not get its runs
	})
}

// player draws what to do next, does it to the store and the model, and compares.
type player struct {
	t         *T
	rt        *rapid.T
	d         *Data
	s         store.Store
	model     model
	live      map[string]bool
	prefix    string
	executors int
	sent      []store.Change // to be sent again
}

func (p *player) must(err error) {
	p.rt.Helper()
	if err != nil {
		p.rt.Fatalf("%v", err)
	}
}

func (p *player) join() {
	p.executors++
	id := fmt.Sprintf("%se%d", p.prefix, p.executors)
	_, err := p.s.Beat(p.t.Context(), store.Executor{ID: id, Lease: longLease, Serves: serves})
	p.must(err)
	p.live[id] = true
}

func (p *player) leave(id string) {
	_, err := p.s.Beat(p.t.Context(), store.Executor{ID: id, Leaving: true})
	p.must(err)
	delete(p.live, id)
}

func (p *player) leaveAll() {
	for _, e := range slices.Sorted(maps.Keys(p.live)) {
		p.leave(e)
	}
}

// open opens a handle if there is none, and lets two executors join on it.
func (p *player) open() {
	if p.s == nil {
		s, err := p.d.Open()
		p.must(err)
		p.s = s
	}
	p.join()
	p.join()
}

func (p *player) id() string {
	return p.prefix + rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(p.rt, "run")
}

func (p *player) executor() string {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(p.live))).Draw(p.rt, "executor")
}

func (p *player) step() {
	switch rapid.SampledFrom([]string{"commit", "commit", "commit", "batch", "again", "claim", "claim", "die", "delete", "reopen"}).Draw(p.rt, "do") {
	case "commit":
		p.commit(p.change(p.id()))
	case "batch":
		var batch []store.Change
		for _, id := range []string{"a", "b", "c"} {
			batch = append(batch, p.change(p.prefix+id))
		}
		p.commit(batch...)
	case "again":
		if len(p.sent) > 0 {
			p.commit(rapid.SampledFrom(p.sent).Draw(p.rt, "sent"))
		}
	case "claim":
		p.claim(p.id(), p.executor())
	case "die":
		p.leave(p.executor())
		p.join()
	case "delete":
		p.remove(p.id(), rapid.Bool().Draw(p.rt, "force"))
	case "reopen":
		// Executors end with their process.
		p.leaveAll()
		s := p.s
		p.s = nil
		p.must(s.Close())
		p.open()
	}
}

// commit sends a batch to the store. Its members are independent (S2), so the outcome
// must be the model's for some order of them.
func (p *player) commit(batch ...store.Change) {
	p.rt.Helper()
	errs := p.s.Commit(p.t.Context(), batch)
	var why string
	for _, order := range orders(len(batch)) {
		next := p.model
		differs := ""
		for _, i := range order {
			var reasons []error
			next, reasons = next.commit(batch[i], p.live)
			if len(reasons) == 0 && errs[i] != nil || len(reasons) > 0 && !isOneOf(errs[i], reasons...) {
				differs = fmt.Sprintf("change %d of %d, %+v: got %v, want %v", i+1, len(batch), batch[i], errs[i], reasons)
			}
		}
		for _, id := range touched(batch) {
			if differs == "" {
				differs = p.differs(next, id)
			}
		}
		if differs == "" {
			p.model = next
			for i, c := range batch {
				if errs[i] == nil {
					p.sent = append(p.sent, c)
				}
			}
			return
		}
		if why == "" {
			why = differs
		}
	}
	p.rt.Fatalf("%s", why)
}

// orders returns the permutations of 0 to n-1.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, o := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(o), at, n-1))
		}
	}
	slices.SortFunc(all, slices.Compare[[]int]) // the order of the batch first
	return all
}

// touched returns the runs a batch may change.
func touched(batch []store.Change) []string {
	var ids []string
	for _, c := range batch {
		if c.RunID != "" {
			ids = append(ids, c.RunID)
		}
		for _, m := range c.Send {
			ids = append(ids, m.To)
		}
		ids = append(ids, touched(c.Start)...)
	}
	return ids
}

// change draws a Change on a run, mostly one that fits its state.
func (p *player) change(id string) store.Change {
	r := p.model[id]
	kind := rapid.SampledFrom([]string{"append", "append", "status", "patch", "send", "start", "create", "take"}).Draw(p.rt, "change")
	if r == nil && kind != "append" && kind != "send" {
		kind = "create"
	}
	if kind == "create" {
		return p.create(id)
	}
	if kind == "send" {
		return send(p.message(id))
	}
	w := &writer{t: p.t, id: id, epoch: 10}
	if r != nil {
		last := r.events[len(r.events)-1]
		w.epoch, w.seq, w.sum, w.at = r.row.Epoch, last.Seq, last.Sum, last.At
	} else {
		w.seq = 1
	}
	if rapid.IntRange(0, 5).Draw(p.rt, "wrong") == 0 {
		w.epoch += int64(rapid.SampledFrom([]int{-1, 1}).Draw(p.rt, "epoch off by"))
	}
	c := w.append(step(fmt.Sprint(rapid.IntRange(0, 3).Draw(p.rt, "key"))))
	if rapid.IntRange(0, 7).Draw(p.rt, "misplaced") == 0 {
		c.Events[0].Seq++
	}
	switch kind {
	case "status":
		to := rapid.SampledFrom(store.Statuses()).Draw(p.rt, "to")
		c.Row = &store.RowPatch{Status: &to}
		c.Yield = to.Terminal() || rapid.Bool().Draw(p.rt, "yield")
		c.Expect.NoCancel = rapid.Bool().Draw(p.rt, "no cancel")
		if rapid.Bool().Draw(p.rt, "expect") {
			c.Expect.Statuses = rapid.SliceOfN(rapid.SampledFrom(store.Statuses()), 1, 4).Draw(p.rt, "statuses")
		}
	case "patch":
		c.Events = nil
		c.Row = &store.RowPatch{
			Priority: ptr(rapid.Int32Range(-2, 2).Draw(p.rt, "priority")), CancelAsked: ptr(rapid.Bool().Draw(p.rt, "cancel")),
			Paused: ptr(rapid.IntRange(0, 4).Draw(p.rt, "paused") == 0),
		}
	case "take":
		c.Expect.TakeEpoch = true
	case "start":
		c.Start = []store.Change{p.create(p.id())}
	}
	if rapid.IntRange(0, 3).Draw(p.rt, "and send") == 0 {
		c.Send = []store.Message{p.message(p.id())}
	}
	return c
}

func (p *player) create(id string) store.Change {
	c, _ := p.t.create(id, func(r *store.Run) {
		r.InputHash = [16]byte{byte(rapid.IntRange(0, 1).Draw(p.rt, "input"))}
	})
	return c
}

func (p *player) message(to string) store.Message {
	return store.Message{
		To: to, Kind: rapid.SampledFrom([]store.Kind{store.KindSignal, store.KindCancel}).Draw(p.rt, "kind"),
		ID: fmt.Sprint(rapid.IntRange(0, 5).Draw(p.rt, "message")), IfLive: rapid.Bool().Draw(p.rt, "if live"),
	}
}

func (p *player) claim(id, executor string) {
	runs, err := p.s.Claim(p.t.Context(), claimOf(executor, id))
	p.must(err)
	r := p.model[id]
	want := r != nil && r.claimable(p.live)
	if want != (len(runs) == 1) {
		p.rt.Fatalf("claim of %s by %s: got %d runs, want one: %v", id, executor, len(runs), want)
	}
	if want {
		r.claim(executor, plainEvent(*runs[0].Last))
		if d := r.compare(loaded{Run: runs[0], Inbox: p.load(id).Inbox, Events: r.events}); d != "" {
			p.rt.Fatalf("claim of %s returned a run that differs: %s", id, d)
		}
	}
	p.check(id)
}

func (p *player) remove(id string, force bool) {
	n, err := p.s.Delete(p.t.Context(), store.Deletion{RunIDs: []string{id}, Force: force})
	var want error
	r := p.model[id]
	switch {
	case r == nil:
	case !r.row.Status.Terminal() && !force:
		want = store.ErrStatus
	case p.live[r.row.Owner]:
		want = store.ErrOwned
	}
	if !errors.Is(err, want) || (n == 1) != (r != nil && want == nil) {
		p.rt.Fatalf("delete of %s: got %d and %v, want %v", id, n, err, want)
	}
	if want == nil {
		delete(p.model, id)
		// Sent again, the old creation would bring its epochs back (S22).
		p.sent = slices.DeleteFunc(p.sent, func(c store.Change) bool {
			creates := func(c store.Change) bool { return c.Create != nil && c.RunID == id }
			return creates(c) || slices.ContainsFunc(c.Start, creates)
		})
	}
	p.check(id)
}

func (p *player) load(id string) loaded {
	h, err := p.s.Load(p.t.Context(), id, store.Cursor{All: true})
	p.must(err)
	l := loaded{Run: h.Run, Inbox: h.Inbox}
	for e, err := range h.Events {
		p.must(err)
		l.Events = append(l.Events, e)
	}
	return l
}

// check compares one run.
func (p *player) check(id string) {
	p.rt.Helper()
	if d := p.differs(p.model, id); d != "" {
		p.rt.Fatalf("%s", d)
	}
}

// differs describes how the store's run differs from m's; empty if it does not.
func (p *player) differs(m model, id string) string {
	r := m[id]
	if r == nil {
		if _, err := p.s.Load(p.t.Context(), id, store.Cursor{}); !errors.Is(err, store.ErrNotFound) {
			return fmt.Sprintf("%s should not be there: %v", id, err)
		}
		return ""
	}
	if d := r.compare(p.load(id)); d != "" {
		return fmt.Sprintf("run %s: %s", id, d)
	}
	return ""
}

// checkAll compares what is listed and counted.
func (p *player) checkAll() {
	f := store.Filter{IDPrefix: p.prefix, Limit: 3}
	var got []string
	for {
		page, err := p.s.List(p.t.Context(), f)
		p.must(err)
		got = append(got, ids(page.Runs)...)
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	slices.Sort(got)
	want := slices.Sorted(maps.Keys(p.model))
	if !slices.Equal(got, want) {
		p.rt.Fatalf("listed are %q, it should be %q", got, want)
	}
	byStatus := make(map[string]int64)
	for _, r := range p.model {
		byStatus[string(r.row.Status)]++
	}
	f.After = ""
	counts, err := p.s.Count(p.t.Context(), f, store.ByStatus)
	p.must(err)
	require.Equal(p.rt, byStatus, counts, "S16: counted by status")
}
