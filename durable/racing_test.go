//go:build race

package durable_test

// raceDetector makes code some ten times slower: a bound of time says nothing then.
const raceDetector = true
