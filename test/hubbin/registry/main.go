// Command registry is an OCI registry for tests, and the client of Flux that pushes to it.
//
//	registry serve [flags]      a registry in memory; prints its address; ends with its standard input
//	registry push URL DIR REVISION   what `flux push artifact` does; prints the digest
//
// It is a module of its own, so that the requirements of a registry never move the product's
// pins.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	fluxoci "github.com/fluxcd/pkg/oci"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/sirupsen/logrus"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "serve":
		return serve(ctx, args[1:])
	case len(args) == 4 && args[0] == "push":
		return push(ctx, args[1], args[2], args[3])
	}
	return errors.New("want serve [flags], or push URL DIR REVISION")
}

// serve runs a registry until standard input ends.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	passwords := flags.String("htpasswd", "", "File with the users and their passwords.")
	realm := flags.String("token-realm", "", "URL of the server of tokens, whose issuer is the service itself.")
	keys := flags.String("token-keys", "", "File with the public keys of that server, as a JSON Web Key Set.")
	certificate := flags.String("cert", "", "File with the certificate for https.")
	key := flags.String("key", "", "File with its key.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config := &configuration.Configuration{Storage: configuration.Storage{
		"inmemory": nil, "delete": configuration.Parameters{"enabled": true},
	}}
	switch {
	case *passwords != "":
		config.Auth = configuration.Auth{"htpasswd": {"realm": "registry", "path": *passwords}}
	case *realm != "":
		config.Auth = configuration.Auth{"token": {"realm": *realm, "service": "registry", "issuer": "tests", "jwks": *keys}}
	}
	config.HTTP.Secret = "for tests"
	logrus.SetLevel(logrus.PanicLevel) // a missing blob is an error to it
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handlers.NewApp(ctx, config)}
	ended := make(chan error, 1)
	go func() {
		if *certificate != "" {
			ended <- server.ServeTLS(listener, *certificate, *key)
			return
		}
		ended <- server.Serve(listener)
	}()
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ended <- server.Close()
	}()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// push pushes a directory as Flux's command does, and prints its digest.
func push(ctx context.Context, url, dir, revision string) error {
	client := fluxoci.NewClient([]crane.Option{crane.Insecure, crane.WithUserAgent("flux/v2")})
	pushed, err := client.Push(ctx, strings.TrimPrefix(url, "oci://"), dir, fluxoci.WithPushMetadata(fluxoci.Metadata{
		Source: "https://git.example.com/team/fleet", Revision: revision,
	}))
	if err != nil {
		return err
	}
	_, digest, _ := strings.Cut(pushed, "@")
	fmt.Println(digest)
	return nil
}
