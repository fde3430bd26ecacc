package main

import "context"

// A benchCase measures one thing on one target.
type benchCase struct {
	name string
	on   func(*target) bool
	run  func(context.Context, *target, size) ([]result, error)
}

var cases = []benchCase{
	{"SEQ", (*target).isDatabase, seq},
	{"FAN", (*target).isDatabase, fan},
	{"LANES", func(t *target) bool { return t.name == "postgres" }, lanes},
	{"TX", (*target).isDatabase, transact},
	{"PAR", (*target).isDatabase, par},
	{"MAP", (*target).isDatabase, mapping},
	{"START", (*target).isDatabase, start},
	{"REPLAY", (*target).isDurable, replay},
	{"RECOVER", (*target).isDurable, recoverRuns},
	{"STATE", (*target).isDurable, state},
	{"ENGINE", (*target).isMemory, engine},
	{"STATEMENTS", (*target).isDurable, statements},
	{"IDLE", (*target).isDurable, idle},
	{"SLEEP", (*target).isDurable, sleep},
	{"SIGNAL", (*target).isDurable, signals},
	{"OVERHEAD", (*target).isDatabase, overhead},
	{"CARE", (*target).isDurable, care},
	{"ENQUEUE", (*target).isDatabase, enqueue},
	{"QUEUE", (*target).isDatabase, through},
	{"DEPTH", (*target).isDurable, depth},
	{"SCHEDULE", (*target).isDurable, scheduling},
	{"PROCESSES", (*target).isDurable, processes},
	{"DASH", (*target).isDurable, dash},
	{"CROWD", (*target).isDurable, crowding},
	{"LENGTH", (*target).isDurable, lengths},
	{"PAYLOAD", (*target).isDurable, payloads},
	{"SIZE", (*target).isDurable, sizes},
}

func caseNames() []string {
	var names []string
	for _, c := range cases {
		names = append(names, c.name)
	}
	return names
}
