//go:build !cgo

package vintage_test

import "testing"

// Without cgo there is no SQLite to open its stores with.
func cellars(t *testing.T) map[string]cellar {
	return map[string]cellar{"postgres": postgresCellar(t)}
}
