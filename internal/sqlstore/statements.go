package sqlstore

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Statement is one named statement of a backend.
type Statement struct {
	Name string
	SQL  string
	// Own marks a statement that only this dialect has, such as a batch form
	// that the other does not need: "-- name: append_many (own)".
	Own bool
}

// Statements are the named statements of a backend, by name.
type Statements map[string]Statement

var nameLine = regexp.MustCompile(`^--\s*name:\s*([a-z][a-z0-9_]*)(\s+\(own\))?\s*$`)

// ReadStatements reads every .sql file of dir. A statement begins after a line
// "-- name: x" and ends at the next one or the end of the file; other comment
// lines before the first name are the file's heading. rename, if not nil, is
// applied once to each statement: it inserts the table prefix or the schema.
func ReadStatements(fsys fs.FS, dir string, rename func(string) string) (Statements, error) {
	files, err := fs.Glob(fsys, path.Join(dir, "*.sql"))
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list statements: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("sqlstore: no .sql file in %q", dir)
	}
	all := Statements{}
	for _, file := range files {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, fmt.Errorf("sqlstore: read statements: %w", err)
		}
		if err := all.parse(file, string(text), rename); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s Statements) parse(file, text string, rename func(string) string) error {
	var st Statement
	var body []string
	flush := func() error {
		if st.Name == "" {
			return nil
		}
		st.SQL = strings.TrimSuffix(strings.TrimSpace(strings.Join(body, "\n")), ";")
		if st.SQL == "" {
			return fmt.Errorf("sqlstore: %s: statement %q is empty", file, st.Name)
		}
		if _, ok := s[st.Name]; ok {
			return fmt.Errorf("sqlstore: %s: statement %q is defined twice", file, st.Name)
		}
		if rename != nil {
			st.SQL = rename(st.SQL)
		}
		s[st.Name] = st
		return nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		m := nameLine.FindStringSubmatch(line)
		if m == nil {
			if st.Name == "" {
				if t := strings.TrimSpace(line); t != "" && !strings.HasPrefix(t, "--") {
					return fmt.Errorf("sqlstore: %s: %q stands before the first name", file, t)
				}
			}
			body = append(body, line)
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		st, body = Statement{Name: m[1], Own: m[2] != ""}, nil
	}
	return flush()
}

// Text returns the statement of that name. It panics if there is none, which is
// a bug in the program; Need finds such a bug when a store is opened.
func (s Statements) Text(name string) string {
	st, ok := s[name]
	if !ok {
		panic("sqlstore: no statement named " + name)
	}
	return st.SQL
}

// Need returns an error that lists the missing names.
func (s Statements) Need(names ...string) error {
	var missing []string
	for _, n := range names {
		if _, ok := s[n]; !ok {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("sqlstore: statements missing: %s", strings.Join(missing, ", "))
	}
	return nil
}

// Names returns the names in order; those marked as own only if own is set.
func (s Statements) Names(own bool) []string {
	var names []string
	for n, st := range s {
		if own || !st.Own {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// DefaultPrefix precedes the name of every table, index and view in the .sql files.
const DefaultPrefix = "durable_"

var prefixForm = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,31}$`)

// Prefixed returns a rename for ReadStatements and ReadMigrations that replaces
// DefaultPrefix with prefix. The prefix becomes part of SQL text, so only
// letters, digits and underscores are allowed.
func Prefixed(prefix string) (func(string) string, error) {
	if prefix == "" || prefix == DefaultPrefix {
		return func(s string) string { return s }, nil
	}
	if !prefixForm.MatchString(prefix) {
		return nil, fmt.Errorf("sqlstore: table prefix %q: use 1 to 32 letters, digits and underscores, not starting with a digit", prefix)
	}
	return func(s string) string { return strings.ReplaceAll(s, DefaultPrefix, prefix) }, nil
}
