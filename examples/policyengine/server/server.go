// Package server runs the two HTTP servers of the example policyengine.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// Site is a handler and the address to serve it at. With the files of a certificate
// and its key it is served by TLS; each handshake reads them, so that a new
// certificate takes effect at once.
type Site struct {
	Address   string
	Handler   http.Handler
	Cert, Key string
}

// Server serves sites. Make one with [Start].
type Server struct {
	URLs    []string // of the sites
	servers []*http.Server
	failed  chan error // why a server ended by itself
}

// Start serves sites. The error is about an address that cannot be listened on, or
// about a certificate.
func Start(sites ...Site) (*Server, error) {
	s := &Server{failed: make(chan error, len(sites))}
	for _, site := range sites {
		if err := s.start(site); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) start(site Site) error {
	scheme := "http://"
	server := &http.Server{
		Handler: site.Handler, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(site.Cert, site.Key)
		return &pair, err
	}
	secure := site.Cert != ""
	if secure {
		scheme = "https://"
		server.TLSConfig = &tls.Config{GetCertificate: load, MinVersion: tls.VersionTLS12}
		if _, err := load(nil); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", site.Address)
	if err != nil {
		return err
	}
	s.servers = append(s.servers, server)
	s.URLs = append(s.URLs, scheme+listener.Addr().String())
	go func() {
		if secure {
			s.failed <- server.ServeTLS(listener, "", "")
			return
		}
		s.failed <- server.Serve(listener)
	}()
	return nil
}

// Watch returns a context that ends when a server does.
func (s *Server) Watch(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-s.failed:
			if !errors.Is(err, http.ErrServerClosed) {
				stop(err)
			}
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// Shutdown answers what has been asked, and ends the servers. It waits at most
// until the context ends, and then returns the context's error.
func (s *Server) Shutdown(ctx context.Context) (err error) {
	defer s.close()
	for _, server := range s.servers {
		err = cmp.Or(err, server.Shutdown(ctx))
	}
	return err
}

func (s *Server) close() {
	for _, server := range s.servers {
		_ = server.Close()
	}
}
