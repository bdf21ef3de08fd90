package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

// services are what a cluster finds on the network: an update service and a
// signature store. They listen on loopback.
type services struct {
	graphURL, storeURL string
	keyring            *signature.Keyring
	server             *http.Server
}

const channel = "rehearsal"

// serve signs the releases with a key made for this run and serves the
// signatures, and an update graph with an edge from the first release to the
// second. With tamper one byte of the second one's signature is changed.
func serve(from, to *release, tamper bool) (*services, error) {
	entity, err := openpgp.NewEntity("Rehearsal", "key of this run", "rehearsal@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, r := range []*release{from, to} {
		signed, err := sign(entity, r)
		if err != nil {
			return nil, fmt.Errorf("sign %s: %w", r.version(), err)
		}
		if tamper && r == to {
			signed[len(signed)/2] ^= 1
		}
		digest := signature.Digest(r.image)
		mux.HandleFunc("GET /signatures/"+strings.Replace(digest, ":", "=", 1)+"/signature-1", func(w http.ResponseWriter, _ *http.Request) {
			w.Write(signed)
		})
	}
	graph, err := json.Marshal(map[string]any{
		"version": 1,
		"nodes":   []any{node(from), node(to)},
		"edges":   [][2]int{{0, 1}},
	})
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /graph", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("channel") != channel {
			graph := []byte(`{"version":1,"nodes":[],"edges":[]}`)
			w.Write(graph)
			return
		}
		w.Write(graph)
	})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &services{server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	base := "http://" + listener.Addr().String()
	s.graphURL, s.storeURL = base+"/graph", base+"/signatures"
	go s.server.Serve(listener)
	if s.keyring, err = publicKeyring(entity); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *services) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return s.server.Shutdown(ctx)
}

func node(r *release) map[string]any {
	return map[string]any{
		"version": r.version(),
		"payload": r.image,
		"metadata": map[string]string{
			"url": string(r.payload.Release.URL),
			"io.openshift.upgrades.graph.release.channels": channel,
		},
	}
}

// sign attests the digest of a release, as its builder does.
func sign(entity *openpgp.Entity, r *release) ([]byte, error) {
	body, err := signature.Body(signature.Digest(r.image), "registry.example/ocp/release:"+r.version(), "examples/update", time.Now())
	if err != nil {
		return nil, err
	}
	return signaturetest.Sign(entity, body, time.Now())
}

// publicKeyring is what the cluster trusts: the public half of the key.
func publicKeyring(entity *openpgp.Entity) (*signature.Keyring, error) {
	var b strings.Builder
	if err := entity.Serialize(&b); err != nil {
		return nil, err
	}
	return signature.ParseKeyring("rehearsal", []byte(b.String()))
}
