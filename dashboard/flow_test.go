package dashboard_test

const childEnv = "HOLDFAST_DASHBOARD_CHILD"

func child(string) int { return 0 }
