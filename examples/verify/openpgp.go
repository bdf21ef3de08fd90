package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// openPGP verifies by keyrings.
func openPGP(ctx context.Context, o options, stdout, stderr io.Writer) error {
	digest := digestOf(o.image)
	var rings []*signature.Keyring
	for _, name := range o.keyrings {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		ring, err := signature.ParseKeyring(filepath.Base(name), data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, s := range ring.Skipped() {
			fmt.Fprintf(stderr, "%s: key %s is not used: %s\n", name, s.ID, s.Reason)
		}
		rings = append(rings, ring)
	}
	var stores []signature.Store
	for _, s := range o.stores {
		store, err := openStore(s)
		if err != nil {
			return err
		}
		stores = append(stores, store)
	}
	v := signature.NewVerifier(rings, signature.Parallel(stores...))
	result, err := v.Verify(ctx, digest)
	if err != nil {
		return err
	}
	// A manifest on standard output stands alone there, to be piped.
	report := stdout
	if o.configMap.wanted && o.configMap.path == "" {
		report = stderr
	}
	show(report, result)
	if !o.configMap.wanted {
		return nil
	}
	return writeConfigMap(digest, v.Signatures()[digest], o.configMap.path, stdout)
}

// digestOf takes the digest out of a pull spec; a bare digest is one.
func digestOf(image string) string {
	if d := signature.Digest(image); d != "" || strings.Contains(image, "/") {
		return d
	}
	return image
}

// openStore opens a store on the web or in a directory.
func openStore(s string) (signature.Store, error) {
	lower := strings.ToLower(s)
	switch {
	case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
		return signature.NewHTTPStore(s, signature.HTTPOptions{Proxy: http.ProxyFromEnvironment})
	case strings.HasPrefix(lower, "file://"):
		s = s[len("file://"):]
	case strings.Contains(s, "://"):
		return nil, errors.New("a store is a URL with scheme http, https or file, or a directory")
	}
	info, err := os.Stat(s)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("store %s is not a directory", s)
	}
	return signature.DirStore(s), nil
}

// writeConfigMap writes the manifest of the signatures. In a directory it is
// named as mirror tools name it.
func writeConfigMap(digest string, signatures [][]byte, path string, stdout io.Writer) error {
	cm, err := cluster.ConfigMap(digest, signatures)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(cm, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if path == "" {
		_, err := stdout.Write(data)
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		algo, hash, _ := strings.Cut(digest, ":")
		path = filepath.Join(path, fmt.Sprintf("signature-%s-%s.json", algo, hash[:min(16, len(hash))]))
	}
	return os.WriteFile(path, data, 0o644)
}

// show prints who signed.
func show(w io.Writer, v *signature.Verification) {
	fmt.Fprintf(w, "%s is verified\n", v.Digest)
	for _, s := range v.Signers {
		signer := s.Fingerprint
		if s.UserID != "" {
			signer += " (" + s.UserID + ")"
		}
		when := "at an unknown time"
		if !s.Created.IsZero() {
			when = s.Created.UTC().Format(time.RFC3339)
		}
		where := s.Location
		if where == "" {
			where = s.Store
		}
		fmt.Fprintf(w, "  %s\n    signed by  %s\n    signed as  %s\n    signed on  %s\n    found in   %s\n", s.Keyring, signer, s.Reference, when, where)
	}
}

// explain prints a failure: its most telling cause, then every attempt.
func explain(w io.Writer, err error) {
	var e *signature.Error
	if !errors.As(err, &e) {
		fmt.Fprintln(w, "verify:", err)
		return
	}
	fmt.Fprintln(w, "verify:", e.Summary())
	for _, a := range e.Attempts {
		where := a.Location
		if where == "" {
			where = a.Store
		}
		if a.Keyring != "" {
			where += ", " + a.Keyring
		}
		fmt.Fprintf(w, "  %s: %v\n", where, a.Err)
	}
}
