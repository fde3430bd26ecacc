package doors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// An office is a store, a program that executes and serves on it, and the desks at which its queues
// and schedules are operated. Each desk has a queue, three dead letters on it and a schedule of
// its own, "q-DESK" and "s-DESK", so that all do the same side by side.
type office struct {
	t      *testing.T
	eng    *durable.Engine
	mail   *durable.Workflow[string, string]
	desks  map[string]desk
	server string
	broken atomic.Bool // mails fail
}

// openers open a store as often as is asked.
var openers = map[string]func(t *testing.T) func() (store.Store, error){
	"memory": func(*testing.T) func() (store.Store, error) {
		data := memory.Open()
		return func() (store.Store, error) { return data.Handle(), nil }
	},
	"sqlite": func(t *testing.T) func() (store.Store, error) {
		path := filepath.Join(t.TempDir(), "office.db")
		return func() (store.Store, error) {
			return sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off})
		}
	},
	"postgres": func(t *testing.T) func() (store.Store, error) {
		dsn := pgtest.With(pgtest.DSN(t), "synchronous_commit", "off")
		return func() (store.Store, error) { return postgres.OpenOptions(dsn, postgres.Options{Writers: 2}) }
	},
}

// kept is a store that nobody closes.
type kept struct {
	store.Store
	keptQueues
	keptSchedules
}

type (
	keptQueues    = store.Queues
	keptSchedules = store.Schedules
)

func (kept) Close() error { return nil }

