package postgres

import (
	"database/sql/driver"
	"encoding/hex"
	"strconv"
)

// array builds a PostgreSQL array as text. The driver's own arrays do not
// support NULL between strings, and cost an allocation per element.
type array struct{ b []byte }

func (a *array) next() {
	if len(a.b) == 0 {
		a.b = append(a.b, '{')
	} else {
		a.b = append(a.b, ',')
	}
}

func (a *array) int(v int64) {
	a.next()
	a.b = strconv.AppendInt(a.b, v, 10)
}

func (a *array) bool(v bool) {
	a.next()
	a.b = strconv.AppendBool(a.b, v)
}

func (a *array) null() {
	a.next()
	a.b = append(a.b, "NULL"...)
}

func (a *array) text(s string) {
	a.next()
	a.b = append(a.b, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			a.b = append(a.b, '\\')
		}
		a.b = append(a.b, s[i])
	}
	a.b = append(a.b, '"')
}

// textOrNull adds text, NULL for nil.
func (a *array) textOrNull(b []byte) {
	if b == nil {
		a.null()
		return
	}
	a.text(string(b))
}

// bytes adds a bytea, NULL for nil.
func (a *array) bytes(b []byte) {
	if b == nil {
		a.null()
		return
	}
	a.next()
	a.b = append(a.b, `"\\x`...)
	a.b = hex.AppendEncode(a.b, b)
	a.b = append(a.b, '"')
}

// value returns the finished array. It is a string, because a connection with
// binary_parameters sends bytes as the binary format, which this is not.
func (a *array) value() driver.Value {
	if len(a.b) == 0 {
		return "{}"
	}
	return string(append(a.b, '}'))
}

func values(as []array) []driver.Value {
	vs := make([]driver.Value, len(as))
	for i := range as {
		vs[i] = as[i].value()
	}
	return vs
}

func texts[T ~string](list ...T) driver.Value {
	var a array
	for _, s := range list {
		a.text(string(s))
	}
	return a.value()
}

func ints(list ...int64) driver.Value {
	var a array
	for _, n := range list {
		a.int(n)
	}
	return a.value()
}
