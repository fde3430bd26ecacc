package sim

import "time"

// A World is everything that decides what happens. The zero value of each field but
// Program is the quiet one.
type World struct {
	Engines   int           // that are open at the beginning; 0: one
	Runs      int           // roots that are started; 0: one
	Unload    time.Duration // Options.UnloadAfter; 0: the default
	Deadline  time.Duration // of the root runs; 0: none
	Grace     time.Duration // Options.Grace; 0: none
	Drift     int           // how much faster the store's clock goes, in parts of a million
	Clocks    []Clock       // of the processes, counted round; nil: they are right
	Pace      uint64        // what the times are made of that calls to the store take; 0: they take none
	Yield     uint64        // what decides when goroutines make way for others at one moment; 0: they do not
	Names     int           // how many bytes the name of a call has at least in a key
	OneWriter bool          // while a transaction of a step is open, nobody else writes
	Queue     *Queue        // that the root runs wait in; nil: none
	Release   Release       // how its second build differs
	Begin     Beginning     // of the root runs
	Schedule  *Schedule     // that starts runs beside them; nil: none
	Debounce  *Debounce     // starts beside them that become few runs; nil: none
	Program   Program       // of each root run
	Faults    []Fault
	Acts      []Act
}

// A Fault is what happens to one call of the store. Calls of all processes count.
type Fault struct {
	On  string // the type of an event that the call writes, or what it is: "claim", "beat", "load", "list"
	Nth int    // the how-manieth such call, from 1
	Do  Harm
	For time.Duration // of what takes time
}

// An Act is what an operator, or fate, does to a run or a process.
type Act struct {
	On    string        // begins after the Nth commit of an event of this type, or in the moment of the Nth fault (AFault); empty: at After
	Nth   int           // from 1
	After time.Duration // since then, or since the world began
	Do    Deed
	Run   int           // to which root run
	By    time.Duration // how far a clock is set; how long a machine is suspended
	Back  int           // of a jump and an edit: how many events before the last one
}
