package browser_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// shop is a workflow whose bank can be broken.
type shop struct {
	broken atomic.Bool
	final  atomic.Bool
}

func (s *shop) checkout(ctx context.Context, n int) (string, error) {
	address, err := durable.Step(ctx, "address", func(context.Context) (string, error) { return "12 Wrong Street", nil })
	if err != nil {
		return "", err
	}
	_, err = durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3, Initial: time.Millisecond, Jitter: -1}, func(context.Context) (int, error) {
		switch {
		case s.final.Load():
			return 0, durable.Permanent(errors.New("card country is not allowed"))
		case s.broken.Load():
			return 0, errors.New("bank: 503 Service Unavailable")
		}
		return n, nil
	})
	if err != nil {
		return "", err
	}
	ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship it to "+address+"?"))
	if err != nil || !ok {
		return "kept", err
	}
	return "sent to " + address, durable.Do(ctx, "ship", func(context.Context) error { return nil })
}

func (s *shop) workflow() *durable.Workflow[int, string] {
	return durable.Define("checkout", s.checkout, durable.Steps("address", "charge", "approve", "ship"))
}

func opened(t *testing.T) (*site, *shop, *durable.Workflow[int, string]) {
	t.Helper()
	sh := new(shop)
	wf := sh.workflow()
	return open(t, dashboard.Options{ShowPayloads: true}, wf), sh, wf
}

func (s *site) start(wf *durable.Workflow[int, string], id, status string, o ...durable.StartOption) {
	s.t.Helper()
	_, err := wf.Start(s.ctx, id, 7, o...)
	require.NoError(s.t, err)
	s.eventually(id, status)
}

func TestTheListIsBroughtUpToDateWithoutReloadAndHoldsNewRunsBack(t *testing.T) {
	s, _, wf := opened(t)
	b := s.visit("/")
	b.shows("No runs yet")
	b.until(`document.querySelector("[data-live]").innerText.trim() === "Live"`)
	s.start(wf, "order-1", "waiting")
	b.until(`!!document.querySelector('tr[data-key="order-1"]')`)
	b.shows("1 run waits for a person")

	s.start(wf, "order-2", "waiting")
	b.shows("1 newer")
	require.False(t, b.has(`tr[data-key="order-2"]`), "the list moved under the pointer")
	require.NoError(t, s.eng.Signal(s.ctx, "order-1", "approve", true))
	b.until(`document.querySelector('tr[data-key="order-1"]').innerText.includes("Completed")`)
	b.press("1 newer")
	b.until(`!!document.querySelector('tr[data-key="order-2"]')`)
	b.notReloaded()
	b.noBreach()
}

func TestResumeIsOfferedForARecoverableFailureAloneAndPlannedFirst(t *testing.T) {
	s, sh, wf := opened(t)
	resume := `[...document.querySelectorAll("button")].filter((e) => e.textContent.trim() === "Resume" && e.querySelector('use[href="#i-retry"]')).length`
	s.start(wf, "waits", "waiting")
	sh.final.Store(true)
	s.start(wf, "final", "failed")
	sh.final.Store(false)
	sh.broken.Store(true)
	s.start(wf, "order-1", "failed")
	sh.broken.Store(false)

	b := s.visit("/runs/waits")
	require.Equal(t, float64(0), b.eval(resume))
	b.navigate(s.url + "/runs/final")
	b.shows("Failed, final")
	require.Equal(t, float64(0), b.eval(resume))
	b.navigate(s.url + "/runs/order-1")
	b.shows("Failed, can be resumed")
	b.shows("charge failed 3 times; the last error was “bank: 503 Service Unavailable”")
	require.Equal(t, float64(1), b.eval(resume))

	b.press("Resume")
	b.shows("What Resume will do")
	b.shows("Nothing has been changed")
	require.Contains(t, b.text("[data-panel]"), "attempt 1 of 3")
	info, err := s.eng.Get(s.ctx, "order-1")
	require.NoError(t, err)
	require.EqualValues(t, "failed", info.Status, "the dry run changes nothing")
	b.press("Resume order-1")
	b.shows("Waiting for a person: “Ship it to 12 Wrong Street?”")
	b.until(`!document.querySelector("[data-panel]")`)
	require.Equal(t, float64(0), b.eval(resume))
	b.notReloaded()
	b.noBreach()
}

