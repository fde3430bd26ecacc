//go:build cgo

package sqlite

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

var (
	//go:embed sql/*.sql
	sqlFiles embed.FS
	//go:embed migrations/*.sql
	migrationFiles embed.FS
)

// query is a statement that is prepared once per connection; connections
// identify it by its address.
type query struct{ text string }

// queries are the statements of one handle, with its table prefix.
type queries struct {
	append, appendChecked, eventFence, eventLast, eventsLastOf, eventsUp, eventsPacked, eventsDown, eventsDelete *query

	runNumber, runHead, runByID, runByNumber, runInsert, runDedup, runDelete *query
	claimByNumber, claimByID                                                 *query
	attributesOf, attributeInsert, attributesDelete                          *query
	holdOf, holdInsert, holdsDelete                                          *query

	branchInsert, branchesOf, branchesDelete                                                                                         *query
	messageExists, messageCount, messageInsert, messagesOf, messagesDelete                                                           *query
	lanes, laneHeads                                                                                                                 *query
	lines, lineDue, lineLevels, lineParts, lineHeads                                                                                 *query
	queue, queuePut, queueTurn, queuePlaced, queuePlacedIn                                                                           *query
	queueBegun, queueBegin, queueBegunLater, queueUnbegin, queueForget                                                               *query
	queueNames, queueAsPut, queuesPut, queuePartsPlaced, queuePartsInLine, queueDelayed, queueBegunSince                             *query
	queuePartsDue, queueAhead, queueAheadDelayed                                                                                     *query
	executors, executorBeat, executorBeatAgain, written, executorGone, executorExpire, executorDelete, ownedLanes, owners, mailOfOwn *query

	schedule, scheduleInsert, scheduleUpdate, scheduleDelete, schedules, schedulesNamed, schedulesDue *query

	requestsWaiting, requestsTake, requestsRead, requestsBefore, requestsAnswer, requestsDrop *query

	begin, commit, rollback, savepoint, release, rollbackTo *query

	migrations sqlstore.Migrator
	dialect    sqlstore.Dialect
}

func (q *queries) names() map[string]**query {
	return map[string]**query{
		"append": &q.append, "append_checked": &q.appendChecked, "event_fence": &q.eventFence, "event_last": &q.eventLast,
		"events_last_of": &q.eventsLastOf, "events_up": &q.eventsUp, "events_packed": &q.eventsPacked, "events_down": &q.eventsDown, "events_delete": &q.eventsDelete,
		"run_number": &q.runNumber, "run_head": &q.runHead, "run_by_id": &q.runByID, "run_by_number": &q.runByNumber, "claim_by_number": &q.claimByNumber, "claim_by_id": &q.claimByID,
		"run_insert": &q.runInsert, "run_dedup": &q.runDedup, "run_delete": &q.runDelete,
		"attributes_of": &q.attributesOf, "attribute_insert": &q.attributeInsert, "attributes_delete": &q.attributesDelete,
		"hold_of": &q.holdOf, "hold_insert": &q.holdInsert, "holds_delete": &q.holdsDelete,
		"branch_insert": &q.branchInsert, "branches_of": &q.branchesOf, "branches_delete": &q.branchesDelete,
		"message_exists": &q.messageExists, "message_count": &q.messageCount, "message_insert": &q.messageInsert,
		"messages_of": &q.messagesOf, "messages_delete": &q.messagesDelete,
		"lanes": &q.lanes, "lane_heads": &q.laneHeads,
		"lines": &q.lines, "line_due": &q.lineDue, "line_levels": &q.lineLevels, "line_parts": &q.lineParts, "line_heads": &q.lineHeads,
		"queue": &q.queue, "queue_put": &q.queuePut, "queue_turn": &q.queueTurn, "queue_placed": &q.queuePlaced, "queue_placed_in": &q.queuePlacedIn,
		"queue_begun": &q.queueBegun, "queue_begin": &q.queueBegin, "queue_begun_later": &q.queueBegunLater, "queue_unbegin": &q.queueUnbegin, "queue_forget": &q.queueForget,
		"queue_as_put": &q.queueAsPut, "queues_put": &q.queuesPut, "queue_names": &q.queueNames, "queue_parts_placed": &q.queuePartsPlaced, "queue_parts_in_line": &q.queuePartsInLine,
		"queue_parts_due": &q.queuePartsDue, "queue_delayed": &q.queueDelayed, "queue_begun_since": &q.queueBegunSince,
		"queue_ahead": &q.queueAhead, "queue_ahead_delayed": &q.queueAheadDelayed,
		"executors": &q.executors, "executor_beat": &q.executorBeat, "executor_beat_again": &q.executorBeatAgain, "written": &q.written, "executor_gone": &q.executorGone, "executor_expire": &q.executorExpire,
		"executor_delete": &q.executorDelete, "owned_lanes": &q.ownedLanes, "owners": &q.owners, "mail_of": &q.mailOfOwn,
		"schedule": &q.schedule, "schedule_insert": &q.scheduleInsert, "schedule_update": &q.scheduleUpdate, "schedule_delete": &q.scheduleDelete,
		"schedules": &q.schedules, "schedules_named": &q.schedulesNamed, "schedules_due": &q.schedulesDue,
		"requests_waiting": &q.requestsWaiting, "requests_take": &q.requestsTake, "requests_read": &q.requestsRead, "requests_before": &q.requestsBefore,
		"requests_answer": &q.requestsAnswer, "requests_drop": &q.requestsDrop,
	}
}

