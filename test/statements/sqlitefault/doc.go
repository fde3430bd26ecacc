// Package sqlitefault makes one call of a program to SQLite fail: the linker (-Wl,--wrap) puts
// this package between the driver and SQLite, so that neither the driver nor the store knows of
// it. SQLite itself works as always, on a real file.
//
// It is for tests on Linux with cgo, and empty elsewhere. A program that imports it is linked
// with it, so only the tests of test/statements do.
package sqlitefault
