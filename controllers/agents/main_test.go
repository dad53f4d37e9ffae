package agents_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain expects that the tests leave no goroutine behind.
func TestMain(m *testing.M) {
	ginkgos := goleak.IgnoreAnyFunction("github.com/onsi/ginkgo/v2/internal/interrupt_handler.(*InterruptHandler).registerForInterrupts.func2")
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), ginkgos)
}
