package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

const formType = "Content-Type: application/x-www-form-urlencoded"

// oddQueues are names of queues, partitions and keys that a path, a page or a query would act on.
var oddQueues = []string{`"><script>alert(1)</script>`, "..", ".", "a/b", "a%2Fb", "%2F", "~", "~..", "do/pause", "pause", "x?y#z", "ünï\u202e", strings.Repeat("/", 255), strings.Repeat("q", 255), "a b+c", `{{.}}`,
	"javascript:alert(1)", "a//b", "a/../b", "-", "--json", "%", "a,b", "a&queue=b", "*", "it's", "`x`"}

// A queue, a partition and a deduplication key may have any name that is text.
func TestAQueuesNameBreaksNoPageAndNoAddress(t *testing.T) {
	s := &site{t: t, st: memory.Open(), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}, ServeQueues: []string{"none of them"}}, dashboard.Options{})
	ctx := durable.NewContext(t.Context(), s.eng)
	for _, name := range oddQueues {
		_, err := s.shop.workflow().Enqueue(ctx, durable.AutoID, Order{ID: "1"}, durable.OnQueue(name), durable.Partition(name), durable.Dedup(name))
		require.NoError(t, err, name)
	}
	all := s.browse("/queues")
	require.Equal(t, http.StatusOK, all.status)
	require.NotContains(t, all.body, "<script>alert")
	list, err := s.c.Queues(t.Context())
	require.NoError(t, err)
	require.Len(t, list, len(oddQueues))
	for _, name := range oddQueues {
		one, err := s.c.Queue(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, name, one.Name)
		require.EqualValues(t, 1, one.InLine, name)
		require.Equal(t, name, one.Partitions[0].Name)

		done, err := s.c.PauseQueue(t.Context(), name, "</p><script>alert(2)</script>\u202e")
		require.NoError(t, err, name)
		require.True(t, done.Queue.Paused)
		page := s.browse("/queues/" + client.EscapeID(name))
		require.Equal(t, http.StatusOK, page.status, name)
		require.NotContains(t, page.body, "<script>alert", name)
		require.NotContains(t, page.body, "\u202e", name)
		require.Equal(t, 303, s.send("POST", "/queues/"+client.EscapeID(name)+"/do/resume", "x=", formType).status, name)

		runs, err := s.c.ListRuns(t.Context(), client.ListOptions{Queues: []string{name}})
		require.NoError(t, err, name)
		require.Len(t, runs.Runs, 1, "the runs of this queue alone: %q", name)
		run := runs.Runs[0]
		require.Equal(t, name, run.Partition)
		shown := s.browse("/runs/" + client.EscapeID(run.ID))
		require.Equal(t, http.StatusOK, shown.status, name)
		require.NotContains(t, shown.body, "<script>alert", name)
		require.NotContains(t, shown.body, "\u202e", name)
	}
}

// What is no name is refused, and nothing is paused by it.
func TestWhatIsNoNameOfAQueueIsRefusedOverHTTP(t *testing.T) {
	s := queueSite(t, dashboard.Options{}, store.Queue{Name: "emails"})
	for _, name := range []string{strings.Repeat("q", 256), "a\x00b", "\xff"} {
		_, err := s.c.PauseQueue(t.Context(), name, "")
		require.Error(t, err, "%q", name)
		var no *client.Error
		require.ErrorAs(t, err, &no)
		require.Contains(t, []int{400, 404}, no.Status, "%q", name)
	}
	_, err := s.c.PauseQueue(t.Context(), "", "")
	require.Error(t, err, "the empty name is no queue")
	for _, body := range []string{`{"reason":1}`, `{"reason":"x","why":"y"}`, `[]`, `{"reason":"x"}{}`, `{"reason":"` + strings.Repeat("x", 2<<20) + `"}`} {
		a := s.send("POST", "/api/queues/emails/pause", body, "Content-Type: application/json")
		require.Contains(t, []int{400, 413, 422}, a.status, body[:min(len(body), 40)]+" "+a.body)
	}
	require.Equal(t, http.StatusUnsupportedMediaType, s.send("POST", "/api/queues/emails/pause", "reason=x", formType).status)
	require.Equal(t, http.StatusForbidden, s.send("POST", "/queues/emails/do/pause", "reason=x", formType, "Sec-Fetch-Site: cross-site", "Origin: https://evil.example").status)
	require.Equal(t, http.StatusMethodNotAllowed, s.send("GET", "/api/queues/emails/pause", "").status)
	q, err := s.c.Queue(t.Context(), "emails")
	require.NoError(t, err)
	require.False(t, q.Paused)
}

