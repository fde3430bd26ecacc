//go:build !unix

package transactions_test

// No process is killed here.
const victimVariable = "HOLDFAST_TRANSACTIONS_VICTIM"

func beVictim(string) {}
