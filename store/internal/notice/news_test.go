package notice_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// told returns the notices that news amounts to.
func told(n notice.News) (all []store.Notice) {
	n.Tell(func(n store.Notice) { all = append(all, n) })
	return all
}

func TestWhatIsSentToOtherProcessesSaysTheSameThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sent notice.News
		ids := map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "runs") {
			id := rapid.StringN(1, 40, 200).Draw(t, "id")
			ids[id] = true
			sent.Sent(id, rapid.SampledFrom([]string{"", "owner"}).Draw(t, "owner"), 1)
		}
		want := told(sent)[0]
		size := rapid.IntRange(50, 8000).Draw(t, "size")
		messages := sent.Messages("me.1", size)
		require.LessOrEqual(t, len(messages), 4)
		var got notice.News
		for _, m := range messages {
			require.NotContains(t, m, "\n")
			from, n := notice.Parse(m)
			require.Equal(t, "me.1", from)
			got.Merge(n)
		}
		all := told(got)
		require.Len(t, all, 1)
		if len(all[0].RunIDs) == 0 {
			return // they did not fit: look at everything
		}
		require.Equal(t, want.News, all[0].News)
		require.Len(t, all[0].RunIDs, len(ids))
		for _, id := range all[0].RunIDs {
			require.True(t, ids[id], "%q", id)
		}
	})
}

func TestNewsOfAnotherVersionIsNotTakenForLess(t *testing.T) {
	everything := []store.Notice{{}}
	for message, want := range map[string][]store.Notice{
		"h a,b%2Cc":   {{RunIDs: []string{"a", "b,c"}}}, // of before there were News
		"h *":         everything,
		"h a,!5":      {{RunIDs: []string{"a"}, News: store.NewsClaimable | store.NewsPlace}},
		"h a,!new":    everything,
		"h a,%zz":     everything,
		"h a,bh c,!1": everything, // one that was cut off, and another behind it
		"h !1":        everything,
		"h":           everything,
		"":            everything,
		"h a,!99999":  everything,
		"h a,!1,!2,b": {{RunIDs: []string{"a", "b"}, News: store.NewsClaimable | store.NewsMail}},
	} {
		_, n := notice.Parse(message)
		require.Equal(t, want, told(n), message)
	}
	// What is vague of one run is vague of all.
	var n notice.News
	n.Sent("a", "owner", 7)
	n.Merge(notice.Of("b"))
	require.Equal(t, []store.Notice{{RunIDs: []string{"a", "b"}, Mail: []int64{7, -1}}}, told(n))
	_, n = notice.Parse(n.Messages("h", 100)[0])
	require.Equal(t, []store.Notice{{RunIDs: []string{"a", "b"}}}, told(n))
	// An earlier version takes the mark for the id of a run.
	n = notice.News{}
	n.Deleted("a")
	require.Equal(t, []string{"h a,!12"}, n.Messages("h", 100))
}

func TestNewsSaysWhatAChangeMeansToOthers(t *testing.T) {
	run := func(status store.Status, owner string) *store.Run {
		return &store.Run{ID: "r", Status: status, Owner: owner}
	}
	for name, c := range map[string]struct {
		before, after *store.Run
		want          store.News
	}{
		"a step of the owner's":       {run(store.Running, "e"), run(store.Running, "e"), 0},
		"it waits":                    {run(store.Running, "e"), run(store.Waiting, "e"), store.NewsStatus},
		"it ends":                     {run(store.Running, "e"), run(store.Completed, ""), store.NewsStatus | store.NewsPlace},
		"it is given back":            {run(store.Running, "e"), run(store.Interrupted, ""), store.NewsStatus | store.NewsPlace | store.NewsClaimable},
		"it is resumed":               {run(store.Failed, ""), run(store.Pending, ""), store.NewsStatus | store.NewsClaimable},
		"a run of nobody has changed": {run(store.Completed, ""), run(store.Completed, ""), store.NewsStatus},
	} {
		var n notice.News
		n.Changed(c.before, c.after, notice.MayBeDue(c.after.Status))
		if c.want == 0 {
			require.True(t, n.Empty(), name)
			continue
		}
		require.Equal(t, []store.Notice{{RunIDs: []string{"r"}, News: c.want}}, told(n), name)
	}
	var n notice.News
	n.Created(run(store.Running, "e"), 5)
	require.True(t, n.Empty(), "whoever has created it executes it")
	delayed := run(store.Pending, "")
	delayed.WakeAt = 6
	n.Created(delayed, 5)
	require.Equal(t, store.NewsStatus|store.NewsTime, told(n)[0].News, "nobody can claim it yet")
	n.Created(delayed, 6)
	require.Equal(t, store.NewsStatus|store.NewsTime|store.NewsClaimable, told(n)[0].News)
}

func TestManyRunsAreEverything(t *testing.T) {
	var n notice.News
	for i := range 2000 {
		n.Deleted(strings.Repeat("x", i%100+1))
	}
	require.Equal(t, []store.Notice{{}}, told(n))
	require.Equal(t, []string{"h *"}, n.Messages("h", 100))
	n.Merge(notice.Requests())
	require.Equal(t, []store.Notice{{}}, told(n), "requests too")
	n = notice.Requests()
	require.Equal(t, []store.Notice{{Requests: true}}, told(n))
}

func TestNewsOfMailSaysWhichMessageItTellsOf(t *testing.T) {
	var a, b notice.News
	a.Sent("a", "owner", 3)
	b.Merge(a)
	b.Sent("b", "owner", 1)
	b.Deleted("c")
	require.Equal(t, []store.Notice{{RunIDs: []string{"a"}, Mail: []int64{3}, News: store.NewsMail}}, told(a), "what was merged is not written to")
	require.Equal(t, []store.Notice{{
		RunIDs: []string{"a", "b", "c"}, Mail: []int64{3, 1, 0}, News: store.NewsMail | store.NewsStatus | store.NewsPlace,
	}}, told(b))
}
