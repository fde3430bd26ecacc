package browser_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
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
