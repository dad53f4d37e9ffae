package commitstatus_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// testProxy is the proxy in the environment of all tests. Servers on this machine are called without it.
const testProxy = "192.0.2.1:3128"

// TestMain expects that the tests leave no goroutine behind. It sets the proxy, because net/http reads the environment
// once.
func TestMain(m *testing.M) {
	if err := os.Setenv("HTTPS_PROXY", "http://"+testProxy); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}
