package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// hostile is what somebody may put into a run to have it executed by whoever looks
// at it.
var hostile = []string{
	`<script>window.pwned=1</script>`,
	`"><img src=x onerror=window.pwned=1>`,
	`'><svg/onload=window.pwned=1>`,
	`</pre></textarea></title><script>window.pwned=1</script>`,
	`javascript:window.pwned=1`,
	`{{.}}<% %>${window.pwned=1}`,
	`<iframe srcdoc="<script>parent.pwned=1</script>">`,
	`<a href="javascript:window.pwned=1" autofocus onfocus=window.pwned=1>x</a>`,
	`<style>*{display:none}</style><base href="http://evil.example/">`,
	"\u202egnp.exe\u0000<b>",
	`]]><math><mtext></form><form><mglyph><style></math><img src onerror=window.pwned=1>`,
	"\x1b]0;title\a\x1b[31m\x1b[2J\u009b31m",
	`{"a":"</script><script>window.pwned=1</script>","b":"\u003cscript\u003e"}` + "\u2028window.pwned=1\u2029",
	`data:text/html,<script>window.pwned=1</script>`,
	`//evil.example/x`,
	strings.Repeat("w", 400),
}

// overflows lists what reaches beyond the page.
const overflows = `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map((e) => e.outerHTML.slice(0, 120) + " in " + e.parentElement.className).join(" | ")`

// Everything of user origin, everywhere: ids, names, inputs, results, errors,
// prompts, notes, attributes, reasons.
func TestNothingOfARunIsEverExecuted(t *testing.T) {
	all := strings.Join(hostile, " ")
	long := hostile[len(hostile)-1]
	name := strings.ReplaceAll(hostile[0]+hostile[1], "\u0000", "")
	wf := durable.Define(name, func(ctx context.Context, in string) (string, error) {
		if _, err := durable.Step(ctx, hostile[1], func(context.Context) (string, error) { return in + all, nil }); err != nil {
			return "", err
		}
		durable.Logger(ctx).Info(all, "text", all)
		if _, err := durable.Step(ctx, long[:200], func(context.Context) (string, error) { return long, nil }); err != nil {
			return "", err
		}
		if in == "asks" {
			return durable.Await[string](ctx, hostile[2], durable.Prompt(all))
		}
		return durable.Step(ctx, hostile[0], func(ctx context.Context) (string, error) {
			durable.Note(ctx, hostile[3], all)
			return "", durable.Permanent(errors.New(all))
		})
	}, durable.Version(hostile[1]))
	s := open(t, dashboard.Options{ShowPayloads: true, User: func(context.Context) string { return hostile[1] }}, wf)
	attributes := durable.Attributes(map[string]string{hostile[2]: strings.Join(hostile[:9], " "), "long": long})
	ids := []string{hostile[0] + "/..%2f", `x" onmouseover=window.pwned=1 y="`, "https:evil.example?a=b&c#d", "javascript:window.pwned=1", "\u202egnp.exe\u2066" + long}
	states := []string{"failed", "waiting", "waiting", "failed", "waiting"}
	for i, in := range []string{"fails", "asks", "asks", "fails", "asks"} {
		_, err := wf.Start(s.ctx, ids[i], in, attributes)
		require.NoError(t, err)
		s.eventually(ids[i], states[i])
	}
	require.NoError(t, s.eng.Pause(s.ctx, ids[2], all))
	b := s.visit("/")
	links, err := json.Marshal(b.eval(`[...document.querySelectorAll("a.id")].map((a) => a.href)`))
	require.NoError(t, err)
	var pages []string
	require.NoError(t, json.Unmarshal(links, &pages))
	require.Len(t, pages, len(ids))
	failed := pages[len(pages)-1] // the oldest
	for _, page := range pages {
		require.True(t, strings.HasPrefix(page, s.url+"/runs/"), page)
		pages = append(pages, page+"?panel=resume", page+"?panel=fork", page+"?panel=fork&edit="+url.QueryEscape("%3Cscript%3Ewindow.pwned=1%3C%2Fscript%3E")+"&edit="+url.QueryEscape(hostile[1]), page+"?panel=edit&step="+"%22%3E%3Cimg%20src=x%20onerror=window.pwned=1%3E", page+"?find=%3Cscript%3Ewindow.pwned=1%3C/script%3E")
	}
	pages = append(pages, s.url+"/waiting", s.url+"/stuck", s.url+"/?q=%22%3E%3Cscript%3Ewindow.pwned=1%3C/script%3E", s.url+"/runs/%3Cscript%3Ewindow.pwned=1%3C%2Fscript%3E", s.url+"/?done=%3Cscript%3E", s.url+"/", s.url+"/history", s.url+"/?q="+long, s.url+"/"+long, s.url+"/bulk?act=resume&q=status:failed", s.url+"/bulk?act=cancel&q=status:waiting")
	for _, page := range pages {
		b.look(1440, 900, false, "light")
		b.navigate(page)
		require.LessOrEqual(t, b.eval("document.documentElement.scrollWidth"), float64(1440), "what overflows: %v on %.60s", b.eval(overflows), page)
		b.look(390, 844, true, "light")
		require.LessOrEqual(t, b.eval("document.documentElement.scrollWidth"), float64(390), "what overflows: %v on %.60s", b.eval(overflows), page)
		require.Nil(t, b.eval("window.pwned ?? null"), page)
		require.Equal(t, float64(0), b.eval(`document.querySelectorAll("main script, main iframe, main img, main base, main style, main math, [onerror], [onload], [onfocus], [onmouseover]").length`), page)
		require.Equal(t, float64(0), b.eval(`[...document.querySelectorAll("[href]")].filter((a) => !/^(#|\/|https?:\/\/127\.0\.0\.1)/.test(a.getAttribute("href"))).length`), page)
		b.noBreach()
	}
	b.navigate(failed)
	b.shows(`<script>window.pwned=1</script>`)
	// What the script puts in of its own.
	b.eval(`fetch(location.pathname + "/do/resume").then(() => 1)`)
	require.Nil(t, b.eval("window.pwned ?? null"))
}

