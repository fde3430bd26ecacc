package doors_test

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// An offer is a form of a page that acts on the run, as it is filled in when the page
// is opened.
type offer struct {
	name   string // of the panel; "answer" for the form beside the verdict
	action string // where it goes without a script
	api    string // and where the script sends it
	fields url.Values
	kinds  map[string]string
	open   bool   // its button can be pressed
	shell  string // the command that does the same
}

var (
	aForm    = regexp.MustCompile(`(?s)<form[^>]* method="post"[^>]*data-act="([^"]*)"[^>]*>.*?</form>`)
	anAction = regexp.MustCompile(`action="([^"]*)"`)
	aField   = regexp.MustCompile(`<input ([^>]*)>`)
	anArea   = regexp.MustCompile(`(?s)<textarea ([^>]*)>(.*?)</textarea>`)
	// Written so by the templates of the pages.
	aButton        = regexp.MustCompile(`<button class="btn (?:pri|no)?"([^>]*)>`)
	aShell         = regexp.MustCompile(`<code>(durable [^<]*)</code>`)
	anAttr         = regexp.MustCompile(`([a-z-]+)="([^"]*)"`)
	aPanel         = regexp.MustCompile(`data-panel="([^"]*)"`)
	aStep          = regexp.MustCompile(`href="(/runs/r\?[^"]*step=[^"]*)"`)
	anOpener       = regexp.MustCompile(`href="(/runs/r\?[^"]*panel=[^"]*)"`)
	advisedNext    = regexp.MustCompile(`: shop durable ([^\n]*)`)
	aStepOfButtons = regexp.MustCompile(`<form class="btns" method="get"[^>]*><input type="hidden" name="step" value="([^"]*)">`)
	aChoice        = regexp.MustCompile(`name="panel" value="([^"]*)"`)
)

// offers are the forms of a page.
func offers(page string) (all []offer) {
	for _, m := range aForm.FindAllStringSubmatch(page, -1) {
		o := offer{name: "answer", api: html.UnescapeString(m[1]), fields: url.Values{}, kinds: map[string]string{}}
		o.action = html.UnescapeString(anAction.FindStringSubmatch(m[0])[1])
		if !strings.Contains(m[0], "data-verdict") {
			o.name = aPanel.FindStringSubmatch(page)[1]
		}
		add := func(attrs, text string) {
			a := map[string]string{"value": text}
			for _, x := range anAttr.FindAllStringSubmatch(attrs, -1) {
				a[x[1]] = html.UnescapeString(x[2])
			}
			if a["name"] != "" && a["value"] != "" {
				o.fields.Set(a["name"], a["value"])
				o.kinds[a["name"]] = a["data-kind"]
			}
		}
		for _, f := range aField.FindAllStringSubmatch(m[0], -1) {
			add(f[1], "")
		}
		for _, f := range anArea.FindAllStringSubmatch(m[0], -1) {
			add(f[1], html.UnescapeString(f[2]))
		}
		if b := aButton.FindStringSubmatch(m[0]); b != nil {
			o.open = !strings.Contains(b[1], "disabled")
		}
		if c := aShell.FindStringSubmatch(m[0]); c != nil {
			o.shell = html.UnescapeString(c[1])
		}
		all = append(all, o)
	}
	return all
}

// body is what the script makes of the form.
func (o *offer) body() string {
	m := map[string]any{}
	for name := range o.fields {
		v := o.fields.Get(name)
		switch o.kinds[name] {
		case "number":
			m[name], _ = strconv.Atoi(v)
		case "flag":
			m[name] = true
		case "json":
			m[name] = json.RawMessage(v)
		case "jsons":
			group, key, _ := strings.Cut(name, ":")
			m[group] = map[string]any{key: json.RawMessage(v)}
		default:
			m[name] = v
		}
	}
	b, _ := json.Marshal(m)
	return string(b)
}

// press sends the form of an offer, by the form and by the script's way, and requires
// that it is taken.
func (s *state) press(t *testing.T, o *offer, verdict string) {
	t.Helper()
	form := maps.Clone(o.fields)
	if verdict != "" {
		form.Set("verdict", verdict)
	}
	for way, send := range map[string]func(w *world) (int, string){
		"form": func(w *world) (int, string) {
			return w.send("POST", o.action, form.Encode(), "application/x-www-form-urlencoded")
		},
		"script": func(w *world) (int, string) { return w.send("POST", o.api+verdict, o.body(), "application/json") },
	} {
		w := newWorld(t, s)
		code, said := send(w)
		if code == 409 && s.late {
			// Its key is taken, which a plan does not look at: "once that run has ended".
			require.NoError(t, w.eng.Cancel(w.ctx(), "holder", ""))
			w.until("holder", store.Cancelled)
			code, said = send(w)
		}
		require.Less(t, code, 400, "%s %s: %+v is offered, and refused: %s", way, verdict, *o, said)
	}
}

// paste carries out a command that a page shows.
func (s *state) paste(t *testing.T, command string) {
	t.Helper()
	if strings.Contains(command, "=@") {
		return // of a file that is to be written first
	}
	w := newWorld(t, s)
	words := strings.Fields(command)[1:]
	if s.late {
		require.NoError(t, w.eng.Cancel(w.ctx(), "holder", ""))
		w.until("holder", store.Cancelled)
	}
	before := w.look()
	got := w.run(append(words, "--no-color")...)
	if next := advisedNext.FindStringSubmatch(got.text); got.exit == refusedExit && next != nil {
		words = strings.Fields(next[1])
		got = w.run(append(words, "--no-color")...)
	}
	if strings.Contains(got.text, "say --yes") {
		got = w.run(append(words, "--no-color", "--yes")...)
	}
	if s.ends == store.Failed && got.exit == 1 {
		return // it fails again, as the plan says
	}
	require.Zero(t, got.exit, "%s: %s\n%s", s.name, command, got.text)
	if slices.Contains(words, "--dry-run") {
		words = slices.DeleteFunc(words, func(w string) bool { return w == "--dry-run" })
		got = w.run(append(words, "--no-color", "--yes")...)
		require.Zero(t, got.exit, "%s: %s\n%s", s.name, command, got.text)
	}
	if s.ends == store.Interrupted {
		return // it is handed over, and says where it was left
	}
	require.NotEqual(t, before, w.look(), "%s: %s helps nothing\n%s", s.name, command, got.text)
}

