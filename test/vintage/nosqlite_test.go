//go:build !cgo

package vintage_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/store"
)

var openers = map[string]func(dsn string) (store.Store, error){"postgres": openPostgres}

// Without cgo there is no SQLite to open its stores with.
func cellars(t *testing.T) map[string]cellar {
	return map[string]cellar{"postgres": postgresCellar(t)}
}
