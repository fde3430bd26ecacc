package dashboard_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// What stands beside Resume, through every door that a server has: the engine,
// the API, the aliases of another design, and the buttons of the page, whose forms
// need no script.
func TestApproveRejectAndCancelActThroughEveryDoor(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		ctx := t.Context()
		form := func(id, act, body string) answer {
			t.Helper()
			page := s.browse("/runs/" + id).body
			button := map[string]string{
				"verdict=approve": `name="verdict" value="approve"`, "verdict=reject": `name="verdict" value="reject"`, "": `name="panel" value="cancel"`,
			}[strings.Split(body, "&")[0]]
			require.Contains(t, page, button)
			return s.send("POST", "/runs/"+id+"/do/"+act, body, "Content-Type: application/x-www-form-urlencoded", "Accept: text/html")
		}
		say := func(yes bool) func(id string) error {
			return func(id string) error {
				open, err := operate.On(s.eng).ApprovalsOf(ctx, id)
				if err != nil {
					return err
				}
				v, err := open[0].Verdict(yes, "ada", "")
				if err != nil {
					return err
				}
				return operate.On(s.eng).Answer(ctx, open[0], v)
			}
		}
		sent := func(status int, send func(id string) answer) func(id string) error {
			return func(id string) error {
				a := send(id)
				require.Equal(t, status, a.status, a.body)
				return nil
			}
		}
		acts := []struct {
			name, status, out string
			do                func(id string) error
		}{
			{"engine-approve", "completed", `"parcel of engine-approve"`, say(true)},
			{"engine-reject", "completed", `"rejected"`, say(false)},
			{"engine-cancel", "cancelled", "", func(id string) error { return s.eng.Cancel(ctx, id, "no more") }},
			{"api-approve", "completed", `"parcel of api-approve"`, func(id string) error { _, err := s.c.Approve(ctx, id, "", ""); return err }},
			{"api-reject", "completed", `"rejected"`, func(id string) error { _, err := s.c.Reject(ctx, id, "", ""); return err }},
			{"api-cancel", "cancelled", "", func(id string) error { _, err := s.c.Cancel(ctx, id, "no more"); return err }},
			{"alias-approve", "completed", `"parcel of alias-approve"`, sent(200, func(id string) answer { return s.send("POST", "/api/workflows/"+id+"/approve", "") })},
			{"alias-reject", "completed", `"rejected"`, sent(200, func(id string) answer { return s.send("POST", "/api/workflows/"+id+"/reject", "") })},
			{"alias-cancel", "cancelled", "", sent(200, func(id string) answer { return s.send("POST", "/api/workflows/"+id+"/cancel", "") })},
			{"page-approve", "completed", `"parcel of page-approve"`, sent(303, func(id string) answer { return form(id, "answer", "verdict=approve&wait=approve") })},
			{"page-reject", "completed", `"rejected"`, sent(303, func(id string) answer { return form(id, "answer", "verdict=reject&wait=approve") })},
			{"page-cancel", "cancelled", "", sent(303, func(id string) answer { return form(id, "cancel", "") })},
		}
		for _, act := range acts {
			s.asks(act.name)
			require.NoError(t, act.do(act.name), act.name)
			s.until(act.name, act.status)
			if act.out != "" {
				run, err := s.shop.workflow().Handle(withEngine(s), act.name)
				require.NoError(t, err)
				out, err := run.Wait(withEngine(s))
				require.NoError(t, err)
				b, err := json.Marshal(out)
				require.NoError(t, err)
				require.Equal(t, act.out, string(b))
			}
		}
	})
}

// A store that a dead program has left is opened by the next one, over the real
// store, engine and handler: what was under way is marked failed at once, what
// waits is prompted, and what has not begun is left alone; and what was marked
// goes on over HTTP, from where it was.
func TestAStoreThatADeadProgramLeftIsRecoveredOnBootAndResumedOverHTTP(t *testing.T) {
	for name, store := range map[string]func(*testing.T) *site{
		"memory": func(t *testing.T) *site { return open(t, memoryStore(t), dashboard.Options{}) },
		"sqlite": func(t *testing.T) *site { return open(t, sqliteStore(t), dashboard.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := store(t)
			s.asks("asks")
			s.leaveRunning("asks", "lost", 3) // behind reserve, by a process that is gone
			require.NoError(t, s.eng.Close())
			charged := s.shop.charged.Load()
			s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}, OnBoot: durable.FailOnBoot}, dashboard.Options{})

			lost, err := s.c.GetRun(t.Context(), "lost")
			require.NoError(t, err)
			require.Equal(t, []any{"failed", "Server restarted while workflow was running", true}, []any{lost.Status, lost.Reason, lost.Recoverable})
			asks, err := s.c.GetRun(t.Context(), "asks")
			require.NoError(t, err)
			require.Equal(t, "waiting", asks.Status)
			require.Len(t, asks.Approvals, 1)
			require.Equal(t, charged, s.shop.charged.Load(), "nothing was executed")

			resumed, err := s.c.Resume(t.Context(), "lost", client.ResumeOptions{})
			require.NoError(t, err)
			require.Equal(t, []string{"reserve"}, resumed.Plan.Skipped)
			s.until("lost", "waiting")
			require.Equal(t, charged+1, s.shop.charged.Load(), "it went on behind reserve")
			_, err = s.c.Approve(context.WithoutCancel(t.Context()), "lost", "", "")
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, s.send("GET", "/api/runs/lost", "").status)
			s.until("lost", "completed")
		})
	}
}
