// Package heart keeps an executor alive in its store: it beats, and knows until when the
// executor's lease holds and what time it is in the store. Of runs it knows nothing;
// what a beat asks for is done by functions that it is handed.
package heart
