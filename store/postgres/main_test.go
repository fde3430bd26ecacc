package postgres_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// No test leaves a goroutine behind. The one that waits for the shared server
// of package pgtest belongs to the process.
func TestMain(m *testing.M) {
	conformance.Main(func(place string) (store.Store, error) {
		driver, place, _ := strings.Cut(place, " ")
		schema, dsn, _ := strings.Cut(place, " ")
		return openWith(driver, dsn, postgres.Options{Schema: schema})
	})
	pgtest.Parallel(4)
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/holdfast-dev/holdfast/test/pgtest.(*Cluster).start.func1"))
}
