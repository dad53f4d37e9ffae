package addonsource

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain expects that the tests leave no goroutine behind.
func TestMain(m *testing.M) {
	ginkgos := goleak.IgnoreAnyFunction("github.com/onsi/ginkgo/v2/internal/interrupt_handler.(*InterruptHandler).registerForInterrupts.func2")
	// controller-runtime's cache does not read the filter of a watch that it has stopped.
	filters := goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop")
	// controller-runtime's queue waits for ever if it is shut down while it gives an item to a worker.
	const queue = "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...])."
	items, additions := goleak.IgnoreAnyFunction(queue+"handleReadyItems"), goleak.IgnoreAnyFunction(queue+"handleAddBuffer")
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), ginkgos, filters, items, additions)
}
