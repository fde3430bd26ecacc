// Package view is what pages and API show of a run: pure functions over rows, events,
// plans and outlines. It knows no engine, no request and no template.
//
//   - redact.go: texts of user origin, as they may be shown
//   - wire.go: rows, events, plans and approvals as the API has them
//   - site.go, command.go: addresses, and commands of the terminal to be pasted
//   - status.go: words, symbols and colours; what a run is open to
//   - text.go: sentences, numbers, errors for people
//   - query.go: what the address of a run's page says
//   - timeline.go, bars.go, axis.go: the timeline, its marks, and where each stands
//   - json.go: JSON in colours
package view
