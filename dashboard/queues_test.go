package dashboard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// queued puts the runs whose ids begin "emails-" on the queue "emails".
type queued struct{ *memory.Store }

func (s queued) Commit(ctx context.Context, changes []store.Change) []error {
	for i := range changes {
		if row := changes[i].Create; row != nil && strings.HasPrefix(row.ID, "emails-") {
			row.Queue = "emails"
		}
	}
	return s.Store.Commit(ctx, changes)
}

// inLine creates a run that is in line, or holds a place; no process has its code.
func (s *site) inLine(id, partition string, status store.Status) {
	s.t.Helper()
	now := store.TimeOf(time.Now())
	e := store.Event{Seq: 1, Epoch: 1, Type: store.WorkflowCreated, At: now}
	e.Sum = store.Seal(id, 0, &e)
	row := &store.Run{ID: id, Workflow: "checkout", Queue: "emails", Partition: partition, Status: status, CreatedAt: now, Epoch: 1, Paused: false}
	require.NoError(s.t, s.st.Commit(s.t.Context(), []store.Change{{RunID: id, Expect: store.Expect{Absent: true}, Create: row, Events: []store.Event{e}}})[0])
}

func queueSite(t *testing.T, o dashboard.Options, q store.Queue) *site {
	t.Helper()
	st := queued{memory.Open()}
	require.NoError(t, st.PutQueue(t.Context(), q))
	return open(t, st, o)
}

func TestAQueueIsShownPausedAndResumedOverHTTP(t *testing.T) {
	o := dashboard.Options{User: func(context.Context) string { return "ada" }}
	s := queueSite(t, o, store.Queue{Name: "emails", Max: 2, MaxPerPartition: 1, Rate: 10, Per: time.Minute})
	s.inLine("w1", "acme", store.Waiting)
	s.inLine("w2", "globex", store.Waiting)
	s.inLine("p1", "acme", store.Pending)

	all, err := s.c.Queues(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	q, err := s.c.Queue(t.Context(), "emails")
	require.NoError(t, err)
	require.Equal(t, 2, q.Max)
	require.EqualValues(t, 60_000, q.PerMS)
	require.EqualValues(t, 2, q.Running)
	require.EqualValues(t, 1, q.InLine)
	require.NotZero(t, q.Oldest)
	require.Equal(t, []client.QueueWait{{Reason: "queue_limit", Runs: 1, Text: "2 of 2 run"}}, q.Waits)
	require.Len(t, q.Partitions, 2)
	require.Equal(t, client.QueuePartition{Name: "acme", Running: 1, InLine: 1}, q.Partitions[0])

	run, err := s.c.GetRun(t.Context(), "p1")
	require.NoError(t, err)
	require.Equal(t, "emails", run.Queue)
	require.Equal(t, "acme", run.Partition)
	require.Equal(t, "1st in line of emails, partition acme; 2 of 2 run; acme is at its limit of 1.", run.Verdict)
	require.Equal(t, &client.Line{Queue: "emails", Partition: "acme", Position: 1, Reason: "queue_limit", Text: strings.TrimSuffix(run.Verdict, ".")}, run.Line)
	require.Contains(t, s.browse("/runs/p1").body, "1st in line", "the page says the same")

	done, err := s.c.PauseQueue(t.Context(), "emails", "the provider is down")
	require.NoError(t, err)
	require.True(t, done.Queue.Paused)
	require.Equal(t, "the provider is down (ada)", done.Queue.Reason)
	require.Contains(t, done.Message, "Queue emails paused")
	run, err = s.c.GetRun(t.Context(), "p1")
	require.NoError(t, err)
	require.Contains(t, run.Verdict, "the queue is paused: “the provider is down (ada)”")

	done, err = s.c.ResumeQueue(t.Context(), "emails")
	require.NoError(t, err)
	require.False(t, done.Queue.Paused)
	require.Empty(t, done.Queue.Reason)

	_, err = s.c.Queue(t.Context(), "nosuch")
	require.ErrorIs(t, err, client.ErrNotFound)
	_, err = s.c.PauseQueue(t.Context(), "..", "")
	require.ErrorIs(t, err, client.ErrNotFound, "any name is one segment")
}

func TestDeadLettersAreRetriedAloneOrAllOverHTTP(t *testing.T) {
	s := queueSite(t, dashboard.Options{}, store.Queue{Name: "emails"})
	for _, id := range []string{"emails-1", "emails-2", "emails-3", "other"} {
		s.failed(id)
	}
	plan, err := s.c.Retry(t.Context(), "emails-1", true)
	require.NoError(t, err)
	require.True(t, plan.DryRun)
	require.Equal(t, []string{"reserve"}, plan.Plan.Skipped)
	require.Equal(t, "failed", s.until("emails-1", "failed").Status)
	_, err = s.c.Retry(t.Context(), "emails-1", false)
	require.NoError(t, err)
	s.until("emails-1", "waiting")
	_, err = s.c.Retry(t.Context(), "emails-1", false)
	require.ErrorIs(t, err, client.ErrConflict)
	_, err = s.c.Retry(t.Context(), "other", false)
	require.ErrorIs(t, err, client.ErrConflict)
	require.ErrorContains(t, err, "on no queue")

	filter := map[string][]string{"queue": {"emails"}}
	dry, err := s.c.RetryAll(t.Context(), client.BulkRequest{Filter: filter, DryRun: true})
	require.NoError(t, err)
	require.Equal(t, 2, dry.Done)
	all, err := s.c.RetryAll(t.Context(), client.BulkRequest{Filter: filter, Matching: 2})
	require.NoError(t, err)
	require.Equal(t, 2, all.Done)
	s.until("emails-2", "waiting")
	s.until("emails-3", "waiting")
	s.until("other", "failed")
}

func TestThePagesOfQueuesShowWhyRunsWaitAndOfferWhatIsAllowed(t *testing.T) {
	may := true
	o := dashboard.Options{
		Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "…") },
		Authorize: func(_ context.Context, a dashboard.Action, _ string) error {
			if a == dashboard.ActionQueue && !may {
				return errors.New("no")
			}
			return nil
		},
	}
	s := queueSite(t, o, store.Queue{Name: "emails", Max: 1, Rate: 3, Per: time.Second})
	s.inLine("w1", "acme", store.Waiting)
	s.inLine("p1", "acme", store.Pending)
	s.failed("emails-1")

	page := s.browse("/queues").body
	require.Contains(t, page, `data-key="emails"`)
	require.Regexp(t, `1 of 1</td>`, page)
	require.Contains(t, page, ">1 of 1 run<")
	require.Contains(t, page, "3 in 1.00 s")
	require.Contains(t, page, `action="/queues/emails/do/pause"`)
	require.Contains(t, page, `href="/?q=queue%3Aemails&#43;status%3Afailed"`)

	one := s.browse("/queues/emails").body
	require.Contains(t, one, "1 in line")
	require.Contains(t, one, ">acme<")
	require.Contains(t, one, "Retry 1 that failed")
	require.Contains(t, s.browse("/bulk?act=retry&q=queue:emails+status:failed").body, "1 can get in line again")

	require.Equal(t, 303, s.send("POST", "/queues/emails/do/pause", "reason=a+secret+deploy", "Content-Type: application/x-www-form-urlencoded").status)
	page = s.browse("/queues").body
	require.Contains(t, page, "a … deploy")
	require.NotContains(t, page, "secret")
	require.Contains(t, page, `action="/queues/emails/do/resume"`)
	require.NotContains(t, s.browse("/runs/p1").body, "secret")
	require.NotContains(t, s.send("GET", "/api/queues/emails", "").body, "secret")
	require.NotContains(t, s.send("GET", "/api/runs/p1", "").body, "secret")
	may = false
	require.NotContains(t, s.browse("/queues").body, "/do/", "what is not allowed is absent")
	require.Equal(t, 403, s.send("POST", "/api/queues/emails/resume", "").status)
	require.Equal(t, 404, s.browse("/queues/nosuch").status)
}

