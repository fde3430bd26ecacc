package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// bank is a workflow that fails with its input as the error, in a step or behind it.
func bank(name string) *durable.Workflow[string, int] {
	return durable.Define(name, func(ctx context.Context, in string) (int, error) {
		return 0, durable.Do(ctx, "charge", func(context.Context) error { return durable.Permanent(errors.New(in)) })
	})
}

func TestAFailedRunSaysWhichOthersEndedAlike(t *testing.T) {
	onStores(t, dashboard.Options{Redact: func(text string) string { return strings.ReplaceAll(text, "4711-secret", "***") }}, func(t *testing.T, s *site) {
		checkout, refund := bank("pay"), bank("refund")
		require.NoError(t, s.eng.Close())
		s.serve(durable.Options{Workflows: []durable.Definition{checkout, refund}}, dashboard.Options{Redact: func(text string) string { return strings.ReplaceAll(text, "4711-secret", "***") }})
		fail := func(wf *durable.Workflow[string, int], id, with string) {
			t.Helper()
			_, err := wf.Start(withEngine(s), id, with)
			require.NoError(t, err)
			s.until(id, "failed")
		}
		fail(checkout, "a", "bank: 503 of card 4711-secret")
		require.NotContains(t, s.browse("/runs/a").body, "other run", "it is alone")
		fail(refund, "b", "bank: 503 of card 4711-secret")
		fail(checkout, "c", "no money")
		page := s.browse("/runs/a").body
		require.NotContains(t, page, "The same error", "of another workflow, and another error")
		require.Regexp(t, `<b>1 other run</b></a> failed in <b class="mono">charge</b> with another error, at `, page)
		fail(checkout, "d", "bank: 503 of card 4711-secret")
		page = s.browse("/runs/a").body
		require.Contains(t, page, "The same error ended ")
		require.Contains(t, page, "<b>1 other run</b>")
		require.NotContains(t, page, "4711-secret")
		link := regexp.MustCompile(`<a href="([^"]+)"><b>1 other run`).FindStringSubmatch(page)
		require.Contains(t, html.UnescapeString(link[1]), url.QueryEscape("workflow:pay status:failed error:bank"))
		found := s.browse(html.UnescapeString(link[1])).body
		require.NotContains(t, found, `data-key="c"`)
		require.Contains(t, found, `data-key="a"`)
		require.Contains(t, found, `data-key="d"`)
		require.NotContains(t, s.browse("/").body, "4711-secret", "nor in an address of the list")
	})
}

func TestAFailedRunIsComparedWithTheLastOnesAlone(t *testing.T) {
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	wf := bank("pay")
	s.serve(durable.Options{Workflows: []durable.Definition{wf}}, dashboard.Options{})
	for i := range 203 {
		_, err := wf.Start(withEngine(s), fmt.Sprintf("r-%03d", i), "bank: 503")
		require.NoError(t, err)
	}
	for i := range 203 {
		s.until(fmt.Sprintf("r-%03d", i), "failed")
	}
	require.Contains(t, s.browse("/runs/r-000").body, "<b>200 other runs</b></a> of the last 200 that failed, ")
	require.Contains(t, s.browse("/runs/r-202").body, "<b>199 other runs</b></a> of the last 200 that failed, ")
}
