// Package vintage holds the tests that open stores written by earlier versions, kept as
// files in the backends' testdata, and continue their runs. It has no code of its own.
package vintage
