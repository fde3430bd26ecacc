// Package traceproof holds the tests that follow one run through several processes,
// which are killed with SIGKILL, by what their OpenTelemetry exporters sent over
// OTLP/HTTP. It has no code of its own.
package traceproof
