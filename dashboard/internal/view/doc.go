// Package view derives what pages and API show of a run: pure functions over rows,
// events, plans and outlines. It uses no engine, no request and no template.
//
//   - redact.go: texts of user origin, as they may be shown
//   - wire.go: rows, events, plans and approvals as the API has them
//   - site.go, command.go: addresses, and commands of the terminal for pasting
//   - status.go: words, symbols and colours; which acts are possible
//   - text.go: sentences, numbers, errors for people
//   - query.go: what the address of a run's page says
//   - timeline.go, bars.go, axis.go: the timeline, its marks, and their positions
//   - json.go: JSON in colours
package view