// A reason may be any text: every store keeps it.
func TestAnyReasonToPauseAQueueIsKept(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		st := s.st.(store.Queues)
		require.NoError(t, st.PutQueue(t.Context(), store.Queue{Name: "emails"}))
		for _, reason := range []string{"a\x00b", "\xffx", strings.Repeat("long ", 100_000)} {
			require.NoError(t, operate.On(s.eng).PauseQueue(t.Context(), "emails", reason), "%.10q", reason)
			q, err := s.c.Queue(t.Context(), "emails")
			require.NoError(t, err)
			require.True(t, q.Paused)
			require.LessOrEqual(t, len(q.Reason), 5<<10)
			require.NotContains(t, q.Reason, "\x00")
		}
	})
}

// The dead letters of a queue with a comma in its name are not those of two others.
func TestRetryingAllOfAQueueWithACommaInItsNameLeavesOthersAlone(t *testing.T) {
	s := &site{t: t, st: memory.Open(), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}}, dashboard.Options{})
	s.shop.broken.Store(true)
	names := []string{"a", "b", "a,b", `a\,b`, `a\\`}
	for _, name := range names {
		_, err := s.shop.workflow().Enqueue(durable.NewContext(t.Context(), s.eng), "on "+name, Order{ID: "1"}, durable.OnQueue(name))
		require.NoError(t, err)
		s.until("on "+name, "failed")
	}
	for _, name := range names {
		out, err := s.c.RetryAll(t.Context(), client.BulkRequest{Filter: map[string][]string{"queue": {client.FilterValue(name)}}, DryRun: true})
		require.NoError(t, err)
		require.Len(t, out.Runs, 1)
		require.Equal(t, "on "+name, out.Runs[0].RunID)
		require.Contains(t, s.browse("/queues/"+client.EscapeID(name)).body, "status%3Afailed", "the page leads to them")
		page := s.browse("/?q=" + url.QueryEscape("queue:"+client.FilterValue(name)))
		require.Equal(t, 1, strings.Count(page.body, `<a class="id"`), name)
	}
	out, err := s.c.RetryAll(t.Context(), client.BulkRequest{Filter: map[string][]string{"queue": {"a,b"}}, DryRun: true})
	require.NoError(t, err)
	require.Len(t, out.Runs, 2, "a list of two")
}

// A live process that takes no runs from the queue does not serve them.
func TestAPlanKnowsWhoTakesRunsFromTheQueue(t *testing.T) {
	s := &site{t: t, st: memory.Open(), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}, Queues: []durable.Queue{{Name: "emails"}}}, dashboard.Options{})
	s.shop.broken.Store(true)
	_, err := s.shop.workflow().Enqueue(durable.NewContext(t.Context(), s.eng), "mail-1", Order{ID: "1"}, durable.OnQueue("emails"))
	require.NoError(t, err)
	s.until("mail-1", "failed")
	require.NoError(t, s.eng.Close())

	other := &site{t: t, st: s.st, shop: s.shop}
	other.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}, ServeQueues: []string{"others"}}, dashboard.Options{})
	plan, err := other.c.Retry(t.Context(), "mail-1", true)
	require.NoError(t, err)
	require.False(t, plan.Plan.Served)
	require.Equal(t, "nobody alive serves workflow checkout from queue emails: it goes on once a program that does is started", plan.Plan.Nobody)
	require.Contains(t, other.browse("/runs/mail-1?panel=resume").body, "No live process serves checkout v1 from queue emails")
	_, err = other.c.Retry(t.Context(), "mail-1", false)
	require.NoError(t, err)
	run, err := other.c.GetRun(t.Context(), "mail-1")
	require.NoError(t, err)
	require.Equal(t, "nobody alive serves workflow checkout from queue emails: start a program that does", run.Nobody)
	health, err := other.c.Health(t.Context())
	require.NoError(t, err)
	require.Contains(t, health.Executors[len(health.Executors)-1].Queues, "others")
}
