package ocm

import (
	"flag"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var update = flag.Bool("update", false, "write the differences that are met below testdata")

// differences collects where OCM and AddonFlow differ, to compare it with a file.
type differences struct {
	file              string
	text, unexplained strings.Builder
}

// add notes the differences of one case. If why is set there must be differences, else there
// must be none.
func (d *differences) add(name, why string, lines []string) {
	GinkgoHelper()
	switch {
	case why != "":
		Expect(lines).NotTo(BeEmpty(), "%s: %s", name, why)
		fmt.Fprintf(&d.text, "== %s: %s\n%s\n", name, why, strings.Join(lines, "\n"))
	case len(lines) > 0:
		fmt.Fprintf(&d.unexplained, "== %s\n%s\n", name, strings.Join(lines, "\n"))
	}
}

// hold fails on a difference without an explanation, and on an explained one that does not
// occur.
func (d *differences) hold() {
	GinkgoHelper()
	Expect(d.unexplained.String()).To(BeEmpty())
	if *update {
		Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
		Expect(os.WriteFile(d.file, []byte(d.text.String()), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(d.file)
	Expect(err).NotTo(HaveOccurred())
	Expect(d.text.String()).To(Equal(string(want)), "run with -update, and say in the case why it differs")
}
