// Package client calls the HTTP API of package dashboard from Go, and defines its
// types. It imports no other package of this module, so that a program that only
// operates runs need not link the engine.
//
//	c, err := client.New("http://127.0.0.1:8233", client.Options{})
//	run, err := c.Resume(ctx, "order-42", client.ResumeOptions{})
//	if errors.Is(err, client.ErrConflict) {
//		fmt.Println(err) // the server's message
//	}
package client
