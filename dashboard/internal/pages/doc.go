// Package pages makes the pages for a browser. Each is complete when it comes from the
// server and works without a script: folding, filtering and choosing are links, acts are
// forms. The script (assets/) only follows those links without a reload, requests the
// same page again when the stream says that something has happened, and inserts the
// differences. So there is one place where a run becomes HTML: here, through
// html/template.
//
//   - pages.go: Shell, what is around every page; assets.go: style sheet and script
//   - Lists: runs.go with terms.go (its filter), cards.go (above the list) and row.go (a
//     line of it); waiting.go, stuck.go, history.go, bulk.go
//   - RunPage: run.go, inspect.go (the selected row), events.go, alike.go; dryrun.go,
//     fork.go, edit.go (the dry runs of acts) over panel.go and plan.go; acts.go (the
//     forms that act)
package pages
