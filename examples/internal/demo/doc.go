// Package demo is what the examples need to play their stories: other processes
// of the same program, which are killed at chosen or at random moments, a
// timeline of what happens, and a book of what really happened, kept outside of
// any store. None of it is needed to use the library.
package demo

import "time"

// Patience is how long any one act of a demonstration may take.
const Patience = 30 * time.Second
