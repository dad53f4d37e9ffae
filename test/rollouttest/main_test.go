package rollouttest_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain expects that the tests leave no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
