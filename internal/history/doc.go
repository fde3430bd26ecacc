// Package history is the vocabulary of a run's log, and what can be read from it. All of
// it is pure: it knows no engine, no clock and no store beyond the events it is given.
//
// The files, in the order in which a reader needs them:
//
//	key             the address of a durable call: scope, name, occurrence
//	kind            what an event is to a replay, and what sort of call it belongs to
//	data            which events say what, and how it is encoded and read
//	runevents       what events of the run itself say: beginnings, claims, ends, stops, acts on it
//	callevents      what events of durable calls say
//	identity        what the first event of a generation says of the row
//	read            reads a lineage and checks it; the damage that it may find
//	past            a lineage, taken apart by scope and call
//	call            what the history holds of one call
//	claim           who had the run, and under which trace segment
//	patch           the markers of changed code
//	gap             events that are missing in a lineage
//	branch          whether the records of branches are what their first events say
//	checkclaimed    whether the row of a claimed run may be believed, before it is executed
//	message         the inbox: what messages say, their sums, and whose outcome a message tells
//	cut             where a history may be cut, and what was undone in it
//	copy            which calls a fork copies
//	reason          errors as events keep them, and the codes and reasons that acts leave in the row
//	audit           a whole log: what is damaged, and how far the rest can be believed
//	auditend        its end, its branches, its inbox
//	auditrow        the table of fields of the row and their checks, for Verify and Repair
//	auditrowfacts   what a whole log says of the row
//	auditrowchecks  the checks of that table
//	view            a run as an operator finds it, and what keeps it from being continued
//	generation      the generations of a run, and the events that no cut took away
//	asked           the waits that nobody has answered yet
//	strikes         which deaths of executors a run may have caused
//	reconcile       what recovery looks for: rows and histories that do not fit, and what mends each
//	glance          how much of a run must be read to know that recovery need not look for them
package history
