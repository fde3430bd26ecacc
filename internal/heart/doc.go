// Package heart keeps an executor alive in its store: it sends heartbeats (beats, for
// short), and knows until when the executor's lease holds and what time it is in the
// store. It knows nothing of runs: functions that it is given do what an answer to a
// beat asks for.
package heart
