// Package server runs the two HTTP servers of the example policyengine.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Site is a handler and the address to serve it at. With the files of a certificate
// and its key it is served by TLS; each handshake reads them, so that a new
// certificate takes effect at once.
type Site struct {
	Address   string
	Handler   http.Handler
	Cert, Key string
}

// Server serves sites. Make one with [Listen].
type Server struct {
	URLs      []string // of the sites
	servers   []*http.Server
	listeners []net.Listener
}

// Listen listens at the addresses of sites. Errors are that of an address that is not
// available, and that of a certificate.
func Listen(sites ...Site) (*Server, error) {
	s := &Server{}
	for _, site := range sites {
		if err := s.listen(site); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) listen(site Site) error {
	listener, err := net.Listen("tcp", site.Address)
	if err != nil {
		return err
	}
	scheme := "http://"
	s.listeners = append(s.listeners, listener)
	server := &http.Server{
		Handler: site.Handler, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
	if site.Cert != "" {
		load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(site.Cert, site.Key)
			return &pair, err
		}
		if _, err := load(nil); err != nil {
			return err
		}
		scheme = "https://"
		server.TLSConfig = &tls.Config{GetCertificate: load, MinVersion: tls.VersionTLS12}
	}
	s.servers = append(s.servers, server)
	s.URLs = append(s.URLs, scheme+listener.Addr().String())
	return nil
}

func (s *Server) close() {
	for _, l := range s.listeners {
		_ = l.Close()
	}
}

// Run serves until the context ends. Then it answers what has been asked, for at most
// five seconds. Errors are that of a server that ended by itself, and that of answers
// which took longer.
func (s *Server) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, server := range s.servers {
		g.Go(func() error {
			err := serve(server, s.listeners[i])
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return err
		})
		g.Go(func() error {
			<-ctx.Done()
			defer server.Close()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return server.Shutdown(last)
		})
	}
	return g.Wait()
}

func serve(server *http.Server, l net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(l, "", "")
	}
	return server.Serve(l)
}
