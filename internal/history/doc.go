// Package history is the vocabulary of a run's log, and what can be read from it. All of
// it is pure: it knows no engine, no clock and no store beyond the events it is given.
//
// The files, in the order in which a reader needs them:
//
//	key          the address of a durable call: scope, name, occurrence
//	kind         what an event is to a replay, and what sort of call it belongs to
//	data         what the data of events and messages says
//	identity     what the first event of a generation says of the row
//	past         a lineage, read and checked, taken apart by scope and call
//	call         what the history holds of one call
//	claim        who had the run, and under which trace segment
//	patch        markers of changed code
//	gap          events that are missing in a lineage
//	branch       what the first event of a branch says of the branch
//	checkrow     whether the row may be believed
//	message      the inbox: sums of messages, and whose outcome a message tells
//	cut          where a history may be cut, and what was undone in it
//	copy         which calls a fork copies
//	reason       the codes and reasons that acts leave in the row
//	audit        a whole log: what is damaged, and how far the rest can be believed
//	auditrow     its end, its branches, its inbox
//	rowfacts     what a whole log says of the row
//	rowrules     the rule for each field of the row, which rowchecks has in full
//	strikes      which deaths of executors a run may have caused
//	reconcile    the catalogue of rows and histories that do not fit, and what mends each
package history
