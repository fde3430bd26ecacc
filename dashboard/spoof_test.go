package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/visible"
)

// What somebody has written cannot make a page show another text than is recorded.
func TestNothingInAPageActsOnItsReader(t *testing.T) {
	const evil = "Ship \u202e?00.01€ rof pay\u202c to \u2066alice\u2069 \u200b10000 \u009b31m \ufeff\U000e0041"
	ask := durable.Define("ask", func(ctx context.Context, fail bool) (bool, error) {
		key := "step \u202ekey"
		if err := durable.Do(ctx, key, func(ctx context.Context) error {
			durable.Note(ctx, "note \u202e", evil)
			if fail {
				return errors.New(evil)
			}
			return nil
		}); err != nil {
			return false, err
		}
		return durable.Await[bool](ctx, "wait \u202ekey", durable.Prompt(evil))
	})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	s.serve(durable.Options{Name: "web \u202e1", Workflows: []durable.Definition{ask}}, dashboard.Options{ShowPayloads: true})
	ids := map[string]string{"order \u202e1": "waiting", "order \u202e2": "failed"}
	for id, status := range ids {
		_, err := s.c.Start(t.Context(), "ask", client.StartRequest{ID: id, Input: json.RawMessage(fmt.Sprint(status == "failed")), Attributes: map[string]string{"who \u202e": "a\u202eb"}})
		require.NoError(t, err)
		s.until(id, status)
	}
	asked := url.PathEscape("order \u202e1")
	failed := url.PathEscape("order \u202e2")
	hidden := regexp.MustCompile(`<(input type="hidden"|option)[^>]*>`)
	for _, path := range []string{
		"/", "/?q=" + url.QueryEscape("a\u202eb"), "/waiting", "/stuck", "/history", "/nowhere\u202e", "/bulk?act=resume&q=status:failed",
		"/runs/" + asked, "/runs/" + failed, "/runs/" + failed + "?panel=resume", "/runs/" + failed + "?panel=fork", "/runs/" + failed + "?panel=edit", "/runs/" + failed + "/rows?from=0&n=100",
		"/runs/" + asked + "?panel=cancel", "/runs/x\u202ey",
	} {
		a := s.send("GET", path, "", "Accept: text/html")
		for _, r := range hidden.ReplaceAllString(a.body, "") {
			if r != '\n' && r != '\t' && r != '\r' && visible.Line(string(r)) != string(r) {
				t.Errorf("%s has %U", path, r)
				break
			}
		}
	}
	page := s.send("GET", "/runs/"+asked, "", "Accept: text/html").body
	require.Contains(t, page, `Ship \u202e?00.01€ rof pay\u202c`)
	require.Contains(t, page, `value="wait `+"\u202e"+`key"`, "the answer still names its wait")
	require.Contains(t, page, `durable approve &#34;$(printf &#39;%b&#39; &#39;\0157`, "the command acts nowhere and names the run")
}

// Nobody says yes to what was not shown.
func TestAnApprovalShowsItsWholePromptBeforeItsButton(t *testing.T) {
	long := "Pay 5 €?\n" + strings.Repeat("It is for this and that. ", 200) + "AND 10,000 € MORE"
	ask := durable.Define("ask", func(ctx context.Context, prompt string) (bool, error) {
		return durable.Await[bool](ctx, "wait", durable.Prompt(prompt))
	})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{ask}}, dashboard.Options{})
	for id, prompt := range map[string]string{"long": long, "short": "Pay 5 €?\nAnd 6?", "lines": strings.Repeat("line\n", 30) + "last"} {
		_, err := ask.Start(durable.NewContext(t.Context(), s.eng), id, prompt)
		require.NoError(t, err)
		s.until(id, "waiting")
		page := s.send("GET", "/runs/"+id, "", "Accept: text/html").body
		shown, button := strings.Index(page, prompt), strings.Index(page, `value="approve"`)
		require.Positive(t, shown, id)
		require.Greater(t, button, shown, id)
	}
	list := s.send("GET", "/waiting", "", "Accept: text/html").body
	require.NotContains(t, list, "AND 10,000")
	require.Equal(t, 1, strings.Count(list, `value="approve"`), "only the short one is answered in place")
	require.Contains(t, list, "Pay 5 €?\nAnd 6?")
	require.Equal(t, 2, strings.Count(list, "Read all of it, and answer"))
}
