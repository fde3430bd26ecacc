//go:build !race

package durable_test

const raceDetector = false
