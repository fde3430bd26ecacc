// Package nudge wakes loops.
package nudge

// Send signals ch without waiting. A loop that has not taken the last signal yet, from a
// channel with room for one, takes this one with it.
func Send(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
