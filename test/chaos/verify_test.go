//go:build unix && cgo

package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// verifyAll reads every run of a store that nobody may be writing to with a look at its sums.
func verifyAll(t *testing.T, st store.Store) {
	t.Helper()
	eng, err := durable.Open(t.Context(), st, durable.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	for v, err := range operate.On(eng).VerifyAll(t.Context(), store.Filter{}) {
		require.NoError(t, err)
		require.Empty(t, v.Findings, v.RunID)
	}
}

// open says which runs are open, and as what.
func (w *world) open() (all []string) {
	st, err := openStore(w.base.Backend, w.base.DSN)
	if err != nil {
		return []string{err.Error()}
	}
	defer st.Close()
	page, err := st.List(context.Background(), store.Filter{Statuses: openStatuses})
	if err != nil {
		return []string{err.Error()}
	}
	for _, r := range page.Runs {
		all = append(all, fmt.Sprintf("%s %s owner %q paused %v inbox %d seen %d reason %q", r.ID, r.Status, r.Owner, r.Paused, r.Inbox, r.Seen, r.Reason))
	}
	return all
}

// verify asks, after a round, whether the store holds what the ledgers say.
func (w *world) verify(facts []fact) {
	w.t.Helper()
	st, err := openStore(w.base.Backend, w.base.DSN)
	require.NoError(w.t, err)
	defer st.Close()
	verifyAll(w.t, st)
	runs := map[string]store.Run{}
	for f := (store.Filter{Limit: 1000}); ; {
		page, err := st.List(w.t.Context(), f)
		require.NoError(w.t, err)
		for _, r := range page.Runs {
			runs[r.ID] = r
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	b := bookOf(facts)
	w.ends(st, runs, b)
	w.outcomes(st, runs, b)
	w.effects(runs)
	w.overlaps(b)
	w.takeovers(b)
	for _, f := range facts {
		switch f.what {
		case "leak":
			w.tally.leaks += f.n
			w.t.Errorf("%s has left %d goroutines behind", f.process, f.n)
		case "twice":
			w.tally.doubled++
			w.t.Errorf("%s: the body of Once ran again (%s):\n%s", f.run, f.value, b.story(w.t, st, f.run))
		}
	}
	w.tally.runs += len(runs)
	var ids []string
	for id := range runs {
		ids = append(ids, id)
	}
	for some := range slices.Chunk(ids, 500) {
		_, err := st.Delete(w.t.Context(), store.Deletion{RunIDs: some})
		require.NoError(w.t, err)
	}
}

// book is what the ledgers say, in an order that questions can be asked of.
type book struct {
	facts    []fact // by time
	started  []fact
	acked    map[string]string // call: value
	changed  []string          // calls that were told two things
	canceled map[string]bool
	gone     map[string]int64 // when a process ended
	killed   map[string]int64
	stops    map[string][]spell
}

// spell is a time in which something held, in µs.
type spell struct{ from, to int64 }

func bookOf(facts []fact) *book {
	slices.SortStableFunc(facts, func(a, b fact) int { return int(a.at - b.at) })
	b := &book{facts: facts, acked: map[string]string{}, canceled: map[string]bool{}, gone: map[string]int64{}, killed: map[string]int64{}, stops: map[string][]spell{}}
	for _, f := range facts {
		switch f.what {
		case "started":
			b.started = append(b.started, f)
		case "ack", "drawn", "result":
			call := f.call()
			if f.what == "result" {
				f.value = fmt.Sprint(f.n)
			}
			if was, ok := b.acked[f.what+" "+call]; ok && was != f.value {
				b.changed = append(b.changed, fmt.Sprintf("%s: %s, then %s", call, was, f.value))
			}
			b.acked[f.what+" "+call] = f.value
		case "cancelled":
			b.canceled[f.run] = true
		case "killed":
			b.killed[f.run] = f.at
			b.gone[f.run] = f.at
		case "ended":
			b.gone[f.run] = f.at
		case "stopped":
			b.stops[f.run] = append(b.stops[f.run], spell{f.at, f.at})
		case "continued":
			s := b.stops[f.run]
			s[len(s)-1].to = f.at
		}
	}
	return b
}

// ends: every start that was acknowledged has become what it must.
func (w *world) ends(st store.Store, runs map[string]store.Run, b *book) {
	eng, err := durable.Open(w.t.Context(), st, durable.Options{Logger: slog.New(slog.DiscardHandler), Errors: durableErrors})
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, eng.Close()) }()
	ctx := durable.NewContext(w.t.Context(), eng)
	all := flows(nil)
	inputs := map[string]int{}
	for _, f := range b.started {
		inputs[f.run] = f.n
		if _, ok := runs[f.run]; !ok {
			w.tally.lost++
			w.t.Errorf("the start of %s was acknowledged and is lost", f.run)
		}
	}
	for id, r := range runs {
		if !r.Status.Terminal() {
			w.tally.stuck++
			w.t.Errorf("%s has not ended: %s %s", id, r.Status, r.Reason)
			continue
		}
		if r.Status == store.Failed && r.Code == durable.CodeQuarantined {
			n := b.deaths(w.t, st, id)
			if n >= 3 {
				w.tally.guilty++ // by the rule: as many processes have died in its bodies
				continue
			}
			w.tally.quarantined++
			w.t.Errorf("%s is quarantined (%s) though only %d processes died in a body of it:\n%s", id, r.Reason, n, b.story(w.t, st, id))
			continue
		}
		n, ok := inputs[id]
		if !ok {
			continue // a start that was not acknowledged, a child, a run of the schedule
		}
		want := all[r.Workflow].want(n)
		h, err := durable.Ref[int, int](r.Workflow).Handle(ctx, id)
		require.NoError(w.t, err)
		out, _, err := h.Result(ctx)
		if r.Status != want.status || want.status == store.Completed && (err != nil || out != want.result) {
			w.tally.lost++
			w.t.Errorf("%s ended as %s with %d, %v (%s); it must be %+v", id, r.Status, out, err, r.Reason, want)
		}
		if said, ok := b.acked["result "+id+" "]; ok && said != fmt.Sprint(out) {
			w.tally.lost++
			w.t.Errorf("%s returned %s and holds %d", id, said, out)
		}
	}
}

// deaths is in how many processes that are gone the body of one call of a run had begun, and had
// recorded nothing. If that ever succeeds there are no more: an outcome that is recorded is not
// produced again. A body has begun when it says so, or when that is on record, which comes first: a
// kill between the two finds one that is about to begin, and nobody who reads the record can tell.
// A process that was told to end may end like one that was killed, if the store takes nothing more.
func (b *book) deaths(t *testing.T, st store.Store, id string) (most int) {
	t.Helper()
	in := map[string]map[string]bool{}
	begun := func(key, process string) {
		if in[key] == nil {
			in[key] = map[string]bool{}
		}
		in[key][process] = true
		most = max(most, len(in[key]))
	}
	for _, f := range b.facts {
		if _, killed := b.killed[f.process]; killed && f.run == id && f.what == "begin" {
			begun(f.key, f.process)
		}
	}
	h, err := st.Load(t.Context(), id, store.Cursor{})
	require.NoError(t, err)
	owner, last := "", "" // who has the run, and the body that it has begun last
	for ev, err := range h.Events {
		require.NoError(t, err)
		if ev.Type == store.StepStarted {
			last = ev.Key
			continue
		}
		if _, gone := b.gone[owner]; gone && last != "" && (ev.Type.Claims() || ev.Type == store.WorkflowFailed) {
			begun(last, owner)
		}
		if last = ""; ev.Type.Claims() {
			owner = claimant(ev)
		}
	}
	return most
}

// story is all that is known of a run: what the ledgers say, and then what is on record.
func (b *book) story(t *testing.T, st store.Store, id string) string {
	t.Helper()
	var out strings.Builder
	end := func(process string) string {
		switch at := b.gone[process]; {
		case b.killed[process] != 0:
			return fmt.Sprint(" (killed at ", at, ")")
		case at != 0:
			return fmt.Sprint(" (ended at ", at, ")")
		}
		return ""
	}
	for _, f := range b.facts {
		if f.run == id {
			fmt.Fprintln(&out, f.at, f.what, f.key, f.n, f.value, f.process+end(f.process))
		}
	}
	h, err := st.Load(t.Context(), id, store.Cursor{All: true})
	require.NoError(t, err)
	for ev, err := range h.Events {
		require.NoError(t, err)
		fmt.Fprintf(&out, "%d %s %s epoch %d %s%s\n", ev.At, ev.Type, ev.Key, ev.Epoch, ev.Data, end(claimant(ev)))
	}
	for process, all := range b.stops {
		fmt.Fprintln(&out, process, "was stopped", all)
	}
	return out.String()
}

// claimant is the process that has the run from this event on; empty: the event does not say.
func claimant(ev store.Event) string {
	var claim struct{ Name string }
	if ev.Type.Claims() {
		_ = json.Unmarshal(ev.Data, &claim)
	}
	return claim.Name
}

// outcomes: what a step returned is in the history once, and was never anything else; no
// attempt ran beyond the policy, or after a later one.
func (w *world) outcomes(st store.Store, runs map[string]store.Run, b *book) {
	for _, c := range b.changed {
		w.tally.doubled++
		w.t.Errorf("one call was told two things: %s", c)
	}
	seen := map[string]string{}
	for id := range runs {
		h, err := st.Load(w.t.Context(), id, store.Cursor{All: true})
		require.NoError(w.t, err)
		done := map[string]bool{}
		for e, err := range h.Events {
			require.NoError(w.t, err)
			if e.Type == store.WorkflowStarted {
				clear(done) // a generation begins
			}
			if e.Type != store.StepCompleted {
				continue
			}
			call := fmt.Sprint(e.Branch, " ", e.Key)
			if done[call] {
				w.tally.doubled++
				w.t.Errorf("%s: %s has two outcomes", id, e.Key)
			}
			done[call] = true
			_, value, _ := strings.Cut(string(e.Payload), "\n")
			seen[id+" "+e.Key] = value
		}
	}
	for call, value := range b.acked {
		key, ok := strings.CutPrefix(call, "ack ")
		if !ok {
			continue
		}
		if got, ok := seen[key]; !ok || got != value {
			w.tally.lost++
			w.t.Errorf("%s was acknowledged as %s and holds %q", key, value, got)
		}
	}
	highest := map[string]int{}
	for _, f := range b.facts {
		if f.what != "begin" {
			continue
		}
		if f.n > brief.MaxAttempts+1 || f.n < highest[f.call()] {
			w.tally.doubled++
			w.t.Errorf("%s: attempt %d began after attempt %d", f.call(), f.n, highest[f.call()])
		}
		highest[f.call()] = max(highest[f.call()], f.n)
	}
}

// effects: what transactions have written is there once for each run.
func (w *world) effects(runs map[string]store.Run) {
	db := w.db()
	defer db.Close()
	rows, err := db.Query("SELECT run, count(*) FROM chaos_effects GROUP BY run")
	require.NoError(w.t, err)
	counts := map[string]int{}
	for rows.Next() {
		var run string
		var n int
		require.NoError(w.t, rows.Scan(&run, &n))
		counts[run] = n
	}
	require.NoError(w.t, rows.Err())
	for id, r := range runs {
		if n := counts[id]; r.Workflow == "pay" && r.Status == store.Completed && n != 1 {
			w.tally.lost += max(0, 1-n)
			w.tally.doubled += max(0, n-1)
			w.t.Errorf("%s has had its effect %d times", id, n)
		}
	}
	_, err = db.Exec("DELETE FROM chaos_effects")
	require.NoError(w.t, err)
}

// overlaps measures for how long bodies of one attempt ran in two processes at once. Time in
// which one of the two was stopped is no time at once.
func (w *world) overlaps(b *book) {
	type body struct {
		spell
		process string
	}
	bodies := map[string][]body{}
	openBodies := map[string]int64{}
	for _, f := range b.facts {
		key := f.call() + " " + fmt.Sprint(f.n)
		switch f.what {
		case "begin":
			openBodies[f.process+" "+key] = f.at
		case "end":
			bodies[key] = append(bodies[key], body{spell{openBodies[f.process+" "+key], f.at}, f.process})
			delete(openBodies, f.process+" "+key)
		}
	}
	for k, from := range openBodies {
		process, key, _ := strings.Cut(k, " ")
		if to, ok := b.gone[process]; ok {
			bodies[key] = append(bodies[key], body{spell{from, to}, process})
		}
	}
	for _, all := range bodies {
		for i, x := range all {
			for _, y := range all[:i] {
				if x.process == y.process {
					continue
				}
				both := spell{max(x.from, y.from), min(x.to, y.to)}
				d := both.to - both.from
				for _, stop := range append(slices.Clone(b.stops[x.process]), b.stops[y.process]...) {
					d -= max(0, min(both.to, stop.to)-max(both.from, stop.from))
				}
				if d > 0 {
					w.tally.overlaps++
					w.tally.overlap = max(w.tally.overlap, time.Duration(d)*time.Microsecond)
				}
			}
		}
	}
}

// takeovers measures how long after a kill the runs that were executed there are executed
// elsewhere.
func (w *world) takeovers(b *book) {
	inside := map[string]map[string]bool{} // process: runs that it executes
	orphans := map[string]int64{}
	for _, f := range b.facts {
		switch f.what {
		case "enter":
			if at, ok := orphans[f.run]; ok {
				w.tally.takeover = append(w.tally.takeover, time.Duration(f.at-at)*time.Microsecond)
				delete(orphans, f.run)
			}
			if inside[f.process] == nil {
				inside[f.process] = map[string]bool{}
			}
			inside[f.process][f.run] = true
		case "leave":
			delete(inside[f.process], f.run)
		case "killed":
			for run := range inside[f.run] {
				orphans[run] = f.at
			}
		}
	}
}
