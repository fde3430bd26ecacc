package main

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
)

// serving is the line by which serve says that it is up.
const serving = "serving"

// serve executes deployments until it is stopped or killed; to them it makes no
// difference.
func serve(ctx context.Context, dir string) error {
	pipeline := &Pipeline{Site: &Site{Dir: dir}}
	office, err := openStore(ctx, dir, durable.Options{
		Workflows: []durable.Definition{durable.Define(deployments.Name(), pipeline.Deploy)},
	})
	if err != nil {
		return err
	}
	defer office.Close()
	report, err := office.eng.Recover(ctx)
	if err != nil {
		return err
	}
	tell(report)
	fmt.Println(serving)
	<-ctx.Done()
	return nil
}

// tell prints what Recover left to do, and whose task it is.
func tell(r durable.Report) {
	if len(r.Resumed)+len(r.Approvals)+len(r.Stuck) == 0 {
		fmt.Println("durable.Recover found nothing left to do")
	}
	for _, id := range r.Resumed {
		fmt.Printf("durable.Recover found %s unfinished: it goes on\n", id)
	}
	for _, a := range r.Approvals {
		fmt.Printf("durable.Recover found an open question: %q\n", a.Prompt)
	}
	for _, x := range r.Stuck {
		fmt.Printf("durable.Recover found %s stuck: %s; %s\n", x.RunID, x.Reason, x.Next)
	}
}
