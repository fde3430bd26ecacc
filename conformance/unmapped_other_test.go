//go:build !linux

package conformance_test

// handsOutUnmappedMemory needs system calls; a buffer that is used again is the
// next best.
var handsOutUnmappedMemory = reusesItsBuffer
