package sqlstore

import (
	"regexp"
	"slices"
	"strings"
)

// What a schema step does to tables is derived from its text, so that a plan
// and a backup cannot miss a table. For example,
//
//	ALTER TABLE durable_runs ADD COLUMN note text;
//	CREATE TABLE durable_notes (run_no bigint);
//	UPDATE durable_events SET steps = 0;
//
// changes durable_runs and durable_events, and makes durable_notes.

const tableName = `((?:"[^"]+"\.)?(?:"[^"]+"|[A-Za-z_]\w*))`

var (
	lineComment   = regexp.MustCompile(`--[^\n]*`)
	textLiteral   = regexp.MustCompile(`'(?:[^']|'')*'`)
	tableMade     = regexp.MustCompile(`(?i)\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?` + tableName)
	tableDropped  = regexp.MustCompile(`(?i)\bDROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?` + tableName)
	tableRenamed  = regexp.MustCompile(`(?i)\bALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?` + tableName + `\s+RENAME\s+TO\s+` + tableName)
	tableChanging = regexp.MustCompile(`(?i)\b(?:UPDATE|DELETE\s+FROM|INSERT\s+INTO|(?:INSERT|UPDATE)\s+OR\s+\w+(?:\s+INTO)?|REPLACE\s+INTO|` +
		`ALTER\s+TABLE|DROP\s+TABLE|TRUNCATE(?:\s+TABLE)?)\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?` + tableName)
)

// bare returns a step's text without comments and string literals.
func (m *Migration) bare() string {
	return textLiteral.ReplaceAllString(lineComment.ReplaceAllString(m.SQL, ""), "''")
}

// changed returns the names that follow a verb which changes a table, as
// written in the text; not all of them need be tables.
func (m *Migration) changed() []string {
	var names []string
	for _, f := range tableChanging.FindAllStringSubmatch(m.bare(), -1) {
		if !slices.Contains(names, f[1]) {
			names = append(names, f[1])
		}
	}
	slices.Sort(names)
	return names
}

// after returns the tables that exist after the step, given those that existed
// before.
func (m *Migration) after(tables []string) []string {
	text := m.bare()
	all := slices.Clone(tables)
	for _, f := range tableMade.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(all, f[1]) {
			all = append(all, f[1])
		}
	}
	for _, f := range tableDropped.FindAllStringSubmatch(text, -1) {
		all = slices.DeleteFunc(all, func(t string) bool { return t == f[1] })
	}
	for _, f := range tableRenamed.FindAllStringSubmatch(text, -1) {
		all = slices.DeleteFunc(all, func(t string) bool { return t == f[1] || t == f[2] })
		all = append(all, f[2])
	}
	slices.Sort(all)
	return all
}

// Tables returns the tables of the schema at a version, as written in the text
// of the steps, sorted. The version table itself is not included.
func Tables(steps []Migration, version int) []string {
	var all []string
	for i := range steps[:min(version, len(steps))] {
		all = steps[i].after(all)
	}
	return all
}

// Unqualified returns the name of a table without schema and quotes.
func Unqualified(table string) string {
	if i := strings.LastIndex(table, `".`); i >= 0 {
		table = table[i+2:]
	}
	return strings.Trim(table, `"`)
}
