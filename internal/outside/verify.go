package main

import (
	"context"
	"fmt"
	"io"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/signature"
)

// verify verifies a release of a mirror on disk: its signature first, then its
// contents.
func verify(ctx context.Context, out io.Writer, args []string) error {
	pullSpec := args[3]
	keyring, err := signature.ReadKeyring(args[2])
	if err != nil {
		return err
	}
	store, err := signature.OpenStore(args[1], signature.HTTPOptions{})
	if err != nil {
		return err
	}
	verifier := signature.NewVerifier([]*signature.Keyring{keyring}, store)
	signed, err := verifier.Verify(ctx, signature.Digest(pullSpec))
	if err != nil {
		return err
	}

	mirror, err := image.Open(args[0], image.Options{Platform: image.Platform{Architecture: "amd64"}})
	if err != nil {
		return err
	}
	defer mirror.Close()
	files, err := mirror.Payload(ctx, configv1.Release{Image: pullSpec})
	if err != nil {
		return err
	}
	release, err := manifest.Load(ctx, files, manifest.LoadOptions{Image: pullSpec})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s, signed by %s\n", release.Release.Version, signed.Signers[0].UserID)
	return err
}
