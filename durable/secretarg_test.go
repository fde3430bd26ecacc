package durable_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

func TestASecretIsKnownByTheNamesThatProgramsUse(t *testing.T) {
	for _, name := range []string{
		"DB_PASS", "MYSQL_PWD", "DATABASE_URL", "REDIS_URL", "GITHUB_PAT", "BEARER", "PGPASSWORD", "PGPASS", "dbPass", "API_TOKEN", "--client-secret", "Authorization", "X-Api-Key", "smtp.pass",
	} {
		require.True(t, durable.SecretName(name), name)
	}
	for _, name := range []string{"PWD", "OLDPWD", "PATH", "HOME", "BYPASS", "COMPASS", "PATTERN", "BASE_URL", "DATABASE", "LANG", "--compass"} {
		require.False(t, durable.SecretName(name), name)
	}
}

func TestASecretAmongTheArgumentsIsNotRecorded(t *testing.T) {
	const secret = "hunter2"
	for _, line := range []string{
		"TOKEN=hunter2", "-e API_TOKEN=hunter2", "--env=API_TOKEN=hunter2", "--token -hunter2", "--token hunter2", "--token=hunter2", "-no-auth --token hunter2", "--header Authorization:hunter2",
		"-H|Authorization: Bearer hunter2", "--header=Authorization:hunter2", "x|--header=Authorization: hunter2", "-HX-Api-Key: hunter2", "https://user:hunter2@host/path", "--url=https://user:hunter2@host", "https://hunter2@github.com/x",
		"postgres://u:hunter2@db/x", "-c|curl -H 'Accept: x, Bearer hunter2' x", "--dsn hunter2", "https://user:" + strings.Repeat("x", 1000) + "hunter2hunter2hunter2@host",
	} {
		args := strings.Fields(line)
		if strings.Contains(line, "|") {
			args = strings.Split(line, "|")
		}
		require.NotContains(t, strings.Join(durable.RedactArgs(args), " "), secret, line)
	}
	for _, line := range []string{"--output x", "--verbose", "ssh://git@host/x", "https://host/path?a=b", "git@github.com:org/repo", "--name=value", "a:b", "-v -x"} {
		require.Equal(t, strings.Fields(line), durable.RedactArgs(strings.Fields(line)))
	}
}
