// Package test is the wing of tests that span packages, with the helpers that tests
// share. It has no code of its own. No package that users build into their programs
// imports anything from here, and nothing here carries a promise of compatibility: for
// your own tests there are packages conformance and durable/durabletest.
//
// Tests of the rules of this repository:
//
//	arch        who may import whom, and how large a package or a type may get;
//	            arch/shape measures it ("make shape")
//	docs        what a page or a requirement names must exist
//
// Tests of behaviour:
//
//	everystore  each way to wait, to branch and to be undone, on every store, with a
//	            crash before and after each durable write
//	proof       real processes, killed with SIGKILL or stopped past their lease
//	chaos       processes of one program, killed, stopped, cut off, restarted ("make chaos")
//	failover    the primary of PostgreSQL killed under load, and what else a server, a cluster,
//	            a pooler and the network between do to a program
//	statements  each statement of the PostgreSQL store made to fail, with each class of error
//	syscalls    each write and sync of SQLite made to fail, by strace
//	traceproof  the OpenTelemetry trace of a run that several killed processes execute
//	doors       one run resumed through each door: library, HTTP API, page, terminal
//	sim         whole worlds of programs, faults and operators, made from seeds ("make sim")
//	mutants     a program: known faults, put back one at a time, that sim must find ("make mutants")
//	vintage     stores, exports and archives that earlier versions have written
//
// Helpers:
//
//	pgtest      a real PostgreSQL server for tests; pgtest/cmd/withpostgres shares one
//	            among the processes of a "go test", pgtest/proxy breaks connections,
//	            pgtest/wire is a network that is cut
//	patroni     a cluster of three PostgreSQL servers under Patroni and etcd
//	tried       collects how much the tests have tried, for docs/proof.md
//	otlptest    a receiver of OpenTelemetry's OTLP/HTTP
//	tracecheck  compares a trace with the history of its run
//	tracedemo   a program: the trace of a killed run in a real Jaeger ("make trace-demo")
//	browsertest finds or installs a browser
//	order       a program: which packages "make test" runs first, and how many at a time
//	leftout     a program: which tests "make test" and "make soak" left out, and how to have them
//	syspackage  installs a system package for pgtest, patroni and browsertest
//
// The store that crashes at a chosen write, which many of these tests use, is
// internal/crashstore, because durable/durabletest is made of it too.
package test