// pagesOf are the addresses with acts on the run, and whether a person is led there.
func pagesOf(w *world) map[string]bool {
	pages := map[string]bool{"/runs/r": true}
	_, first := w.send("GET", "/runs/r", "", "")
	for _, m := range aStep.FindAllStringSubmatch(first, -1) {
		pages[html.UnescapeString(m[1])] = true
	}
	for _, at := range slices.Sorted(maps.Keys(pages)) {
		_, text := w.send("GET", at, "", "")
		step := ""
		if m := aStepOfButtons.FindStringSubmatch(text); m != nil {
			step = "&step=" + url.QueryEscape(html.UnescapeString(m[1]))
		}
		for _, m := range aChoice.FindAllStringSubmatch(text, -1) {
			pages["/runs/r?panel="+m[1]+step] = true
		}
		for _, m := range anOpener.FindAllStringSubmatch(text, -1) {
			pages[html.UnescapeString(m[1])] = true
		}
	}
	// Where an address that was kept leads, or the button "back".
	for _, act := range []string{"resume", "jump&at=1", "fork", "edit&step=one", "edit&step=two", "pause", "unpause", "cancel"} {
		if at := "/runs/r?panel=" + act; !pages[at] {
			pages[at] = false
		}
	}
	return pages
}

// What a page offers in a state is taken there, with a script and without, and the
// command beside the button does it, too. What is refused has no button, or says why,
// with a command or an option that helps.
func TestWhatAPageOffersIsTaken(t *testing.T) {
	for _, s := range states() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, &s)
			pages, tried := pagesOf(w), map[string]bool{}
			for _, at := range slices.Sorted(maps.Keys(pages)) {
				_, text := w.send("GET", at, "", "")
				for _, o := range offers(text) {
					where := fmt.Sprintf("%s: %s %+v", s.name, at, o)
					key := fmt.Sprint(o)
					if tried[key] {
						continue
					}
					tried[key] = true
					if o.name == "jump" && s.busy() {
						continue // it waits for the body, which does not end
					}
					if o.shell != "" {
						s.paste(t, o.shell)
					}
					switch {
					case o.open && o.name == "answer":
						s.press(t, &o, "approve")
						s.press(t, &o, "reject")
					case o.open:
						s.press(t, &o, "")
					case !pages[at] || o.shell != "" || s.code == "undecodable":
						require.Regexp(t, refusedPanel, text, where)
					default:
						_, forced := w.send("GET", at+"&force=1", "", "")
						all := offers(forced)
						i := slices.IndexFunc(all, func(f offer) bool { return f.name == o.name && f.open })
						require.GreaterOrEqual(t, i, 0, "%s is offered, and refused whatever is chosen: %s", where, refusedWhy.FindString(text))
						s.press(t, &all[i], "")
					}
				}
			}
		})
	}
}

// busy reports whether a live engine executes the run.
func (s *state) busy() bool {
	return strings.HasPrefix(s.name, "running ") || strings.HasPrefix(s.name, "between two attempts")
}

var refusedWhy = regexp.MustCompile(`<span role="alert">[^<]*`)

// prose is advice that no program can carry out.
var prose = []string{
	"",
	"run the code that recorded it, or mend the difference",
	"run a program that can read it, then resume",
	"try again once the other run has ended",
	"look at the run again",
	"run a program that serves the version of the run",
}

var (
	aRoute   = regexp.MustCompile(`(GET|POST) (/\S+?)(?: with (\{.*?\}))?(?:[,;]| to |$)`)
	aCommand = regexp.MustCompile(`durable (?:checkpoints|resume|unpause|history) .*$`)
)

// What an answer of the API advises in a state can be done there: the route that it
// names takes it, the command that it names can be pasted, and helps.
func TestWhatAnAnswerAdvisesHelps(t *testing.T) {
	for _, s := range states() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			tried := map[string]bool{}
			for _, act := range []string{"resume", "unpause", "pause", "approve", "reject", "jump", "edit", "fork", "cancel"} {
				if act == "jump" && s.busy() {
					continue // it waits for the body, which does not end
				}
				w := newWorld(t, &s)
				_, text := w.send("POST", "/api/runs/r/"+act, map[string]string{"jump": `{"to":1}`, "edit": `{"key":"one","value":"x"}`}[act], "application/json")
				var p struct {
					Error struct{ Code, Message, Next string }
				}
				require.NoError(t, json.Unmarshal([]byte(text), &p))
				next := p.Error.Next
				if tried[next] {
					continue
				}
				tried[next] = true
				route, command := aRoute.FindStringSubmatch(next), aCommand.FindString(next)
				require.NotContains(t, next, "Engine.", "that is advice for a program")
				if route == nil && command == "" {
					require.Contains(t, prose, next, "%s of %s: %+v", act, s.name, p)
					continue
				}
				if route != nil {
					w := newWorld(t, &s)
					code, said := w.send(route[1], route[2], route[3], "application/json")
					require.Less(t, code, 400, "%s of %s advises %s: %s", act, s.name, next, said)
				}
				if command != "" {
					s.paste(t, command)
				}
			}
		})
	}
}
