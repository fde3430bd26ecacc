package browser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// far is a run of 700 steps, two of which failed far behind the first rows.
func far(t *testing.T) *site {
	wf := durable.Define("far", func(ctx context.Context, _ int) (int, error) {
		var last error
		for i := range 700 {
			err := durable.Do(ctx, fmt.Sprintf("s%03d", i), func(context.Context) error {
				if i == 450 || i == 650 {
					return durable.Permanent(errors.New("no"))
				}
				return nil
			})
			last = errors.Join(err, last)
		}
		return 0, last
	})
	s := open(t, dashboard.Options{}, wf)
	_, err := wf.Start(s.ctx, "r", 0)
	require.NoError(t, err)
	s.eventually("r", "failed")
	return s
}

func TestTheNextFailureIsFoundBeyondTheFirstRows(t *testing.T) {
	b := far(t).visit("/runs/r?step=s000")
	press := `(document.activeElement || document.body).dispatchEvent(new KeyboardEvent("keydown", {key: "f", bubbles: true})); 1`
	for _, key := range []string{"s450", "s650"} {
		b.eval(press)
		b.until(`document.activeElement.textContent === "` + key + `"`)
	}
}

func TestTheRowThatIsSelectedIsInThePage(t *testing.T) {
	s := far(t)
	b := s.visit("/runs/r") // it begins with what failed
	b.until(`document.querySelector("tr[aria-selected=true] a.k")?.textContent === "s650"`)
	b.noBreach()
}

func TestEveryRowIsReachedWithoutAScript(t *testing.T) {
	s := far(t)
	get := func(path string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		require.NoError(t, err)
		r.Header.Set("Accept", "text/html")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	first := get("/runs/r")
	require.Regexp(t, `<noscript>.*href="/runs/r\?from=\d+">The selected row</a>.*href="/runs/r\?from=200">Rows after`, first)
	require.NotContains(t, first, ">s250<")
	second := get("/runs/r?from=200")
	require.Contains(t, second, ">s250<")
	require.Contains(t, second, ">Rows before<")
	require.NotContains(t, second, "<noscript>", "the links are there with a script, too")
	require.Contains(t, get("/runs/r?from=600"), ">s650<")
}