// unfinished is what the index of unfinished runs says of them.
const unfinished = "status <> 'completed' AND status <> 'failed' AND status <> 'cancelled'"

func loadQueries(o Options) (*queries, error) {
	rename, err := sqlstore.Prefixed(o.Prefix)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	st, err := sqlstore.ReadStatements(fs.FS(sqlFiles), "sql", rename)
	if err != nil {
		return nil, err
	}
	ms, err := sqlstore.ReadMigrations(migrationFiles, "migrations", rename)
	if err != nil {
		return nil, err
	}
	if o.migrations != nil {
		ms = o.migrations(ms)
	}
	q := &queries{
		begin: &query{"BEGIN IMMEDIATE"}, commit: &query{"COMMIT"}, rollback: &query{"ROLLBACK"},
		savepoint: &query{"SAVEPOINT member"}, release: &query{"RELEASE member"}, rollbackTo: &query{"ROLLBACK TO member"},
		migrations: sqlstore.Migrator{
			Migrations: ms, Exists: st.Text("schema_exists"), Create: st.Text("schema_create"),
			Version: st.Text("schema_version"), Record: st.Text("schema_record"), Filled: st.Text("schema_filled"),
			Now: func() store.Time { return store.TimeOf(o.Clock()) },
		},
		dialect: sqlstore.Dialect{
			Param:  func(n int) string { return fmt.Sprintf("?%d", n) },
			AnyOf:  func(column, param string) string { return column + " IN (SELECT value FROM json_each(" + param + "))" },
			Array:  jsonArray,
			Bar:    func(column string) string { return "+" + column },
			Queued: true, LimitFirst: true, Unfinished: unfinished, Owned: []string{unfinished, "owner <> '' AND (status = 'completed' OR status = 'failed' OR status = 'cancelled')"},
			Mail: "no IN (SELECT m.no FROM " + rename("durable_runs") + " AS m WHERE m.inbox > m.seen)",
			Runs: rename("durable_runs"), Attributes: rename("durable_attributes"),
			LastSeq: "(SELECT max(e.place) FROM " + rename("durable_events") + " AS e WHERE e.place > no << 28 AND e.place < (no + 1) << 28) & 268435455",
		},
	}
	for name, p := range q.names() {
		if err := st.Need(name); err != nil {
			return nil, err
		}
		*p = &query{st.Text(name)}
	}
	return q, nil
}

// updateText writes the UPDATE of a run's row; columns are constants of
// sqlstore.
func (q *queries) updateText(sets []sqlstore.Assignment) string {
	var b strings.Builder
	b.WriteString("UPDATE " + q.dialect.Runs + " SET ")
	for i, s := range sets {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s = ?%d", s.Column, i+1)
	}
	fmt.Fprintf(&b, " WHERE no = ?%d", len(sets)+1)
	return b.String()
}
