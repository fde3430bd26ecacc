package vet

import (
	"maps"
	"slices"
)

// Calls are the functions of package durable that the analyzer knows.
func Calls() []string { return slices.Collect(maps.Keys(calls)) }
