package arch_test

// A rule says what the packages at and below a path may import. The rule with
// the longest matching path decides. "std" always is allowed, as is a package
// below the rule's own path.
type rule struct {
	path string // below the module: "durable", "internal"; "." is the module root
	// ours are paths of this module it may import, with everything below them.
	ours []string
	// modules of others it may import.
	modules []string
	// notStd are packages of the standard library it may not import.
	notStd []string
	// anyBackend: it links whatever store it shows or measures.
	anyBackend bool
	// forTests: its files other than _test files may import the test modules, and
	// those test helpers that ours names, because it is itself meant for tests,
	// for measuring or for showing.
	forTests bool
}

const (
	otel      = "go.opentelemetry.io/otel"
	sqlx      = "github.com/jmoiron/sqlx"
	sqlite3   = "github.com/mattn/go-sqlite3"
	pq        = "github.com/lib/pq"
	flock     = "github.com/gofrs/flock"
	fsnotify  = "github.com/fsnotify/fsnotify"
	sys       = "golang.org/x/sys"
	testify   = "github.com/stretchr/testify"
	rapid     = "pgregory.net/rapid"
	goleak    = "go.uber.org/goleak"
	porcupine = "github.com/anishathalye/porcupine"
	pgx       = "github.com/jackc/pgx/v5"
	compress  = "github.com/klauspost/compress"
	term      = "golang.org/x/term"
	uniseg    = "github.com/rivo/uniseg"
	cron      = "github.com/robfig/cron/v3"
	otlp      = "go.opentelemetry.io/proto/otlp"
	protobuf  = "google.golang.org/protobuf"

	tools    = "golang.org/x/tools"
	golangci = "github.com/golangci/plugin-module-register"

	otelSDK     = otel + "/sdk"
	otlpTraces  = otel + "/exporters/otlp/otlptrace/otlptracehttp"
	otlpMetrics = otel + "/exporters/otlp/otlpmetric/otlpmetrichttp"
	openapi     = "github.com/getkin/kin-openapi"
	chromedp    = "github.com/chromedp/chromedp"
	cdproto     = "github.com/chromedp/cdproto"
)

// The modules of the terminal.
const (
	cobra       = "github.com/spf13/cobra"
	pflag       = "github.com/spf13/pflag"
	yaml        = "go.yaml.in/yaml/v3"
	progressbar = "github.com/schollz/progressbar/v3"
)

