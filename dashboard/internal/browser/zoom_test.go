package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

func TestTheKeysZoomInAndOut(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	b := s.visit("/runs/order-1?step=address")
	b.shows("Zoom in")
	for _, k := range []struct{ key, is, then string }{{"+", `"address"`, "Whole time"}, {"-", "null", "Zoom in"}} {
		require.NoError(t, chromedp.Do(b.ctx, chromedp.KeyEvent(k.key)))
		b.until(`JSON.stringify(new URL(location.href).searchParams.get("zoom")) === ` + quoted(k.is))
		b.shows(k.then)
	}
	b.notReloaded()
	b.noBreach()
}

// What is shown is the old page as long as the new one is under way.
func TestAPageThatIsSlowToComeSaysSo(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	b := s.visit("/runs/order-1")
	b.eval(`(() => { const get = fetch; window.fetch = (url, o) => String(url).includes("step=address") ? new Promise((done) => { window.letGo = () => done(get(url, o)); }) : get(url, o); return 1; })()`)
	b.press("address")
	b.until(`document.querySelector("main").getAttribute("aria-busy") === "true"`)
	b.eval(`window.letGo(); 1`)
	b.until(`document.querySelector("#i").innerText === "address"`)
	b.until(`!document.querySelector("main").hasAttribute("aria-busy")`)
}
