// Command verify reports whether a release may be trusted: who signed its digest,
// under which name and when.
//
// With keyrings it looks for OpenPGP signatures, in stores on the web or in
// directories (<store>/sha256=<hash>/signature-1), as a cluster does before an
// update. Every keyring must be satisfied:
//
//	go run ./examples/verify -digest sha256:… \
//	    -store https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release \
//	    -keyring verifier-public-key-redhat
//
// With a public key in PEM it looks for cosign signatures, as the container
// runtime does on a pull: in OCI image layouts, and in what oc adm release mirror and
// oc-mirror leave on disk. The image must have been signed under its own repository:
// -digest takes a whole pull spec, or a digest in the product's repository:
//
//	go run ./examples/verify -digest quay.io/openshift-release-dev/ocp-release@sha256:… \
//	    -store ./mirror,./layout -key openshift.pem
//
// Registries are read by a module of its own, manifest/image/registry.
//
// -store and -keyring may be repeated, or have several values with commas.
// -configmap writes the manifest that brings the OpenPGP signatures which verified
// to a disconnected cluster; in a directory it is named as mirror tools do.
//
// The exit code is 0 when the digest verified, 1 when it did not, 2 when the
// command line is wrong, 3 when a key or a store cannot be read.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

func main() { program.Main(command()) }

// maxKey is how many bytes of a file with a key are read, more than a key may have.
const maxKey = 1 << 20

// productRepository is where releases are published.
const productRepository = "quay.io/openshift-release-dev/ocp-release"

type options struct {
	image            string // a digest or a pull spec
	stores, keyrings program.List
	key, configMap   string
	timeout          program.Span
}

func command() program.Command {
	o := options{timeout: program.Span(2 * time.Minute)}
	return program.Command{
		Name:     "verify",
		About:    "Verify reports whether a release may be trusted: who signed its digest, under which name and when.",
		Codes:    "0: the digest is verified; 1: it is not; 3: a key or a store cannot be read",
		Required: [][]string{{"digest"}, {"store"}, {"keyring", "key"}},
		Needs:    map[string][]string{"configmap": {"keyring"}},
		Excludes: map[string][]string{"key": {"keyring"}},
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.image, "digest", "", "digest, or pull spec with a `digest`, of the release image")
			f.Var(&o.stores, "store", "`URL` or directory of signatures; with -key, an OCI layout or a mirror on disk; may be repeated")
			f.Var(&o.keyrings, "keyring", "`file` of OpenPGP public keys; each must be satisfied; may be repeated")
			f.StringVar(&o.key, "key", "", "`file` of a public key in PEM, for cosign signatures")
			f.StringVar(&o.configMap, "configmap", "", "write the manifest with the signatures to a `file`, into a directory, or to - (standard output)")
			f.Var(&o.timeout, "timeout", "`duration` after which to give up")
		},
		Run: func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
			if err := o.validDigest(); err != nil {
				return program.Usagef("-digest: %w", err)
			}
			within, cancel := context.WithTimeout(ctx, time.Duration(o.timeout))
			defer cancel()
			verify := o.openPGP
			if o.key != "" {
				verify = o.cosign
			}
			err := verify(within, stdout, stderr)
			if e := new(signature.Error); ctx.Err() == nil && errors.As(err, &e) {
				if len(e.Attempts) == 0 { // no store was asked: the name of the image is not one
					return program.Usagef("-digest: %w", err)
				}
				fmt.Fprintf(program.TerminalOf(stderr).Wrap(stderr), "verify: %s", e.Text())
				if slices.ContainsFunc(e.Attempts, isFault) {
					return program.ErrUnknown
				}
				return program.ErrNo
			}
			return err
		},
	}
}

// digest is that of the image; empty for an image that is named by tag.
func (o *options) digest() string {
	if strings.Contains(o.image, "/") || strings.Contains(o.image, "@") {
		return signature.Digest(o.image)
	}
	return o.image
}

// validDigest returns what is wrong with -digest, apart from the name of the image.
func (o *options) validDigest() error {
	if o.digest() == "" {
		return signature.ErrNoDigest
	}
	return signature.ValidateDigestStrict(o.digest())
}

// isFault reports whether a signature may be there that could not be retrieved.
func isFault(a signature.Attempt) bool {
	_, other := errors.AsType[*sigstore.OtherError](a.Err)
	return a.Keyring == "" && !other && !errors.Is(a.Err, signature.ErrNotFound)
}

// openPGP verifies by keyrings.
func (o *options) openPGP(ctx context.Context, stdout, stderr io.Writer) error {
	digest := o.digest()
	var rings []*signature.Keyring
	for _, name := range o.keyrings {
		ring, err := signature.ReadKeyring(name)
		if err != nil {
			return fmt.Errorf("-keyring: %w", err)
		}
		for _, s := range ring.Skipped() {
			fmt.Fprintf(stderr, "%s: key %s is %s: %s\n", name, s.ID, s.Use(), s.Reason)
		}
		rings = append(rings, ring)
	}
	var stores []signature.Store
	for _, place := range o.stores {
		store, err := signature.OpenStore(place, signature.HTTPOptions{Proxy: http.ProxyFromEnvironment})
		if err != nil {
			return fmt.Errorf("-store: %w", err)
		}
		stores = append(stores, store)
	}
	v := signature.NewVerifier(rings, signature.Parallel(stores...))
	result, err := v.Verify(ctx, digest)
	if err != nil {
		return err
	}
	// A manifest on standard output stands alone there, to be piped.
	file, report := o.configMap, stdout
	if file == "-" {
		report = stderr
	}
	fmt.Fprint(report, result.Text())
	if file == "" {
		return nil
	}
	cm, err := cluster.ConfigMap(digest, v.Signatures()[digest])
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(cm, "", "  ")
	if err != nil {
		return err
	}
	if file == "-" {
		_, err := fmt.Fprintf(stdout, "%s\n", data)
		return err
	} else if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, cluster.ConfigMapFile(digest))
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
