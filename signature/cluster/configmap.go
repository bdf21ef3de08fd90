package cluster

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/signature"
)

const (
	// ConfigMapNamespace is where clusters keep signatures.
	ConfigMapNamespace = "openshift-config-managed"
	// ConfigMapLabel marks the ConfigMaps that hold them; its value does not
	// matter.
	ConfigMapLabel = "release.openshift.io/verification-signatures"
	// maxMapSignatures is how many signatures for one digest are taken
	// from the ConfigMaps of a cluster.
	maxMapSignatures = 64
	// maxConfigMaps is how many ConfigMaps with signatures are read.
	maxConfigMaps = 4096
	// readTimeout bounds what is read of the cluster before any signature, so
	// that an API server that hangs leaves time for other stores.
	readTimeout = 30 * time.Second
)

// ConfigMapStore reads signatures from the ConfigMaps of a cluster that mirror tools and
// administrators of disconnected clusters put there: binaryData, under keys
// <algo>-<hash>-<number>. Maps are read in the order of their names, keys in the order of
// their numbers, which need not start at 1. A list that fails is an ordinary failure,
// and so is a field below zero: the next store is asked. It is safe for concurrent use if
// Reader is.
type ConfigMapStore struct {
	Reader clusterapi.Reader
	// MaxSignatures is how many signatures for one digest are taken; zero means 64.
	MaxSignatures int
	// MaxConfigMaps is how many ConfigMaps are read: a list of more fails. Zero
	// means 4096.
	MaxConfigMaps int
	// Timeout bounds the list; zero means 30 s.
	Timeout time.Duration
}

// String describes the store.
func (s *ConfigMapStore) String() string {
	return fmt.Sprintf("config maps in %s with label %q", ConfigMapNamespace, ConfigMapLabel)
}

// Candidates implements [signature.Store].
func (s *ConfigMapStore) Candidates(ctx context.Context, digest string) iter.Seq2[signature.Candidate, error] {
	return func(yield func(signature.Candidate, error) bool) {
		own := signature.Candidate{Store: s.String()}
		prefix, err := signature.DigestKey(digest, "-")
		if err != nil {
			yield(own, &signature.StoreError{Store: own.Store, Err: err})
			return
		}
		maps, err := s.list(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = &signature.StoreError{Store: own.Store, Err: err}
			}
			yield(own, err)
			return
		}
		n, limit := 0, cmp.Or(s.MaxSignatures, maxMapSignatures)
		for i := range maps {
			cm := &maps[i]
			data, _, _ := unstructured.NestedFieldNoCopy(cm.Object, "binaryData")
			entries, _ := data.(map[string]any)
			for _, key := range signature.MapKeys(entries, prefix) {
				c := signature.Candidate{Store: own.Store, Location: fmt.Sprintf("config map %s/%s key %s", ConfigMapNamespace, cm.GetName(), key), Number: n + 1}
				if n == limit {
					c.Number = 0
					yield(c, fmt.Errorf("%s hold more signatures for %s than the limit of %d", own.Store, digest, limit))
					return
				}
				n++
				text, _, err := unstructured.NestedString(cm.Object, "binaryData", key)
				if err == nil {
					c.Signature, err = base64.StdEncoding.DecodeString(text)
				}
				if err != nil {
					c.Signature, err = nil, fmt.Errorf("unable to read signature from %s: %w", c.Location, err)
				}
				if err == nil && len(c.Signature) == 0 {
					continue
				}
				if !yield(c, err) {
					return
				}
			}
			if !yield(own, fmt.Errorf("prefix %s in config map %s: %w", prefix, cm.GetName(), signature.ErrNotFound)) {
				return
			}
		}
	}
}

func (s *ConfigMapStore) list(ctx context.Context) ([]unstructured.Unstructured, error) {
	if err := options.NonNegative(s); err != nil {
		return nil, err
	}
	ctx, cancel := reconcile.WithTimeout(ctx, cmp.Or(s.Timeout, readTimeout))
	defer cancel()
	exists, err := labels.NewRequirement(ConfigMapLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	found, err := s.Reader.List(ctx, corev1.SchemeGroupVersion.WithKind("ConfigMap"), clusterapi.ListOptions{
		Namespace: ConfigMapNamespace, Labels: labels.NewSelector().Add(*exists), Limit: cmp.Or(s.MaxConfigMaps, maxConfigMaps),
	})
	if err != nil {
		return nil, fmt.Errorf("unable to list %s: %w", s, err)
	}
	slices.SortStableFunc(found.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	return found.Items, nil
}

// ConfigMapFile is how mirror tools name the file of a [ConfigMap], in JSON.
func ConfigMapFile(digest string) string {
	algo, hash, _ := strings.Cut(digest, ":")
	return fmt.Sprintf("signature-%s-%s.json", algo, hash[:min(16, len(hash))])
}

// mapName is what the name of a ConfigMap may look like.
var mapName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// ConfigMap returns the object that brings the signatures of a digest to a
// disconnected cluster: apply it there, and [ConfigMapStore] finds them. The
// signatures are not verified here. A digest that does not make a name, and
// signatures that an object cannot hold, are errors.
func ConfigMap(digest string, signatures [][]byte) (*corev1.ConfigMap, error) {
	prefix, err := signature.DigestKey(digest, "-")
	if err != nil {
		return nil, err
	}
	if !mapName.MatchString(prefix) || len(prefix) > 253 {
		return nil, fmt.Errorf("digest %q does not make the name of a config map", digest)
	}
	cm := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ConfigMapNamespace, Name: prefix,
			Labels: map[string]string{ConfigMapLabel: ""},
		},
		BinaryData: map[string][]byte{},
	}
	size := 0
	for i, sig := range signatures {
		cm.BinaryData[prefix+"-"+strconv.Itoa(i+1)] = slices.Clone(sig)
		size += len(sig)
	}
	if size > 900<<10 {
		return nil, fmt.Errorf("the signatures have %d bytes, more than a config map holds", size)
	}
	return cm, nil
}
