package ocm

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain expects that the tests leave no goroutine behind.
func TestMain(m *testing.M) {
	ginkgos := goleak.IgnoreAnyFunction("github.com/onsi/ginkgo/v2/internal/interrupt_handler.(*InterruptHandler).registerForInterrupts.func2")
	// controller-runtime's cache does not read the filter of a watch that it has stopped.
	filters := goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop")
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), ginkgos, filters)
}
