package pageserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Listener has the address and the certificate of a server. It is a manager's Runnable without leader election: every
// replica serves.
type Listener struct {
	// Address to listen on.
	Address string
	// CertFile and KeyFile are the server's certificate; "": no TLS, because a proxy before the server has it. The
	// files may change while the server runs.
	CertFile, KeyFile string
	// ProxyCAFile has the authority of a proxy that names users in headers; "": there is no such proxy.
	ProxyCAFile string
	// Handler serves the requests.
	Handler http.Handler
}

// NeedLeaderElection is false.
func (l *Listener) NeedLeaderElection() bool { return false }

// Start listens until the context ends.
func (l *Listener) Start(ctx context.Context) error {
	config, err := l.tls(ctx)
	if err != nil {
		return err
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", l.Address)
	if err != nil {
		return fmt.Errorf("cannot serve pages: %w", err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return Serve(ctx, listener, l.Handler)
}

// Validate refuses a combination of files that cannot work.
func (l *Listener) Validate() error {
	switch {
	case (l.CertFile == "") != (l.KeyFile == ""):
		return errors.New("a certificate and its key must be set together")
	case l.ProxyCAFile != "" && l.CertFile == "":
		return errors.New("the authority of a proxy needs a certificate of the server: a proxy proves itself by TLS only")
	}
	return nil
}

// tls is the TLS configuration; nil: none. A client certificate is optional. It is accepted only if the proxy's
// authority signed it.
func (l *Listener) tls(ctx context.Context) (*tls.Config, error) {
	if l.CertFile == "" {
		return nil, nil // no TLS, and no error
	}
	watcher, err := certwatcher.New(l.CertFile, l.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot serve pages with %s: %w", l.CertFile, err)
	}
	go func() { _ = watcher.Start(ctx) }() // it ends with the context, and logs its errors
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watcher.GetCertificate, NextProtos: []string{"h2", "http/1.1"}}
	if l.ProxyCAFile == "" {
		return config, nil
	}
	text, err := os.ReadFile(l.ProxyCAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority of proxies: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot read the authority of proxies: %s has no certificate", l.ProxyCAFile)
	}
	return config, nil
}

// Serve serves until the context ends. Requests have limits of time and size.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: requestTimeout + 15*time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10,
	}
	stop := context.AfterFunc(ctx, func() {
		// Streams of events end with the context. Pages have a short time to be sent.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve pages: %w", err)
	}
	return nil
}
