// Package web is what every room of the dashboard has of HTTP: what it is handed (Env),
// how a request is read, how it is answered, and what an error is. problem.go has the
// one table of errors.
package web
