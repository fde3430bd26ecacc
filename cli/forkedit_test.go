package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAForkGoesOnWithOtherResults(t *testing.T) {
	d := newDesk(t)
	d.approved("shop durable run checkout --id order-40 --input '{\"id\":\"order-40\"}'", "order-40")
	before := d.ok("shop durable sessions show order-40").out

	for edit, says := range map[string]string{
		`charge`:                     "--edit takes STEP=VALUE",
		`=1`:                         "--edit takes STEP=VALUE",
		`charge=p-7`:                 "is not JSON; text is written in quotation marks",
		`charge=@nowhere.json`:       "cannot be read",
		`charge=1' --edit 'charge=2`: "two results",
	} {
		a := d.sh("durable --store shop.db fork order-40 --yes --id order-43 --edit '" + edit + "'")
		require.Equal(t, 2, a.code, edit)
		require.Contains(t, a.err, says)
	}
	for edit, says := range map[string]string{
		`charge={"a":1}`:  "--force replaces it all the same",
		`nothing="x"`:     "the result of nothing cannot be edited: nothing is recorded under that name",
		`ship=@file.json`: "recorded up to event",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(d.dir, "file.json"), []byte(`"x"`), 0o600))
		a := d.sh("durable --store shop.db fork order-40 --from charge --yes --id order-43 --edit '" + edit + "'")
		want := 4
		if strings.HasPrefix(edit, "nothing") {
			want = 3
		}
		require.Equal(t, want, a.code, a.err)
		require.Contains(t, a.err, says)
	}
	require.Equal(t, 3, d.sh("durable --store shop.db sessions show order-43").code)

	dry := d.ok(`durable --store shop.db fork order-40 --edit 'charge="p=7"' --dry-run`)
	require.Equal(t, "Kept: reserve, charge. Edited: charge. Runs again with new idempotency keys: approve, ship.\nDry run: nothing changed, nothing ran.\n", dry.out)
	made := d.ok(`echo '"p=7"' | durable --store shop.db fork order-40 --edit charge=- --id order-43 --reason "paid by hand" --by ada --yes --json`)
	var said struct {
		ID           string
		Kept, Edited []string
		Again        []string `json:"runs_again"`
	}
	require.NoError(t, json.Unmarshal([]byte(made.out), &said))
	require.Equal(t, "order-43", said.ID)
	require.Equal(t, []string{"charge"}, said.Edited)
	require.Equal(t, []string{"approve", "ship"}, said.Again)
	require.Contains(t, d.ok("shop durable checkpoints show order-43 charge").out, `"p=7"`)
	require.NotContains(t, d.ok("shop durable checkpoints show order-40 charge").out, `"p=7"`)
	require.Equal(t, before, d.ok("shop durable sessions show order-40").out)
	d.approved("shop durable run checkout --resume order-43", "order-43")
	d.ok("shop durable checkpoints validate order-43")

	// And through a server.
	_, url := served(d)
	require.Contains(t, d.ok(`durable --server `+url+` fork order-40 --edit 'charge="p-8"' --dry-run`).out, "Edited: charge.")
	wrong := d.sh(`durable --server ` + url + ` fork order-40 --edit 'approve=8' --yes`)
	require.NotZero(t, wrong.code)
	require.Contains(t, wrong.err, ". --force replaces it all the same")
	require.Contains(t, d.ok(`durable --server `+url+` fork order-40 --edit 'charge="p-8"' --id order-44 --yes`).out, "Forked to order-44.")
	require.Contains(t, d.ok("durable --server "+url+" sessions show order-44").out, "It has another result than its source of charge")
	require.Contains(t, d.ok("durable --server "+url+" checkpoints show order-44 charge || shop durable checkpoints show order-44 charge").out, `"p-8"`)
}

// The words of a fork are true also where nothing that is recorded runs again.
func TestAForkSaysWhatFollowsFromAnEdit(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id sum --input 3")
	require.Equal(t, "Kept: add, add#2, add#3. Edited: add#3. Nothing that is recorded runs again: the workflow goes on with what is edited, and does what follows from it.\nDry run: nothing changed, nothing ran.\n",
		d.ok("shop durable fork sum --edit add#3=10 --dry-run").out)
	require.Equal(t, "Kept: add, add#2. Edited: add. Runs again with new idempotency keys: add#3.\n! Kept as they are, although add came before them with another result: add#2\nDry run: nothing changed, nothing ran.\n",
		d.ok("shop durable fork sum --edit add=10 --from add#2 --dry-run").out)

	// The terminal ends at once: the fork is for a program that stays.
	before := len(d.journal())
	require.Equal(t, "Forked to other. Resume with: shop durable run count --resume other\n", d.ok("shop durable fork sum --edit add#2=10 --id other --yes").out)
	require.Len(t, d.journal(), before)
	show := d.ok("shop durable show other").out
	require.Contains(t, show, "\nNot executed yet")
	require.Contains(t, show, "Forked from sum.")
	require.NotContains(t, show, "Stopped in good order")
	d.ok("shop durable run count --resume other")
	require.Contains(t, d.ok("shop durable show other").out, "\nCompleted in ")
}
