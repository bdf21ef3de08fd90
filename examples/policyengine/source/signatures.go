package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/signature"
)

// OpenSignatures opens the signatures of mirrors as policyengine serves them: files
// sha256/DIGEST/signature-N. Those of the directories among the places of releases
// count, as oc adm release mirror and oc-mirror leave them there, and those of
// Options.Signatures. The error is from [signature.OpenStore].
func (o Options) OpenSignatures() (fs.FS, error) {
	var stores stores
	places := o.Signatures
	for _, place := range o.Releases {
		name, _ := cutRepository(place)
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			places = append(places[:len(places):len(places)], name)
		}
	}
	for _, place := range places {
		store, err := signature.OpenStore(place, signature.HTTPOptions{})
		if err != nil {
			return nil, fmt.Errorf("-signatures: %w", err)
		}
		stores = append(stores, store)
	}
	if len(stores) == 0 {
		return nil, nil
	}
	return stores, nil
}

// stores are stores of signatures as a file system.
type stores []signature.Store

// Open implements [fs.FS].
func (s stores) Open(name string) (fs.File, error) {
	hash, number, ok := strings.Cut(strings.TrimPrefix(name, "sha256/"), "/signature-")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	for text, err := range s.signatures("sha256:" + hash) {
		if err != nil {
			return nil, err
		}
		n--
		if n == 0 {
			return fstest.MapFS{name: {Data: text}}.Open(name)
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// signatures yields the signatures of a digest, of one store after the other. An
// error is the last.
func (s stores) signatures(digest string) func(yield func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for _, store := range s {
			for c, err := range store.Candidates(context.Background(), digest) {
				if errors.Is(err, signature.ErrNotFound) {
					continue
				}
				if !yield(c.Signature, err) || err != nil {
					return
				}
			}
		}
	}
}

// unsigned are warnings about releases that a cluster with the usual policy would
// refuse, since nothing here has a signature of them.
func unsigned(signatures fs.FS, releases []graphdata.Release) (problems []graphdata.Problem) {
	if signatures == nil {
		return nil
	}
	for _, r := range releases {
		hash, isDigest := strings.CutPrefix(r.Digest, "sha256:")
		if !isDigest {
			continue
		}
		f, err := signatures.Open("sha256/" + hash + "/signature-1")
		if err != nil {
			message := fmt.Sprintf("release %s for %s has no signature here: clusters refuse it", r.Version, r.Arch)
			problems = append(problems, graphdata.Problem{File: r.Source, Message: message, Warning: true})
			continue
		}
		f.Close()
	}
	return problems
}
