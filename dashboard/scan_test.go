package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/store"
)

// rest writes runs that have failed into a store; every third is a parcel, and
// every hundredth lost at the harbour.
func rest(t *testing.T, st store.Store, n int) {
	t.Helper()
	var changes []store.Change
	for i := range n {
		id, reason := fmt.Sprintf("order-%04d", i), "no stock"
		if i%3 == 0 {
			id = fmt.Sprintf("Parcel-%04d", i)
		}
		if i%100 == 0 {
			reason = "lost at the Harbour"
		}
		at := store.TimeOf(time.Now().Add(time.Duration(i-n) * time.Second))
		e := store.Event{Seq: 1, Type: store.WorkflowCreated, At: at}
		e.Sum = store.Seal(id, 0, &e)
		changes = append(changes, store.Change{
			RunID: id, Expect: store.Expect{Absent: true}, Events: []store.Event{e},
			Create: &store.Run{ID: id, Workflow: "checkout", Status: store.Failed, Reason: reason, Epoch: int64(at), CreatedAt: at, UpdatedAt: at, EndedAt: at},
		})
	}
	for part := range slices.Chunk(changes, 100) {
		for _, err := range st.Commit(t.Context(), part) {
			require.NoError(t, err)
		}
	}
}

// What has no index is looked for in many rows at a time, and yet a page ends
// where its last run stands: the next one begins right behind it.
func TestASearchOfManyRunsHasPagesOfTheSizeAskedFor(t *testing.T) {
	const runs = 1200
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		rest(t, s.st, runs)
		for _, x := range []struct {
			o     client.ListOptions
			found int
		}{
			{client.ListOptions{Search: "parcel", Limit: 70}, 400},
			{client.ListOptions{Search: "parcel", Limit: 70, OldestFirst: true}, 400},
			{client.ListOptions{Search: "parcel-0", Limit: 1000}, 334},
			{client.ListOptions{Error: "harbour", Limit: 1}, 12},
			{client.ListOptions{Error: "harbour", Search: "parcel", Limit: 3, Since: "24h"}, 4},
			{client.ListOptions{Search: "letter"}, 0},
			{client.ListOptions{Key: "ship"}, 0},
		} {
			seen := map[string]bool{}
			var last time.Time
			for {
				page, err := s.c.ListRuns(t.Context(), x.o)
				require.NoError(t, err)
				for _, r := range page.Runs {
					require.False(t, seen[r.ID], "%s twice", r.ID)
					seen[r.ID] = true
					require.EqualValues(t, 1, r.LastSeq, "the last event is read, too")
					if !last.IsZero() {
						require.Equal(t, x.o.OldestFirst, r.CreatedAt.After(last), "in order")
					}
					last = r.CreatedAt
				}
				if x.o.Cursor = page.Next; page.Next == "" {
					break
				}
				require.Equal(t, x.o.Limit, len(page.Runs))
			}
			require.Equal(t, x.found, len(seen), "%+v", x.o)
		}
		page := s.browse("/?q=" + url.QueryEscape("parcel status:failed"))
		require.Equal(t, http.StatusOK, page.status)
		require.Len(t, regexp.MustCompile(`<a class="id" href="[^"]*"[^>]*>Parcel-`).FindAllString(page.body, -1), 25)
	})
}
