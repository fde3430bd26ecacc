// Package client calls the HTTP API of package dashboard from Go, and defines
// what goes over it. It depends on nothing but the standard library, so that a
// program which only looks after runs need not link the engine.
//
//	c, err := client.New("http://127.0.0.1:8233", client.Options{})
//	run, err := c.Resume(ctx, "order-42", client.ResumeOptions{})
//	if errors.Is(err, client.ErrConflict) {
//		fmt.Println(err) // the server's message
//	}
package client