func TestAPageOfAnotherOriginCannotPauseAQueue(t *testing.T) {
	s := queueSite(t, dashboard.Options{}, store.Queue{Name: "emails"})
	for _, path := range []string{"/api/queues/emails/pause", "/queues/emails/do/pause"} {
		require.Equal(t, 403, s.send("POST", path, "", "Origin: https://evil.example.com").status)
		require.Equal(t, 405, s.send("GET", path, "").status)
	}
	q, err := s.c.Queue(t.Context(), "emails")
	require.NoError(t, err)
	require.False(t, q.Paused)
}

func TestTheNavigationHasQueuesOnceThereAreSome(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	require.NotContains(t, s.browse("/").body, `href="/queues"`)
	require.Contains(t, s.browse("/queues").body, "No queues")
	require.NoError(t, store.CapabilitiesOf(s.st).Queues.PutQueue(t.Context(), store.Queue{Name: "emails"}))
	require.Eventually(t, func() bool { return strings.Contains(s.browse("/").body, `href="/queues"`) }, time.Minute, 50*time.Millisecond)
}

func TestTheStreamTellsWhatChangesInQueues(t *testing.T) {
	s := queueSite(t, dashboard.Options{}, store.Queue{Name: "emails"})
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	next := s.stream(ctx, "/api/stream", "")
	_, ok := next()
	require.True(t, ok)
	_, err := s.c.PauseQueue(t.Context(), "emails", "deploy")
	require.NoError(t, err)
	for {
		m, ok := next()
		require.True(t, ok)
		if m.event == "queues" {
			require.Contains(t, m.data, `"paused":true`)
			return
		}
	}
}

func TestTheDashboardWorksOnAStoreWithoutQueues(t *testing.T) {
	s := open(t, plain{memory.Open()}, dashboard.Options{})
	s.asks("r")
	require.Contains(t, s.browse("/queues").body, "No queues")
	all, err := s.c.Queues(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = s.c.Queue(t.Context(), "emails")
	require.ErrorIs(t, err, client.ErrConflict)
	require.ErrorContains(t, err, "this store keeps no queues")
	_, err = durable.Ref[Order, string]("checkout").Handle(durable.NewContext(t.Context(), s.eng), "r")
	require.NoError(t, err)
}

// plain is a store that has nothing but what every store has.
type plain struct{ store.Store }
