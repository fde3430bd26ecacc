// Package count writes numbers beside nouns: "1 run", "3 runs", "12,408 branches". Every text
// that counts takes it from here, so that none says "1 runs".
package count

import (
	"strconv"
	"strings"
)

// Int is what can be counted with.
type Int interface{ ~int | ~int32 | ~int64 }

// Of counts: "1 run", "3 runs". The last word of one is the one that changes.
func Of[N Int](n N, one string) string { return Number(n) + " " + Noun(n, one) }

// Noun returns the noun that stands beside n things.
func Noun[N Int](n N, one string) string {
	switch {
	case n == 1:
		return one
	case strings.HasSuffix(one, "child"):
		return one + "ren"
	case strings.HasSuffix(one, "s") || strings.HasSuffix(one, "ch"):
		return one + "es"
	}
	return one + "s"
}

// Verb returns the form of a verb that agrees with n things: "is" or "are", "waits" or "wait".
func Verb[N Int](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Number writes a number with separators: "12,408".
func Number[N Int](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
