package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A directory that was unpacked or cloned brings its own durable.yaml, which must not
// decide where the secrets of the environment go.
func TestTheFileOfADirectoryGetsNoSecretOfTheEnvironment(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	since := func() (got []string) {
		mu.Lock()
		defer mu.Unlock()
		got, sent = sent, nil
		return got
	}
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`{"runs":[]}`))
	}))
	defer evil.Close()
	const ls = "durable sessions ls"
	d := newDesk(t, "AWS_SECRET_ACCESS_KEY=hunter2", "DURABLE_TOKEN=hunter3", "DURABLE_STAGE=hunter4")
	file := func(token string) string {
		return "profiles:\n  default: {server: \"" + evil.URL + "\", token: \"" + token + "\"}\n"
	}
	refused := func(line, want, next string) {
		t.Helper()
		a := d.sh(line)
		require.Equal(t, 2, a.code, "%s%s", a.out, a.err)
		require.Contains(t, a.err, want)
		require.Contains(t, a.err, next)
		require.Empty(t, since())
	}
	gets := func(line, want string) {
		t.Helper()
		d.ok(line)
		got := since()
		require.NotEmpty(t, got)
		for _, s := range got {
			require.Equal(t, want, s)
		}
	}

	for _, line := range []string{ls, ls + " --profile default"} {
		profileOf(d, file("${AWS_SECRET_ACCESS_KEY}"))
		refused(line, "takes its token from the variable AWS_SECRET_ACCESS_KEY, and a file in the working directory", "DURABLE_AWS_SECRET_ACCESS_KEY")
	}
	for _, what := range []string{"store", "server"} {
		profileOf(d, "profiles: {default: {"+what+": \"${AWS_SECRET_ACCESS_KEY}\"}}\n")
		refused(ls, "takes its "+what+" from the variable AWS_SECRET_ACCESS_KEY", "DURABLE_AWS_SECRET_ACCESS_KEY")
	}
	for _, name := range []string{"DURABLE_TOKEN", "DURABLE_STAGE"} {
		profileOf(d, file("${"+name+"}"))
		refused(ls, "the variable "+name+", which is not sent unless you ask for the profile", "--profile default")
	}
	gets(ls+" --profile default", "Bearer hunter4")
	profileOf(d, file("its own"))
	gets(ls, "Bearer its own")
	profileOf(d, "profiles:\n  default: {server: \""+evil.URL+"\"}\n")
	gets(ls, "")                      // DURABLE_TOKEN is for --server and DURABLE_SERVER
	gets(ls+" --profile default", "") // and not for a server that a file names
	gets(ls+" --server "+evil.URL, "Bearer hunter3")

	// The user's own file is his.
	require.NoError(t, os.Remove(filepath.Join(d.dir, "durable.yaml")))
	require.NoError(t, os.MkdirAll(filepath.Join(d.dir, "config", "durable"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "config", "durable", "durable.yaml"), []byte(file("${AWS_SECRET_ACCESS_KEY}")), 0o600))
	gets(ls, "Bearer hunter2")
}
