package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A report is made every night, of the day before, whichever engine is there then.
func ExampleWorkflow_Schedule() {
	ctx := context.Background()
	report := durable.Define("report", func(ctx context.Context, what string) (string, error) {
		day := durable.ScheduledAt(ctx).AddDate(0, 0, -1).Format(time.DateOnly)
		return durable.Step(ctx, "make", func(context.Context) (string, error) { return what + " of " + day, nil })
	})
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{
		Workflows: []durable.Definition{report},
		Schedules: []durable.Schedule{
			report.Schedule("nightly", durable.Cron("0 0 2 * * *").In("Europe/Berlin"), "sales").Overlap(durable.OverlapQueue),
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	if _, err := eng.Recover(ctx); err != nil { // stores the schedule
		fmt.Println(err)
		return
	}

	// What an operator does on Monday, when the night of 2 June 2025 is to be made again.
	op := operate.On(eng)
	night := time.Date(2025, 6, 2, 0, 0, 0, 0, time.UTC) // 02:00 in Berlin
	if _, err := op.BackfillSchedule(ctx, "nightly", night, night.Add(time.Hour)); err != nil {
		fmt.Println(err)
		return
	}
	run, err := report.Handle(durable.NewContext(ctx, eng), "nightly@2025-06-02T00:00:00Z")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Wait(ctx))
	list, err := op.Schedules(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(list[0].Timetable, len(list[0].Next))
	// Output:
	// sales of 2025-06-01 <nil>
	// cron "0 0 2 * * *" in Europe/Berlin 5
}
