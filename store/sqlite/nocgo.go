//go:build !cgo

package sqlite

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/store"
)

// Store is never made by a program that was built without cgo.
type Store struct{ store.Store }

var errNoCgo = errors.New("sqlite: this program was built with CGO_ENABLED=0, and the SQLite driver needs cgo: " +
	"build with CGO_ENABLED=1 and a C compiler (gcc, clang or mingw-w64), or use store/postgres, which needs neither")

// Open returns an error that says what the package needs.
func Open(string) (*Store, error) { return nil, errNoCgo }

// OpenOptions returns an error that says what the package needs.
func OpenOptions(string, Options) (*Store, error) { return nil, errNoCgo }

// New returns an error that says what the package needs.
func New(*sqlx.DB, Options) (*Store, error) { return nil, errNoCgo }

// Schema is never made by a program that was built without cgo.
type Schema struct{ store.Migrator }

// OpenSchema returns an error that says what the package needs.
func OpenSchema(string, Options) (*Schema, error) { return nil, errNoCgo }

// Backup is never called.
func (*Schema) Backup(context.Context, string) error { return errNoCgo }

// Close is never called.
func (*Schema) Close() error { return errNoCgo }

// TakesWrites returns the error of OpenSchema.
func (*Schema) TakesWrites(context.Context) error { return errNoCgo }
