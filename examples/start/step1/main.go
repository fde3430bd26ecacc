// Step1 is an ordinary program. What its function has done is lost with the process.
// docs/getting-started.md makes it durable.
package main

import "fmt"

// onboard creates an account and sends a mail.
func onboard(email string) (string, error) {
	account, err := createAccount(email)
	if err != nil {
		return "", err
	}
	return account, sendWelcome(account)
}

func createAccount(email string) (string, error) {
	fmt.Println("creating an account for", email)
	return "acct-1", nil
}

func sendWelcome(account string) error {
	fmt.Println("welcoming", account)
	return nil
}

func main() {
	account, err := onboard("ada@example.com")
	fmt.Println(account, err)
}
