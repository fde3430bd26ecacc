package vet

import (
	"bytes"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// directive begins a suppression: //durablevet:ignore RULE reason
const directive = "//durablevet:ignore"

// An ignore is a comment that suppresses the findings of one rule on one line.
type ignore struct {
	pos    token.Pos
	file   *token.File
	line   int // whose findings it suppresses
	rule   string
	reason string
	used   bool
}

// collectIgnores reads the suppressions of a file. One behind code is for its own
// line, one on a line of its own for the next line of code.
func (c *checker) collectIgnores(file *ast.File) error {
	var found []*ignore
	tf := c.Fset.File(file.FileStart)
	for _, group := range file.Comments {
		for _, comment := range group.List {
			rest, ok := strings.CutPrefix(comment.Text, directive)
			if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				continue
			}
			// In the testdata of analyzers a comment may hold what is expected of its line.
			rest, _, _ = strings.Cut(rest, "// want")
			rule, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
			found = append(found, &ignore{pos: comment.Pos(), file: tf, line: tf.Line(comment.Pos()), rule: rule, reason: strings.TrimSpace(reason)})
		}
	}
	if len(found) == 0 {
		return nil
	}
	src, err := c.ReadFile(tf.Name())
	if err != nil {
		return err
	}
	lines := bytes.Split(src, []byte("\n"))
	for _, ig := range found {
		text := func(line int) []byte { return bytes.TrimSpace(lines[line-1]) }
		if bytes.HasPrefix(text(ig.line), []byte("//")) {
			for ig.line < len(lines) && bytes.HasPrefix(text(ig.line), []byte("//")) {
				ig.line++
			}
		}
	}
	c.ignores = append(c.ignores, found...)
	return nil
}

// suppressed reports whether a comment suppresses a rule at a place, and notes that
// the comment is of use.
func (c *checker) suppressed(rule string, pos token.Pos) bool {
	for _, ig := range c.ignores {
		if ig.rule == rule && ig.reason != "" && c.Fset.File(pos) == ig.file && ig.file.Line(pos) == ig.line {
			ig.used = true
			return true
		}
	}
	return false
}

// checkIgnores reports suppressions that say too little or suppress nothing.
func (c *checker) checkIgnores() {
	for _, ig := range c.ignores {
		text := ""
		switch {
		case ig.rule == "":
			text = "which rule, and why? Write " + directive + " RULE reason"
		case !slices.Contains(Rules(), ig.rule):
			text = "there is no rule " + ig.rule + ": the rules are " + strings.Join(Rules(), ", ")
		case ig.reason == "":
			text = "a reason is missing, so nothing is suppressed: write " + directive + " " + ig.rule + " reason"
		case !ig.used:
			text = "this suppresses nothing: remove it"
		default:
			continue
		}
		c.findings = append(c.findings, Finding{Rule: ruleIgnore, Pos: ig.pos})
		c.Report(analysis.Diagnostic{Pos: ig.pos, Category: ruleIgnore, URL: docs + "#suppressing-a-finding", Message: ruleIgnore + ": " + text})
	}
}
