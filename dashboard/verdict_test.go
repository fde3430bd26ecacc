package dashboard_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
)

var (
	verdictOf = regexp.MustCompile(`(?s)<section class="verdict.*?<span>(.*?)</span>`)
	markup    = regexp.MustCompile(`<[^>]*>`)
)

// The run of the API says in a sentence what its page says.
func TestTheAPISaysOfARunWhatItsPageSays(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.failed("failed")
		s.asks("asks")
		s.asks("done")
		require.NoError(t, s.eng.Cancel(t.Context(), "done", "not wanted"))
		s.until("done", "cancelled")
		for id, want := range map[string]string{
			"failed": "charge failed twice; the last error was “bank says no: card 4111-secret”",
			"asks":   "Waiting for a person: “Ship asks?”",
			"done":   "Cancelled just now: “not wanted”",
		} {
			run, err := s.c.GetRun(t.Context(), id)
			require.NoError(t, err)
			require.Contains(t, run.Verdict, strings.TrimSuffix(want, "just now: “not wanted”"))
			shown := verdictOf.FindStringSubmatch(s.browse("/runs/" + id).body)
			require.Len(t, shown, 2, id)
			head := html.UnescapeString(markup.ReplaceAllString(shown[1], ""))
			if id != "done" { // it says how long ago that was
				require.Equal(t, want, head)
				require.True(t, strings.HasPrefix(run.Verdict, head+"."), run.Verdict)
			}
		}
		hidden := open(t, memoryStore(t), dashboard.Options{Redact: func(text string) string { return strings.ReplaceAll(text, "4111-secret", "[hidden]") }})
		hidden.failed("failed")
		run, err := hidden.c.GetRun(t.Context(), "failed")
		require.NoError(t, err)
		require.Contains(t, run.Verdict, "card [hidden]")
	})
}