func newOffice(t *testing.T, open func() (store.Store, error)) *office {
	o := &office{t: t}
	o.broken.Store(true)
	o.mail = durable.Define("mail", func(ctx context.Context, to string) (string, error) {
		return to, durable.Do(ctx, "send", func(context.Context) error {
			if o.broken.Load() {
				return durable.Permanent(errors.New("the provider is down"))
			}
			return nil
		})
	})
	handle := func() store.Store {
		st, err := open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		return st
	}
	names := []string{"library", "client", "pages", "mounted", "remote", "apart"}
	opt := durable.Options{Workflows: []durable.Definition{o.mail}, Logger: slog.New(slog.DiscardHandler), Grace: -1}
	for _, name := range names {
		opt.Queues = append(opt.Queues, durable.Queue{Name: "q-" + name, Max: 2, MaxPerPartition: 1, Rate: 1000, Per: time.Second})
		opt.Schedules = append(opt.Schedules, o.mail.Schedule("s-"+name, durable.Cron("0 2 1 1 *"), "all").Overlap(durable.OverlapAllow))
	}
	eng, err := durable.Open(background, handle(), opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	_, err = eng.Recover(background)
	require.NoError(t, err)
	o.eng = eng
	server := httptest.NewServer(dashboard.Handler(eng, dashboard.Options{Logger: slog.New(slog.DiscardHandler)}))
	t.Cleanup(server.Close)
	o.server = server.URL
	// A program of its own opens the store anew with each command; here it keeps its handle.
	apart := handle()
	c, err := client.New(server.URL, client.Options{})
	require.NoError(t, err)
	lib := inLibrary{operate.On(eng), func() store.Time { return store.TimeOf(time.Now()) }}
	o.desks = map[string]desk{
		"library": lib,
		"client":  overHTTP{c},
		"pages":   onPages{overHTTP{c}, server.URL},
		"mounted": atTerminal{eng: eng},
		"remote":  atTerminal{args: []string{"--server", server.URL}},
		"apart":   atTerminal{args: []string{"--store", "its DSN"}, open: func() (store.Store, error) { return kept{apart, apart.(store.Queues), apart.(store.Schedules)}, nil }},
	}
	require.Len(t, o.desks, len(names))
	for name := range o.desks {
		for i := range 3 {
			o.enqueue(name, i+1)
			o.until(letter(name, i+1), store.Failed) // one after another, which is their order
		}
	}
	return o
}

func letter(desk string, n int) string { return fmt.Sprintf("letter-%s-%d", desk, n) }

func (o *office) enqueue(desk string, n int) {
	o.t.Helper()
	_, err := o.mail.Enqueue(durable.NewContext(background, o.eng), letter(desk, n), "acme", durable.OnQueue("q-"+desk), durable.Partition("acme"))
	require.NoError(o.t, err)
}

func (o *office) until(id string, s store.Status) {
	o.t.Helper()
	require.Eventually(o.t, func() bool {
		info, err := o.eng.Get(background, id)
		return err == nil && info.Status == s
	}, 30*time.Second, time.Millisecond, "%s becomes %s", id, s)
}

// settle waits until no run executes or is about to.
func (o *office) settle() {
	o.t.Helper()
	require.Eventually(o.t, func() bool {
		page, err := o.eng.List(background, store.Filter{Statuses: []store.Status{store.Pending, store.Interrupted, store.Running, store.Resuming}})
		require.NoError(o.t, err)
		list, err := operate.On(o.eng).Queues(background)
		require.NoError(o.t, err)
		paused := map[string]bool{}
		for i := range list {
			paused[list[i].Name] = list[i].Paused
		}
		for i := range page.Runs {
			if !paused[page.Runs[i].Queue] {
				return false
			}
		}
		return true
	}, 30*time.Second, time.Millisecond)
}

// queueText is what a queue is told of in words, without times.
func queueText(q client.Queue) string {
	waits := ""
	for _, w := range q.Waits {
		waits += fmt.Sprintf(", %d wait: %s", w.Runs, w.Reason)
	}
	paused := ""
	if q.Paused {
		paused = ", paused: " + q.Reason
	}
	return fmt.Sprintf("%d of %d run, %d in line, %d later, %d failed%s%s", q.Running, q.Max, q.InLine, q.Delayed, q.Failed, paused, waits)
}

func scheduleText(s client.Schedule) string {
	paused := ""
	if s.Paused {
		paused = ", paused: " + s.Reason
	}
	last := ""
	for _, f := range s.Last {
		last += ", " + f.Outcome + " " + f.RunID + " " + f.Status
	}
	return fmt.Sprintf("%s, %d next, %d started%s%s", s.Timetable, len(s.Next), s.Started, paused, last)
}

var spanFrom, spanTo = time.Date(2021, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2023, 6, 1, 0, 0, 0, 0, time.UTC)

func filled(b client.Backfill) string {
	return fmt.Sprintf("%d fires, %d started, %d there, dry %t: %s to %s of %v", b.Fires, b.Started, b.Existing, b.DryRun, b.First, b.Last, b.RunIDs)
}

// An officeAct is done at every desk, and every desk tells the same of it.
type officeAct struct {
	name   string
	before func(o *office, desk string)
	// do acts on the desk's queue q and schedule s, and says what it was told.
	do   func(d desk, q, s string) (told string, err error)
	told string // what it is told, with the name of the desk as "DESK"
	code string // of the refusal
	// How the queue and the schedule are then; empty: as before.
	queue, schedule string
	page            []string // of the queue's and the schedule's page
}

// only makes an act of one that tells nothing.
func only(do func(d desk, q, s string) error) func(d desk, q, s string) (string, error) {
	return func(d desk, q, s string) (string, error) { return "", do(d, q, s) }
}

func lettersOf(q string, ns ...int) string {
	var ids []string
	for _, n := range ns {
		ids = append(ids, letter(strings.TrimPrefix(q, "q-"), n))
	}
	return strings.Join(ids, " ")
}

func firstOf(q string) string { return lettersOf(q, 1) }

const (
	timetable = `cron "0 2 1 1 *"`
	fill2     = "s-DESK@2022-01-01T02:00:00Z to s-DESK@2023-01-01T02:00:00Z of [s-DESK@2022-01-01T02:00:00Z s-DESK@2023-01-01T02:00:00Z]"
)

var officeActs = []officeAct{
	{name: "list the queues", do: func(d desk, q, _ string) (string, error) {
		list, err := d.queues()
		for _, one := range list {
			if one.Name == q {
				return fmt.Sprintf("%s of %d", one.Name, len(list)), err
			}
		}
		return "", err
	}, told: "q-DESK of 6", queue: "0 of 2 run, 0 in line, 0 later, 3 failed", schedule: timetable + ", 5 next, 0 started"},
	{name: "pause a queue", do: only(func(d desk, q, _ string) error { return d.pauseQueue(q, "month end") }),
		queue: "0 of 2 run, 0 in line, 0 later, 3 failed, paused: month end", page: []string{"month end", "Resume"}},
	{name: "pause it again", do: only(func(d desk, q, _ string) error { return d.pauseQueue(q, "still month end") }),
		queue: "0 of 2 run, 0 in line, 0 later, 3 failed, paused: still month end"},
	{name: "show a queue with a run in line", before: func(o *office, desk string) { o.enqueue(desk, 4) },
		do:    func(d desk, q, _ string) (string, error) { one, err := d.queue(q); return queueText(one), err },
		told:  "0 of 2 run, 1 in line, 0 later, 3 failed, paused: still month end, 1 wait: paused",
		queue: "0 of 2 run, 1 in line, 0 later, 3 failed, paused: still month end, 1 wait: paused", page: []string{"1 in line", "acme"}},
	{name: "resume a queue", before: func(o *office, _ string) { o.broken.Store(false) }, do: only(func(d desk, q, _ string) error { return d.resumeQueue(q) }),
		queue: "0 of 2 run, 0 in line, 0 later, 3 failed"},
	{name: "resume it again", do: only(func(d desk, q, _ string) error { return d.resumeQueue(q) })},
	{name: "list dead letters", do: func(d desk, q, _ string) (string, error) {
		ids, err := d.dead(q)
		return strings.Join(ids, " "), err
	}, told: lettersOf("q-DESK", 1, 2, 3), page: []string{"Retry 3 that failed"}},
	{name: "retry one, dry run", do: only(func(d desk, q, _ string) error { return d.retry(q, firstOf(q), true) })},
	{name: "retry one", do: only(func(d desk, q, _ string) error { return d.retry(q, firstOf(q), false) }),
		queue: "0 of 2 run, 0 in line, 0 later, 2 failed"},
	{name: "retry one that has not failed", do: only(func(d desk, q, _ string) error { return d.retry(q, firstOf(q), false) }), code: "conflict"},
	{name: "retry one that does not exist", do: only(func(d desk, q, _ string) error { return d.retry(q, "nosuch", false) }), code: "not found"},
	{name: "retry all, dry run", do: func(d desk, q, _ string) (string, error) {
		ids, err := d.retryAll(q, true)
		return strings.Join(ids, " "), err
	}, told: lettersOf("q-DESK", 2, 3)},
	{name: "retry all", do: func(d desk, q, _ string) (string, error) {
		ids, err := d.retryAll(q, false)
		return strings.Join(ids, " "), err
	}, told: lettersOf("q-DESK", 2, 3), queue: "0 of 2 run, 0 in line, 0 later, 0 failed"},
	{name: "list no dead letters", do: func(d desk, q, _ string) (string, error) {
		ids, err := d.dead(q)
		return strings.Join(ids, " "), err
	}},
	{name: "show no queue", do: only(func(d desk, _, _ string) error { _, err := d.queue("nosuch"); return err }), code: "not found"},
	{name: "pause no queue", do: only(func(d desk, _, _ string) error { return d.pauseQueue("nosuch", "") }), code: "not found"},
	{name: "resume no queue", do: only(func(d desk, _, _ string) error { return d.resumeQueue("nosuch") }), code: "not found"},
	{name: "list the dead letters of no queue", do: only(func(d desk, _, _ string) error { _, err := d.dead("nosuch"); return err }), code: "not found"},
	{name: "retry those of no queue", do: only(func(d desk, _, _ string) error { _, err := d.retryAll("nosuch", false); return err }), code: "not found"},

	{name: "list the schedules", do: func(d desk, _, s string) (string, error) {
		list, err := d.schedules()
		for _, one := range list {
			if one.Name == s {
				return fmt.Sprintf("%s of %d", one.Name, len(list)), err
			}
		}
		return "", err
	}, told: "s-DESK of 6"},
	{name: "pause a schedule", do: only(func(d desk, _, s string) error { return d.pauseSchedule(s, "stocktaking") }),
		schedule: timetable + ", 5 next, 0 started, paused: stocktaking", page: []string{"stocktaking", "It would fire"}},
	{name: "pause it again", do: only(func(d desk, _, s string) error { return d.pauseSchedule(s, "another reason") })},
	{name: "trigger a paused schedule", do: func(d desk, _, s string) (string, error) { return d.trigger(s, "once") }, told: "s-DESK@now-once",
		schedule: timetable + ", 5 next, 1 started, paused: stocktaking, started s-DESK@now-once completed"},
	{name: "trigger it with the same key", do: func(d desk, _, s string) (string, error) { return d.trigger(s, "once") }, told: "s-DESK@now-once"},
	{name: "resume a schedule", do: only(func(d desk, _, s string) error { return d.resumeSchedule(s) }),
		schedule: timetable + ", 5 next, 1 started, started s-DESK@now-once completed"},
	{name: "resume it again", do: only(func(d desk, _, s string) error { return d.resumeSchedule(s) })},
	{name: "plan a backfill", do: func(d desk, _, s string) (string, error) {
		b, err := d.backfill(s, spanFrom, spanTo, true)
		return filled(b), err
	}, told: "2 fires, 2 started, 0 there, dry true: " + fill2},
	{name: "fill", do: func(d desk, _, s string) (string, error) {
		b, err := d.backfill(s, spanFrom, spanTo, false)
		return filled(b), err
	}, told: "2 fires, 2 started, 0 there, dry false: " + fill2},
	{name: "fill again", do: func(d desk, _, s string) (string, error) {
		b, err := d.backfill(s, spanFrom, spanTo, false)
		return filled(b), err
	}, told: "2 fires, 0 started, 2 there, dry false:  to  of []"},
	{name: "fill a span that ends before it begins", do: only(func(d desk, _, s string) error { _, err := d.backfill(s, spanTo, spanFrom, false); return err }), code: "invalid"},
	{name: "fill a span that lies ahead", do: only(func(d desk, _, s string) error {
		_, err := d.backfill(s, spanTo, time.Now().AddDate(3, 0, 0), false)
		return err
	}), code: "invalid"},
	{name: "show no schedule", do: only(func(d desk, _, _ string) error { _, err := d.schedule("nosuch"); return err }), code: "not found"},
	{name: "pause no schedule", do: only(func(d desk, _, _ string) error { return d.pauseSchedule("nosuch", "") }), code: "not found"},
	{name: "resume no schedule", do: only(func(d desk, _, _ string) error { return d.resumeSchedule("nosuch") }), code: "not found"},
	{name: "trigger no schedule", do: only(func(d desk, _, _ string) error { _, err := d.trigger("nosuch", "k"); return err }), code: "not found"},
	{name: "fill no schedule", do: only(func(d desk, _, _ string) error {
		_, err := d.backfill("nosuch", spanFrom, spanTo, false)
		return err
	}), code: "not found"},
	{name: "delete no schedule", do: only(func(d desk, _, _ string) error { return d.deleteSchedule("nosuch") }), code: "not found"},
}

func TestQueuesAndSchedulesAreOperatedTheSameWayThroughEveryDoorOnEveryStore(t *testing.T) {
	for name, open := range openers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, open(t))
			queue, schedule := "", ""
			for i := range officeActs {
				a := &officeActs[i]
				if a.queue != "" {
					queue = a.queue
				}
				if a.schedule != "" {
					schedule = a.schedule
				}
				for at, d := range o.desks {
					where := a.name + " at the desk " + at
					if a.before != nil {
						a.before(o, at)
					}
					told, err := a.do(d, "q-"+at, "s-"+at)
					require.Equal(t, a.code, codeOf(err), "%s: %v", where, err)
					if err == nil {
						require.Equal(t, strings.ReplaceAll(a.told, "DESK", at), told, where)
					}
				}
				o.settle()
				for at := range o.desks {
					o.requireTold(at, queue, strings.ReplaceAll(schedule, "DESK", at), a)
				}
			}
			for at, d := range o.desks {
				require.NoError(t, d.deleteSchedule("s-"+at), at)
				for other, d := range o.desks {
					_, err := d.schedule("s-" + at)
					require.Equal(t, "not found", codeOf(err), "%s deleted the schedule, and %s shows it", at, other)
				}
			}
		})
	}
}

// requireTold fails unless all desks tell the same of the queue and the schedule of one, with every
// number and time, and that is what they are to be.
func (o *office) requireTold(at, queue, schedule string, a *officeAct) {
	o.t.Helper()
	var first string
	for by, d := range o.desks {
		if a.queue+a.schedule == "" && by != "library" {
			continue // nothing is to have happened
		}
		where := fmt.Sprintf("after %q at the desk %s, told by %s", a.name, at, by)
		q, err := d.queue("q-" + at)
		require.NoError(o.t, err, where)
		require.Equal(o.t, queue, queueText(q), where)
		s, err := d.schedule("s-" + at)
		require.NoError(o.t, err, where)
		require.Equal(o.t, schedule, scheduleText(s), where)
		q.AgeMS, q.Begun = 0, 0 // they go by while one is asked after another
		b, err := json.Marshal([]any{q, s})
		require.NoError(o.t, err)
		if first == "" {
			first = string(b)
		}
		require.JSONEq(o.t, first, string(b), where)
	}
	if len(a.page) > 0 {
		pages := read(o.t, o.server+"/queues/q-"+at) + read(o.t, o.server+"/schedules/s-"+at)
		for _, want := range a.page {
			require.Contains(o.t, pages, want, a.name)
		}
	}
}
