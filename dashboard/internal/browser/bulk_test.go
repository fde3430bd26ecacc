package browser_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

func TestAllThatMatchAreSelectedCountedAndActedOn(t *testing.T) {
	s, sh, wf := opened(t)
	sh.broken.Store(true)
	for i := range 3 {
		s.start(wf, fmt.Sprint("order-", i), "failed")
	}
	sh.broken.Store(false)
	b := s.visit("/?q=status:failed")
	b.press("Select all to resume…")
	b.shows("3 runs match")
	b.shows("Nothing has been changed")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("input[name=reset_failures]"))))
	b.until(`location.search.includes("reset_failures=1") && !!document.querySelector("form[method=post] input[name=reset_failures]")`)
	info, err := s.eng.Get(s.ctx, "order-0")
	require.NoError(t, err)
	require.EqualValues(t, "failed", info.Status, "the dry run changes nothing")
	b.press("Resume 3 runs")
	b.shows("3 resumed")
	for i := range 3 {
		s.eventually(fmt.Sprint("order-", i), "waiting")
	}

	b.navigate(s.url + "/?q=status:waiting")
	b.press("Select all to cancel…")
	b.shows("3 runs match")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SetValue(chromedp.CSS("#why"), "wrong price")))
	b.press("Cancel 3 runs")
	b.shows("3 asked to end")
	s.eventually("order-2", "cancelled")
}

func TestTicksStayWhileTheListChangesAndOnlyTheyAreActedOn(t *testing.T) {
	s, sh, wf := opened(t)
	sh.broken.Store(true)
	for i := range 3 {
		s.start(wf, fmt.Sprint("order-", i), "failed")
	}
	sh.broken.Store(false)
	b := s.visit("/")
	b.until(`[...document.querySelectorAll("#ticked button")].every((b) => b.disabled)`)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(`input[name=run][value="order-0"]`)), chromedp.Click(chromedp.CSS(`input[name=run][value="order-2"]`))))
	b.shows("2 ticked")
	s.start(wf, "order-3", "waiting") // the list is painted again
	b.shows("1 newer")
	b.until(`document.querySelectorAll("input[name=run]:checked").length === 2`)
	b.shows("2 ticked")
	b.press("Resume ticked…")
	b.shows("2 runs are ticked")
	b.press("Resume 2 runs")
	b.shows("2 resumed")
	s.eventually("order-0", "waiting")
	s.eventually("order-2", "waiting")
	info, err := s.eng.Get(s.ctx, "order-1")
	require.NoError(t, err)
	require.EqualValues(t, "failed", info.Status)
	b.navigate(s.url + "/")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("[data-tick-all]"))))
	b.shows("4 ticked")
}

func TestMoreThanAThousandAreActedOnSliceBySlice(t *testing.T) {
	s, _, _ := opened(t)
	elsewhere := durable.Ref[int, int]("elsewhere") // nobody executes it
	for i := range 2050 {
		_, err := elsewhere.Start(s.ctx, fmt.Sprintf("far-%04d", i), 0)
		require.NoError(t, err)
	}
	b := s.visit("/?q=workflow:elsewhere")
	b.press("Select all to cancel…")
	b.shows("2,050 runs match")
	b.shows("1,050 more were not looked at: they are taken in turn, the oldest first, 1,000 at a time.")
	b.press("Cancel 2,050 runs")
	b.shows("2,050 asked to end") // by itself
	require.False(t, b.has("form[data-go-on]"))
}
