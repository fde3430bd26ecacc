package durable

// TraceMode says how the spans of a run's processes belong together. In every
// mode a run that was not sampled when it was started is not traced later.
type TraceMode int

// The modes.
const (
	// TraceParent makes one trace of a run: each segment is a child of the span
	// of the start. It is the default.
	TraceParent TraceMode = iota
	// TraceLink makes a trace of each segment, linked to the span of the start
	// and to the segment before: for runs that last longer than a backend keeps
	// a trace open, or a tail sampler waits for its end.
	TraceLink
)
