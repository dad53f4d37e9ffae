// Command etcd is the etcd server, built from its public Go module. It adds
// nothing to upstream's command.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
