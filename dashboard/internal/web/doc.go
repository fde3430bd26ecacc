// Package web is the HTTP code that the packages of the dashboard share: their common
// environment (Env), reading requests, writing answers, and mapping errors. problem.go
// has the only table of errors.
package web
