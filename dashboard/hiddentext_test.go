package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// shownOf is how many characters of the card a body has.
func shownOf(body string) int {
	body = html.UnescapeString(body)
	for n := len(card); n > len("sk-4"); n-- {
		if strings.Contains(body, card[:n]) || strings.Contains(body, url.QueryEscape(card[:n])) {
			return n
		}
	}
	return 0
}

// Wherever a text is cut, a secret across the cut is no secret to a Redact that comes
// after it. The runs have texts in which it stands at every place where one is cut.
func TestASecretIsTakenOutBeforeATextIsCut(t *testing.T) {
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	text := func(pad int) string { return strings.Repeat("x", pad) + " " + card + " refused" }
	bad := durable.Define("bad", func(ctx context.Context, pad int) (string, error) {
		return durable.Retry(ctx, "call", durable.Policy{MaxAttempts: 2, Initial: 1}, func(ctx context.Context) (string, error) {
			durable.Note(ctx, "said", text(pad))
			return "", errors.New(text(pad))
		})
	})
	ask := durable.Define("ask", func(ctx context.Context, pad int) (bool, error) {
		if _, err := durable.Step(ctx, "large", func(context.Context) (string, error) { return text(64<<10 - pad), nil }); err != nil {
			return false, err
		}
		return durable.Await[bool](ctx, "ok", durable.Prompt(text(pad)))
	})
	s.serve(durable.Options{Workflows: []durable.Definition{bad, ask}}, dashboard.Options{Redact: withoutCards, ShowPayloads: true})
	var ids []string
	for pad := 20; pad < 520; pad += 12 {
		for _, w := range []string{"bad", "ask"} {
			id := fmt.Sprintf("%s%d", w, pad)
			_, err := s.c.Start(t.Context(), w, client.StartRequest{ID: id, Input: json.RawMessage(fmt.Sprint(pad))})
			require.NoError(t, err)
			s.until(id, map[string]string{"bad": "failed", "ask": "waiting"}[w])
			ids = append(ids, id)
		}
	}
	paths := []string{"/", "/?q=status%3Afailed", "/waiting", "/stuck", "/bulk?act=resume&q=status%3Afailed", "/api/runs?limit=1000", "/api/approvals", "/api/stuck"}
	for _, id := range ids {
		paths = append(paths, "/runs/"+id, "/runs/"+id+"?step=call", "/runs/"+id+"?step=ok", "/runs/"+id+"?step=large", "/runs/"+id+"?view=events", "/runs/"+id+"?panel=resume", "/runs/"+id+"/rows",
			"/api/runs/"+id, "/api/runs/"+id+"/events", "/api/runs/"+id+"/plan?force=1")
	}
	for _, p := range paths {
		a := s.send("GET", p, "", "Accept: "+map[bool]string{true: "application/json", false: "text/html"}[strings.HasPrefix(p, "/api")])
		if n := shownOf(a.body); n > 0 {
			i := strings.Index(a.body, card[:5])
			t.Errorf("GET %s (%d) shows %d of %d characters: …%s…", p, a.status, n, len(card), a.body[max(0, i-60):min(len(a.body), i+60)])
		}
	}
	a := s.send("POST", "/api/bulk/resume", `{"filter":{"status":["failed"]},"dry_run":true}`)
	require.Equal(t, http.StatusOK, a.status)
	require.Zero(t, shownOf(a.body), "a bulk act")
}

func TestAnIDThatBeginsWithADashIsNoFlagOfAShownCommand(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("--force")
	for panel, want := range map[string]string{"resume": "durable resume -- '--force'", "fork": " -- '--force'"} {
		body := html.UnescapeString(s.send("GET", "/runs/--force?panel="+panel, "", "Accept: text/html").body)
		require.Contains(t, body, want, panel)
		require.NotContains(t, body, "durable "+panel+" '--force'", panel)
	}
	s.asks("--by=boss")
	body := html.UnescapeString(s.send("GET", "/runs/--by=boss", "", "Accept: text/html").body)
	require.Contains(t, body, "durable approve -- '--by=boss'")
}

func TestAnIDOfAChildIsNotTakenFromOutside(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("order")
	s.asks("free/pay")
	for _, id := range []string{"order/pay", "order/each/pay[0]"} {
		a := s.send("POST", "/api/workflows/checkout/runs", `{"id":"`+id+`","input":{"ID":"x","Total":1}}`)
		require.Equal(t, http.StatusConflict, a.status, a.body)
	}
	a := s.send("POST", "/api/runs/free%2Fpay/fork", `{"id":"order/pay"}`)
	require.Equal(t, http.StatusConflict, a.status, a.body)
	_, err := operate.On(s.eng).StartJSON(t.Context(), "checkout", "order/own", json.RawMessage(`{"ID":"x","Total":1}`))
	require.NoError(t, err, "the program itself takes what id it wants")
	a = s.send("POST", "/api/workflows/checkout/runs", `{"id":"order/own","input":{"ID":"x","Total":1}}`)
	require.Equal(t, http.StatusCreated, a.status, "to start a run again is no harm: "+a.body)
}

func TestAnExportIsWholeOrBroken(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{ShowPayloads: true})
	s.asks("r")
	var want bytes.Buffer
	require.NoError(t, operate.On(s.eng).Export(t.Context(), "r", &want))
	a := s.send("GET", "/api/runs/r/export", "")
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, strings.Count(want.String(), "\n"), strings.Count(a.body, "\n"))
	require.Equal(t, http.StatusNotFound, s.send("GET", "/api/runs/nobody/export", "").status, "an error before the first byte is an answer")
}
