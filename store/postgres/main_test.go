package postgres_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No test leaves a goroutine behind. The one that waits for the shared server
// of package pgtest belongs to the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/holdfast-dev/holdfast/internal/pgtest.(*Cluster).start.func1"))
}
