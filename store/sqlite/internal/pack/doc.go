// Package pack hands many events of SQLite to Go as one value. A row that the driver hands over
// costs two calls into C and an allocation for most of its columns, which is three times what
// SQLite needs to find it (ADR 56).
//
// Without cgo there is no SQLite, and the package is empty.
package pack