// The rules of WCAG A and AA that axe-core (testdata/axe, MPL-2.0) can judge.
func TestEveryPageIsAccessible(t *testing.T) {
	axe, err := os.ReadFile("../../testdata/axe/axe.min.js")
	require.NoError(t, err)
	s, sh, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	sh.broken.Store(true)
	s.start(wf, "order-2", "failed")
	s.start(wf, "order-3", "failed")
	_, err = operate.On(s.eng).Edit(s.ctx, "order-3", "address", "21 Right Street", operate.EditOptions{By: "jo", Reason: "wrong"})
	require.NoError(t, err)
	b := s.visit("/")
	for _, scheme := range []string{"light", "dark"} {
		b.look(1300, 900, false, scheme)
		for _, page := range []string{"/", "/?q=nothing", "/runs/order-1", "/runs/order-2?panel=resume", "/runs/order-2?panel=edit&step=address", "/runs/order-3?panel=fork", "/runs/order-2?panel=fork&edit=address&edit=charge", "/runs/order-2?step=address", "/runs/order-1?step=address&zoom=address", "/?q=sort:oldest", "/bulk?act=resume&q=status:failed", "/bulk?act=cancel&q=status:waiting", "/waiting", "/stuck", "/history", "/runs/none"} {
			if strings.HasPrefix(page, "/runs/none") {
				b.eval("1")
			}
			b.navigate(s.url + page)
			b.eval(string(axe) + "; 1")
			b.eval(`window.found = null; axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((r) => { window.found = r.violations.map((v) => v.id + ": " + v.help + " | " + v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message || "")).slice(0, 4).join(" | ")); }); 1`)
			b.until("window.found !== null")
			require.Equal(t, "[]", b.eval("JSON.stringify(window.found, null, 1)"), "%s, %s", page, scheme)
		}
	}
}

func TestAPhoneShowsTheAnswerFirstAndNothingBeyondItsEdge(t *testing.T) {
	s, sh, wf := opened(t)
	s.start(wf, "order-1-with-a-long-id-that-has-no-place-to-break-anywhere-at-all", "waiting")
	sh.broken.Store(true)
	s.start(wf, "order-2", "failed")
	b := s.visit("/")
	b.look(390, 844, true, "light")
	for _, page := range []string{"/", "/runs/order-1-with-a-long-id-that-has-no-place-to-break-anywhere-at-all", "/runs/order-2?panel=resume", "/runs/order-2?panel=fork&edit=address", "/bulk?act=resume&q=status:failed", "/waiting", "/stuck", "/history"} {
		b.navigate(s.url + page)
		require.LessOrEqual(t, b.eval("document.documentElement.scrollWidth"), float64(390), page)
		require.Equal(t, "fixed", b.eval(`getComputedStyle(document.querySelector(".nav")).position`), "the bar at the bottom")
		require.Equal(t, float64(0), b.eval(`[...document.querySelectorAll("main button, main a.btn")].filter((e) => e.offsetParent && e.getBoundingClientRect().height < 38).length`), "targets on %s", page)
	}
	b.navigate(s.url + "/runs/order-2")
	require.Less(t, b.eval(`document.querySelector(".verdict").getBoundingClientRect().top`), float64(420), "what is wrong stands before everything else")
	b.navigate(s.url + "/runs/order-2?panel=resume")
	require.Less(t, b.eval(`document.querySelector("[data-panel]").getBoundingClientRect().top - document.querySelector(".tl").getBoundingClientRect().top`), float64(0), "the panel before the timeline")
}

func TestDarkIsDarkByTheSystemAndByChoice(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	b := s.visit("/")
	luminance := `(() => { const c = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number); return (c[0] + c[1] + c[2]) / 3; })()`
	b.look(1300, 900, false, "dark")
	b.until(luminance + " < 40")
	b.look(1300, 900, false, "light")
	b.until(luminance + " > 200")
	b.eval(`document.querySelector("[data-theme-button]").click(); document.querySelector("[data-theme-button]").click(); 1`)
	b.until(luminance + " < 40")
	b.navigate(s.url + "/waiting")
	b.until(luminance + " < 40")
	b.eval(`localStorage.clear(); 1`)
}
