// Package termview shows the progress of a run on a terminal, or in a file: the
// lines of `run` and `resume`, the board of `watch`, and what a resume is about
// to do.
//
// A View prints lines, and on a terminal keeps one more at the bottom that is
// redrawn. A Board is redrawn as a whole. Both receive the run's events. External
// text (keys, errors, prompts) is escaped and cannot move the cursor; see Clean.
package termview
