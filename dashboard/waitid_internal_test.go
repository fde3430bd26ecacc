package dashboard

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/durable"
)

func FuzzAWaitID(f *testing.F) {
	f.Add("order-42:7")
	f.Add(":")
	f.Add("a:b:9")
	f.Add("r:-1")
	f.Add("deploy:staging")
	f.Add("r:07")
	f.Add("r:+7")
	f.Fuzz(func(t *testing.T, id string) {
		run, ok := view.RunOfWait(id)
		rt := route{run: "wait"}
		r := &http.Request{}
		r.SetPathValue("wait", id)
		if !ok {
			require.Empty(t, run)
			require.Equal(t, id, rt.runOf(r), "it is the id of a run, whole")
			return
		}
		require.NotEmpty(t, run)
		require.Equal(t, run, rt.runOf(r))
		seq, err := strconv.ParseInt(strings.TrimPrefix(id, run+":"), 10, 64)
		require.NoError(t, err)
		require.Equal(t, id, view.WaitID(&durable.Approval{RunID: run, Seq: seq}))
	})
}
