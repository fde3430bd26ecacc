package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

func TestARunIsForkedWithAnotherResultAfterItsPlanWasShown(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	b := s.visit("/runs/order-1")
	b.press("Fork")
	b.shows("A dry run.")
	choose := func(value string) {
		t.Helper()
		b.eval(`(() => { const e = document.querySelector("#edit"); e.value = ` + quoted(value) + `; e.dispatchEvent(new Event("change", {bubbles: true})); return 1; })()`)
	}
	choose("address")
	b.shows("Result of address in the copy, as JSON")
	b.shows("with your result")
	require.Equal(t, `"12 Wrong Street"`, b.eval(`document.querySelector("#val0").value`))
	require.Contains(t, b.text("[data-panel]"), "charge", "what was made of it runs again")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SetValue(chromedp.CSS("#val0"), `"21 Right Street"`)))
	choose("charge")
	b.shows("Result of charge in the copy, as JSON")
	require.Equal(t, `"21 Right Street"`, b.eval(`document.querySelector("#val0").value`), "what was typed stays")
	require.NotContains(t, b.eval("location.href"), "Street", "no user data in an address")

	require.NoError(t, chromedp.Do(b.ctx, chromedp.SetValue(chromedp.CSS("#val1"), `seven`)))
	b.press("Fork order-1")
	b.shows("The result of charge is not JSON")
	b.press("×")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SetValue(chromedp.CSS("#val1"), `"seven"`)))
	b.press("Fork order-1")
	b.shows("Force replaces it all the same") // the server's word: it is recorded as a number
	b.press("×")
	b.press("Leave charge as it was recorded")
	b.until(`!document.querySelector("#val1")`)
	require.Equal(t, `"21 Right Street"`, b.eval(`document.querySelector("#val0").value`))
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SetValue(chromedp.CSS("#why"), "Wrong street")))
	_, err := s.eng.Get(s.ctx, "order-1-fork")
	require.Error(t, err, "nothing has been changed")

	b.press("Fork order-1")
	b.until(`location.pathname.endsWith("/runs/order-1-fork")`)
	b.shows("Ship it to 21 Right Street?")
	b.navigate(s.url + "/runs/order-1")
	b.shows("Ship it to 12 Wrong Street?")
	b.press("Approve")
	s.eventually("order-1", "completed")
	b.navigate(s.url + "/runs/order-1?step=address")
	b.press("Fork with another result…")
	b.shows("Result of address in the copy, as JSON")
	b.noBreach()
}

// A script reads 9007199254740993 as another number.
func TestALargeNumberIsSentAsItWasTyped(t *testing.T) {
	s, sh, wf := opened(t)
	sh.broken.Store(true)
	s.start(wf, "order-1", "failed")
	b := s.visit("/runs/order-1?step=charge")
	b.press("Edit result…")
	b.shows("Give charge a result")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SetValue(chromedp.CSS("#val"), `9007199254740993`)))
	b.press("Save the result")
	b.shows("result edited")
	b.shows("9007199254740993")
	b.navigate(s.url + "/runs/order-1?step=address&panel=fork&edit=charge")
	require.Equal(t, `9007199254740993`, b.eval(`document.querySelector("#val0").value`))
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SetValue(chromedp.CSS("#val0"), `9007199254740995`)))
	b.press("Fork order-1")
	b.until(`location.pathname.endsWith("/runs/order-1-fork")`)
	b.navigate(s.url + "/runs/order-1-fork?step=charge")
	b.shows("9007199254740995")
}

// What was typed into one panel is not offered in that of another act.
func TestAnotherPanelDoesNotBeginWithWhatWasTypedIntoOne(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	b := s.visit("/runs/order-1")
	b.press("Pause")
	b.shows("Pause order-1")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SetValue(chromedp.CSS("#why"), "only for a while")))
	b.press("Cancel")
	b.shows("Cancel order-1")
	require.Equal(t, "", b.eval(`document.querySelector("#why").value`))
	b.notReloaded()
}

func TestAResultIsCopied(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	b := s.visit("/runs/order-1?step=address")
	b.eval(`navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }; 1`)
	b.press("copy")
	b.shows("Copied.")
	require.Equal(t, `"12 Wrong Street"`, b.eval("window.copied"))
	b.noBreach()
}