func TestAFailedRunThatSomebodyElseResumesMovesInThePage(t *testing.T) {
	s, sh, wf := opened(t)
	sh.broken.Store(true)
	s.start(wf, "order-1", "failed")
	sh.broken.Store(false)
	b := s.visit("/runs/order-1")
	b.until(`document.querySelector("[data-live]").innerText.trim() === "Live"`)
	_, err := operate.On(s.eng).Resume(s.ctx, "order-1", operate.ResumeOptions{ResetFailures: true})
	require.NoError(t, err)
	b.shows("Waiting for a person")
	b.shows("run_resumed")
	b.notReloaded()
}

func TestARefusalIsShownAsTheServerSaysIt(t *testing.T) {
	s, sh, wf := opened(t)
	sh.broken.Store(true)
	s.start(wf, "order-1", "failed", durable.Exclusive("cart:7"))
	sh.broken.Store(false)
	b := s.visit("/runs/order-1")
	b.press("Resume")
	b.shows("What Resume will do")
	s.start(wf, "order-2", "waiting", durable.Exclusive("cart:7")) // has the key now
	_, refused := operate.On(s.eng).Resume(s.ctx, "order-1", operate.ResumeOptions{})
	require.ErrorIs(t, refused, durable.ErrOccupied)
	b.press("Resume order-1")
	b.until(`!!document.querySelector("#toasts [role=alert]")`)
	said := b.text("#toasts [role=alert]")
	require.Contains(t, said, "Resume order-1: not done")
	require.Contains(t, "durable: "+said, "order-2")
	require.Contains(t, refused.Error(), b.text("#toasts [role=alert] p"), "the server's message, word for word")
	b.notReloaded()
	require.NoError(t, chromedp.Do(b.ctx, chromedp.KeyEvent("\u001b")))
	b.until(`!document.querySelector("#toasts [role=alert]")`)
}

func TestAPersonAnswersInThePage(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	b := s.visit("/runs/order-1")
	b.shows("Ship it to 12 Wrong Street?")
	b.press("Approve")
	s.eventually("order-1", "completed")
	b.shows("Completed in")
	b.until(`!document.querySelector("form.answer")`)
	b.notReloaded()

	s.start(wf, "order-2", "waiting")
	b.navigate(s.url + "/waiting")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SendKeys(chromedp.CSS("form.answer input[name=reason]"), "too dear\r")))
	b.press("Reject") // Enter has answered neither yes nor no
	s.eventually("order-2", "completed")
	b.shows("Nothing waits for a person")
	b.notReloaded()
	b.noBreach()
}

func TestARunIsForkedFromAStep(t *testing.T) {
	s, _, wf := opened(t)
	s.start(wf, "order-1", "waiting")
	b := s.visit("/runs/order-1")
	b.press("address")
	b.until(`document.querySelector("#i").innerText === "address"`)
	b.press("Fork…")
	b.shows("Fork order-1")
	require.Contains(t, b.text("[data-panel]"), "charge")
	b.press("Fork order-1")
	b.until(`location.pathname.endsWith("/runs/order-1-fork")`)
	s.eventually("order-1-fork", "waiting")
	b.shows("Forked from order-1.")
	b.shows("Waiting for a person")
	b.notReloaded()
}

func TestAResultIsEditedAndTheRunResumed(t *testing.T) {
	s, sh, wf := opened(t)
	sh.broken.Store(true)
	s.start(wf, "order-1", "failed")
	sh.broken.Store(false)
	b := s.visit("/runs/order-1?step=address")
	b.shows(`"12 Wrong Street"`)
	b.press("Edit result…")
	b.shows("Edit the result of address")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SetValue(chromedp.CSS("#val"), `"21 Right Street"`), chromedp.SetValue(chromedp.CSS("#why"), "Wrong street")))
	b.press("Save the result")
	b.shows("result edited")
	b.shows("“Wrong street”")
	b.press("Resume")
	b.press("Resume order-1")
	b.shows("Ship it to 21 Right Street?")
	b.press("Approve")
	s.eventually("order-1", "completed")
	b.shows("Branch 1, current")
	b.shows("left behind")
	b.notReloaded()
	b.noBreach()
}

