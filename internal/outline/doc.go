// Package outline tells the story of a run: from its row, its branches and its
// events it derives what a terminal and a page show. Both say the same, because
// both use this package.
//
// It decides nothing for the engine and reads no store: a Builder receives the
// events of all branches in the order of their numbers, one at a time, and keeps
// only what is shown of each, never a payload. Everything it says follows from
// the events (and from which executors are live); what they do not say it leaves
// out, or reports as not recorded.
//
//	1 workflow_created          lives  ex-1 ──────✗ (last sign 3)   ex-2 ─────
//	2 workflow_started ex-1     rows   reserve  done
//	3 attempt_failed  charge 1         charge   1 failed, 2 cut off?, 2 done
//	4 run_resumed     ex-2
//	5 step_completed  charge 2
//
// Event 4 is a claim although nothing had given the run up: ex-1 was killed, or
// out of reach. It is not recorded that attempt 2 had begun there, so that is
// only reported as possible.
package outline
