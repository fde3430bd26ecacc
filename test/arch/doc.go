// Package arch holds no code: its test is the table of which package may import
// which, so that a new dependency between packages, or on another module, is a
// decision that somebody writes down.
package arch
