package postgres_test

import (
	"flag"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
)

// No test leaves a goroutine behind. The one that waits for the shared server
// of package pgtest belongs to the process.
func TestMain(m *testing.M) {
	conformance.Main(func(place string) (store.Store, error) {
		driver, place, _ := strings.Cut(place, " ")
		schema, dsn, _ := strings.Cut(place, " ")
		return openWith(driver, dsn, postgres.Options{Schema: schema})
	})
	allowParallel()
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/holdfast-dev/holdfast/test/pgtest.(*Cluster).start.func1"))
}

// allowParallel lets as many tests run at once as -parallel says, or four: most of them wait for
// the server, a lock or a lease.
func allowParallel() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", "4") // the flag is there, and four is a number
	}
}