func TestThePagesWorkWithoutAScript(t *testing.T) {
	s, sh, wf := opened(t)
	sh.broken.Store(true)
	s.start(wf, "order-1", "failed")
	sh.broken.Store(false)
	b := s.visit("/")
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	look := func(path string) {
		t.Helper()
		require.NoError(t, chromedp.Do(b.ctx, chromedp.Navigate(s.url+path)))
	}
	click := func(css string) {
		t.Helper()
		require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(css))))
	}
	wait := func(css string) {
		t.Helper()
		require.NoError(t, chromedp.Do(b.ctx, chromedp.WaitVisible(chromedp.CSS(css))))
	}
	look("/?q=status:failed")
	click(`tr[data-key="order-1"] a.id`)
	wait(`button[name=panel][value=resume]`)
	click(`button[name=panel][value=resume]`)
	wait("[data-panel=resume]")
	click("[data-panel=resume] footer button")
	wait(".notice")
	s.eventually("order-1", "waiting")
	look("/waiting")
	click("form.answer button[value=approve]")
	s.eventually("order-1", "completed")
	_, err = chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false})
	require.NoError(t, err)
}

func TestTheKeyboardMovesAndOpens(t *testing.T) {
	s, sh, wf := opened(t)
	sh.broken.Store(true)
	s.start(wf, "order-1", "failed")
	s.start(wf, "order-2", "failed")
	b := s.visit("/")
	key := func(k string) {
		t.Helper()
		require.NoError(t, chromedp.Do(b.ctx, chromedp.KeyEvent(k)))
	}
	key("j")
	b.until(`document.activeElement.textContent === "order-2"`)
	key("j")
	b.until(`document.activeElement.textContent === "order-1"`)
	key("\r")
	b.until(`location.pathname === "/runs/order-1" && "ready" in document.body.dataset`)
	key("r")
	b.shows("What Resume will do")
	key("\u001b")
	b.until(`!document.querySelector("[data-panel]")`)
	key("?")
	b.until(`!!document.querySelector("dialog[open]")`)
	key("\u001b")
	b.until(`!document.querySelector("dialog[open]")`)
	key("/")
	b.until(`document.activeElement.matches("[data-find]")`)
}

func TestALongTimelineHasInThePageWhatIsSeen(t *testing.T) {
	const steps = 3000
	wf := durable.Define("long", func(ctx context.Context, n int) (string, error) {
		for i := range steps {
			if err := durable.Do(ctx, fmt.Sprintf("step-%04d", i), func(context.Context) error { return nil }); err != nil {
				return "", err
			}
		}
		return "", nil
	})
	s := open(t, dashboard.Options{}, wf)
	s.start(wf, "long-1", "completed")
	b := s.visit("/runs/long-1")
	rows := `document.querySelectorAll(".tl tr[data-key]").length`
	require.Less(t, b.eval(rows), float64(700))
	require.Equal(t, float64(steps), b.eval(`Number(document.querySelector(".tl").getAttribute("aria-rowcount"))`))
	b.eval(`document.querySelector(".tl").scrollIntoView({block: "end"}); 1`)
	b.shows("step-2999")
	require.Less(t, b.eval(rows), float64(1000), "what is out of sight leaves the page")
	b.eval(`scrollTo(0, document.querySelector(".tl").offsetHeight / 2); 1`)
	b.until(`[...document.querySelectorAll(".tl .k")].some((e) => { const y = e.getBoundingClientRect().y; return e.textContent.startsWith("step-1") && y > 0 && y < innerHeight; })`)
	b.navigate(s.url + "/runs/long-1?find=step-2999")
	require.Equal(t, float64(1), b.eval(rows), "what is looked for is found beyond what is in the page")
	b.noBreach()
}