// A new line here needs one in docs/adr/0002-dependencies.md.
var rules = []rule{
	// The contract knows nobody.
	{path: "store", notStd: []string{"net/http", "database/sql"}},
	{path: "store/internal", ours: []string{"store"}},
	{path: "store/memory", ours: []string{"store"}},
	{path: "store/sqlite", ours: []string{"store", "internal"}, modules: []string{sqlx, sqlite3, flock, fsnotify, sys}},
	{path: "store/postgres", ours: []string{"store", "internal"}, modules: []string{sqlx, pq, sys}},

	// The SDK knows the contract, and no backend, driver, command line or HTTP.
	{
		path: "durable", ours: []string{"store", "internal"},
		modules: []string{otel, otel + "/trace", otel + "/metric", sqlx},
		notStd:  []string{"net/http"},
	},
	// Who operates on runs reaches the engine through internal/desk.
	{path: "operate", ours: []string{"durable", "store", "internal"}},
	{path: "durable/durabletest", ours: []string{"durable", "operate", "store", "store/memory", "internal/crashstore", "internal/guard", "internal/history", "internal/host", "internal/misuse", "internal/outline", "internal/stepbody", "internal/visible"}, forTests: true},
	{path: "conformance", ours: []string{"store"}, forTests: true},
	{path: "conformance/recovery", ours: []string{"durable", "operate", "store"}, forTests: true},

	// Around the SDK, never imported by it.
	{path: "shell", ours: []string{"durable", "store", "internal"}},
	{path: "archive", ours: []string{"durable", "operate", "store", "internal"}, modules: []string{compress, flock}},
	{path: "dashboard", ours: []string{"client", "durable", "operate"}, modules: []string{otel, otel + "/trace"}},
	// The rooms of the dashboard: each knows those before it.
	{path: "dashboard/internal/view", ours: []string{"client", "durable", "operate", "store", "internal/count", "internal/envelope", "internal/outline", "internal/visible", "internal/wire"}, notStd: []string{"net/http"}},
	{path: "dashboard/internal/web", ours: []string{"client", "durable", "operate", "store", "dashboard/internal/view", "internal/commit", "internal/guard"}},
	{path: "dashboard/internal/read", ours: []string{"client", "durable", "operate", "store", "internal/history", "internal/outline", "dashboard/internal/view", "dashboard/internal/web"}},
	{path: "dashboard/internal/stream", ours: []string{"client", "durable", "operate", "store", "dashboard/internal/view", "dashboard/internal/web", "dashboard/internal/read"}},
	{path: "dashboard/internal/act", ours: []string{"client", "durable", "operate", "store", "internal/count", "internal/outline", "dashboard/internal/view", "dashboard/internal/web", "dashboard/internal/read"}},
	{path: "dashboard/internal/api", ours: []string{"client", "durable", "operate", "store", "dashboard/internal/view", "dashboard/internal/web", "dashboard/internal/read"}},
	{path: "dashboard/internal/pages", ours: []string{"client", "durable", "operate", "store", "internal/count", "internal/outline", "internal/visible", "dashboard/internal/view", "dashboard/internal/web", "dashboard/internal/read", "dashboard/internal/act"}},
	{path: "dashboard/internal/shots", ours: []string{"dashboard", "durable", "operate", "store", "internal/crashstore"}, modules: []string{chromedp, cdproto}, anyBackend: true, forTests: true},
	{path: "client", modules: []string{otel}},
	{path: "cli", ours: []string{"durable", "operate", "store", "client", "archive", "internal"}, modules: []string{cobra, pflag, term}},
	{path: "cli/internal/show", ours: []string{"durable", "operate", "store", "internal"}, modules: []string{cobra, pflag, term, progressbar, sys}},
	{path: "cli/internal/target", ours: []string{"cli/internal/looking", "cli/internal/show", "client", "durable", "operate", "store", "internal"}, modules: []string{yaml}},
	{path: "cli/internal/meant", modules: []string{cobra}},
	{path: "cli/internal/shop", ours: []string{"cli", "durable", "operate", "dashboard", "store"}, modules: []string{cobra}, anyBackend: true},
	{path: "cmd", ours: []string{"cli", "store"}, anyBackend: true},
	// The checker knows the SDK by its names alone.
	{path: "cmd/durablevet", modules: []string{tools, golangci}},
	{path: "examples", ours: []string{"durable", "operate", "store"}, anyBackend: true},
	{path: "examples/pipeline", ours: []string{"cli", "client", "dashboard", "durable", "operate", "shell", "store"}, modules: []string{cobra}, anyBackend: true},
	{path: "examples/program", ours: []string{"dashboard", "durable", "store"}, modules: []string{sqlx}, anyBackend: true},
	{
		path: "examples/transfer", ours: []string{"durable", "store", "examples/internal", "test/pgtest"}, modules: []string{sqlx}, anyBackend: true, forTests: true,
	},
	{
		path: "examples/telemetry", ours: []string{"durable", "operate", "store", "internal/termview", "test/otlptest", "test/tracecheck"}, anyBackend: true, forTests: true,
		modules: []string{otel, otel + "/trace", otelSDK, otelSDK + "/metric", otlpTraces, otlpMetrics},
	},
	{
		path: "bench", ours: []string{"cli", "dashboard", "durable", "operate", "store", "internal", "test/pgtest"},
		modules: []string{sqlx, sqlite3, pq, compress, otelSDK, otelSDK + "/metric"}, anyBackend: true, forTests: true,
	},

	// Nobody's API. It serves the backends and the SDK, so it may not know them.
	{path: "internal", ours: []string{"store"}},
	{path: "internal/desk", ours: []string{"store", "internal/cleaner", "internal/commit", "internal/history", "internal/payload", "internal/schedules", "internal/stuck"}},
	{path: "internal/runfile", ours: []string{"store", "internal/count", "internal/history", "internal/payload"}},
	{path: "internal/faults", ours: []string{"store", "internal/guard", "internal/history", "internal/misuse", "internal/payload"}},
	{path: "internal/guard", ours: []string{"store"}},
	{path: "internal/goroutine", ours: []string{"internal/guard"}},
	{path: "internal/host", ours: []string{"store", "internal/guard"}},
	{path: "internal/flat"},
	{path: "internal/payload", ours: []string{"store", "internal/envelope", "internal/flat", "internal/guard"}, modules: []string{compress}},
	{path: "internal/storeclock", ours: []string{"store"}},
	{path: "internal/archiver", ours: []string{"store", "internal/guard", "internal/history", "internal/nudge", "internal/runfile"}},
	{path: "internal/claims", ours: []string{"store", "internal/commit", "internal/heart", "internal/history", "internal/nudge", "internal/queues", "internal/runlog", "internal/stuck", "internal/telemetry"}},
	{path: "internal/calendar", modules: []string{cron}},
	{path: "internal/cleaner", ours: []string{"store", "internal/count"}},
	{path: "internal/commit", ours: []string{"store", "internal/history", "internal/payload", "internal/storeclock"}},
	{path: "internal/declared", ours: []string{"store", "internal/commit", "internal/queues", "internal/schedules"}},
	{path: "internal/heart", ours: []string{"store", "internal/host", "internal/nudge", "internal/storeclock"}},
	{path: "internal/history", ours: []string{"store", "internal/count", "internal/envelope"}},
	{path: "internal/retry", ours: []string{"store", "internal/guard"}},
	{path: "internal/sqlstore", ours: []string{"store"}, modules: []string{sqlx}},
	{path: "internal/termview", ours: []string{"durable", "operate", "store", "internal/count", "internal/visible"}, modules: []string{term, uniseg}},
	{path: "internal/runlog", ours: []string{"store", "internal/faults", "internal/guard", "internal/outline", "internal/telemetry", "internal/visible"}, modules: []string{otel + "/trace"}},
	{path: "internal/matching", ours: []string{"store", "internal/history"}},
	{path: "internal/count"},
	{path: "internal/lengths", ours: []string{"store"}},
	{path: "internal/misuse"},
	{path: "internal/nudge"},
	{path: "internal/queues", ours: []string{"store"}},
	{path: "internal/requests", ours: []string{"store", "internal/nudge"}},
	{path: "internal/mail", ours: []string{"store", "internal/history"}},
	{path: "internal/outline", ours: []string{"store", "internal/count", "internal/history"}},
	{path: "internal/redact", ours: []string{"internal/guard"}},
	{path: "internal/schedules", ours: []string{"store", "internal/calendar", "internal/count", "internal/envelope", "internal/guard"}},
	{path: "internal/stuck", ours: []string{"store", "internal/history"}},
	{path: "internal/telemetry", ours: []string{"store", "internal/commit", "internal/history", "internal/host"}, modules: []string{otel, otel + "/trace", otel + "/metric"}},
	{path: "internal/visible"},
	{path: "internal/wire", ours: []string{"client", "operate", "store", "internal/outline"}},

	// The tests that span packages, and their helpers.
	{path: "test", forTests: true},
	{path: "test/sim", ours: []string{"durable", "operate", "store", "internal/storeclock"}, anyBackend: true, forTests: true},
	{path: "test/tried", forTests: true},
	{path: "test/statements/sqlitefault", modules: []string{sqlite3}, forTests: true},
	{path: "test/pgtest", ours: []string{"test/syspackage"}, modules: []string{pq, sqlx, sys}, forTests: true},
	{path: "test/syspackage", modules: []string{flock}, forTests: true},
	{path: "test/browsertest", ours: []string{"test/syspackage"}, forTests: true},
	{path: "test/order", forTests: true},
	{path: "test/leftout", ours: []string{"test/browsertest", "test/patroni", "test/pgtest"}, forTests: true},
	{path: "test/patroni", ours: []string{"test/pgtest", "test/syspackage"}, modules: []string{pq}, forTests: true},
	{path: "test/otlptest", modules: []string{otlp, protobuf}, forTests: true},
	{path: "test/tracecheck", ours: []string{"store", "test/otlptest"}, forTests: true},
	{path: "test/tracedemo", ours: []string{"store", "test/otlptest", "test/tracecheck"}, anyBackend: true, forTests: true},
}

// backends are the packages that only the user's main program chooses.
var backends = []string{"store/memory", "store/sqlite", "store/postgres"}

// testModules and testHelpers are for _test files and for packages that are
// themselves for tests.
var (
	testModules = []string{testify, rapid, goleak, porcupine, openapi, pgx}
	testHelpers = []string{"test", "conformance", "durable/durabletest", "internal/crashstore"}
)
