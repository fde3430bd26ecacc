package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// counted counts the histories that are read.
type counted struct {
	store.Store
	loads atomic.Int64
}

func (c *counted) Load(ctx context.Context, id string, at store.Cursor) (*store.History, error) {
	c.loads.Add(1)
	return c.Store.Load(ctx, id, at)
}

// The answer is in the store until a process that has the code takes it, which may be days after.
func TestAPageDoesNotAskAgainForAnAnswerThatIsThere(t *testing.T) {
	s := open(t, memory.Open(), dashboard.Options{})
	s.asks("a")
	require.NoError(t, s.eng.Close())
	apart := &site{t: t, st: s.st}
	apart.serve(durable.Options{}, dashboard.Options{})
	page := func() string { return apart.send("GET", "/runs/a", "", "Accept: text/html").body }
	require.Contains(t, page(), "durable approve a")
	require.NotContains(t, page(), "It was answered")
	_, err := apart.c.Approve(t.Context(), "a", "", "")
	require.NoError(t, err)
	require.NotContains(t, page(), "durable approve a", "it would be refused")
	require.Contains(t, page(), "It was answered; the answer is kept until the run goes on.")
}

// A question that takes the place of another changes no count: it is told all the
// same.
func TestTheNextQuestionOfARunIsToldToThoseWhoWatchTheList(t *testing.T) {
	t.Parallel() // it mostly waits
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		const questions = 3
		quiz := durable.Define("quiz", func(ctx context.Context, _ string) (int, error) {
			for i := range questions {
				if _, err := durable.Await[bool](ctx, fmt.Sprint("q", i), durable.Prompt(fmt.Sprint("Question ", i, "?"))); err != nil {
					return 0, err
				}
			}
			return questions, nil
		})
		s.serve(durable.Options{Workflows: []durable.Definition{quiz}}, dashboard.Options{})
		_, err := s.c.Start(t.Context(), "quiz", client.StartRequest{ID: "r"})
		require.NoError(t, err)
		s.until("r", "waiting")
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		next := s.stream(ctx, "/api/stream", "")
		told, gone := map[string]bool{}, 0
		for gone < questions {
			m, ok := next()
			require.True(t, ok, "of %d questions %d were told, and %d answered", questions, len(told), gone)
			switch m.event {
			case "approval":
				var a client.Approval
				require.NoError(t, json.Unmarshal([]byte(m.data), &a))
				if !told[a.Prompt] {
					told[a.Prompt] = true
					_, err := s.c.Approve(ctx, "r", "", "")
					require.NoError(t, err)
				}
			case "answered":
				gone++
			}
		}
		require.Len(t, told, questions)
	})
}

// What runs ask stands in their histories. Many who look, and look again, read
// each of them once and not each for themselves.
func TestACrowdReadsWhatIsAskedOnce(t *testing.T) {
	const asking, crowd = 40, 60
	st := &counted{Store: memory.Open()}
	s := open(t, st, dashboard.Options{MaxStreams: 2 * crowd, MaxStreamsPerClient: 2 * crowd})
	for i := range asking {
		s.start(fmt.Sprintf("order-%02d", i))
	}
	for i := range asking {
		s.until(fmt.Sprintf("order-%02d", i), "waiting")
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	before := st.loads.Load()
	var all sync.WaitGroup
	for i := range crowd {
		next := s.stream(ctx, "/api/stream", "")
		all.Go(func() {
			for seen := 0; seen < asking; {
				m, ok := next()
				if !ok {
					t.Errorf("client %d saw %d of %d questions", i, seen, asking)
					return
				}
				if m.event == "approval" {
					seen++
				}
			}
		})
	}
	all.Wait()
	for range 10 {
		open, err := s.c.Approvals(ctx)
		require.NoError(t, err)
		require.Len(t, open, asking)
	}
	// The first client and its hub may both have begun before the other was done; and
	// a question takes two reads.
	require.LessOrEqual(t, st.loads.Load()-before, int64(4*asking))

	// The page has the same memory.
	before = st.loads.Load()
	page := s.browse("/waiting")
	require.Equal(t, 200, page.status)
	require.Contains(t, page.body, "order-00")
	require.Equal(t, before, st.loads.Load())

	// What was answered is asked no more.
	_, err := s.c.Approve(ctx, "order-07", "", "")
	require.NoError(t, err)
	s.until("order-07", "completed")
	open, err := s.c.Approvals(ctx)
	require.NoError(t, err)
	require.Len(t, open, asking-1)
}
