package pages

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A panelView is the dry run of an act, and the form that does it.
type panelView struct {
	Name    string // resume, jump, fork, edit, pause, unpause, cancel
	Title   string
	Sub     string
	Close   string // address of the page without the panel
	URL     string // of the page: where the form that plans again goes
	Hidden  []string
	Skipped []planItem
	Again   []planItem
	Next    *planItem
	Left    []string
	Warn    []string
	Refused string // why it cannot be done; the button is off
	Fix     string // option that would allow it: force

	// Options of a plan. A change of one makes a new plan.
	Options []optionView
	Places  []placeView
	PlaceOf string // name of the choice among Places
	PlaceIs string // and what it says

	Edits    []editView  // results of a fork that replace recorded ones
	Editable []placeView // calls that it could have other results for

	Key     string // of an edited result
	Value   string // it has now
	NewID   string
	Reason  bool // asks why
	Who     string
	Serves  string
	Command view.Command
	Instead view.Command // what helps if the act is refused
	Action  string       // address of the form
	API     string       // and of the API, for the script
	Fields  []fieldView
	Do      string // label of the button
	DoIcon  string
	Danger  bool
}

type planItem struct {
	Key, Note, Detail string
	Icon              view.Icon
}

type optionView struct {
	Name, Label, Text string
	On                bool
}

type placeView struct {
	Value, Label string
	On           bool
}

// fieldView is a hidden field of the form that acts. Kind says what it is in
// JSON: text, number, flag.
type fieldView struct{ Name, Kind, Value string }

func (p *panelView) field(name, kind, value string) {
	p.Fields = append(p.Fields, fieldView{name, kind, value})
}

// refuse shows an error that says why the act cannot be done. It returns any other error.
func (p *panelView) refuse(h *RunPage, err error) error {
	if err == nil {
		return nil
	}
	status, problem := h.Problem(err)
	told := errors.Is(err, durable.ErrUnrecoverable) || errors.Is(err, operate.ErrUnrepairable)
	if !told && status != http.StatusConflict && status != http.StatusUnprocessableEntity && status != http.StatusBadRequest {
		return err
	}
	p.Refused = problem.Message
	if damaged, ok := errors.AsType[*durable.DamagedError](err); ok {
		p.Instead = view.MendCommand(damaged.RunID, errors.Is(err, durable.ErrNoHistory))
	}
	_, crosses := errors.AsType[*operate.CrossingError](err)
	if _, undone := errors.AsType[*operate.UndoneError](err); crosses || undone {
		p.Fix = "force"
	}
	return nil
}

// places are the checkpoints that a resume can go back to, the latest first.
func (p *panelView) places(o *outline.Outline, from int64) {
	label := "where it is"
	if o.Current != nil {
		label = o.Current.Key + ", where it is"
		if o.Run.Status == store.Failed {
			label = o.Current.Key + ", where it failed"
		}
	}
	p.Places = append(p.Places, placeView{"", label, from == 0})
	p.behind(o, from)
	p.Places = append(p.Places, placeView{"1", "from the beginning", from == 1})
}

// behind adds the places after what is done, the latest first.
func (p *panelView) behind(o *outline.Outline, from int64) {
	var found []placeView
	for _, l := range o.Lanes {
		for _, r := range l.Rows {
			if r.State == outline.Done && r.Outcome != 0 && (r.Kind == outline.Step || r.Kind == outline.Child || r.Kind == outline.Wait || r.Kind == outline.Approval) {
				found = append(found, placeView{strconv.FormatInt(r.Outcome, 10), fmt.Sprintf("behind %s, event %d", r.Key, r.Outcome), from == r.Outcome})
			}
		}
	}
	for i := len(found) - 1; i >= 0 && len(p.Places) < 60; i-- {
		p.Places = append(p.Places, found[i])
	}
}
