package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/signature"
)

// configAnnotation marks the ConfigMap of a release payload that reports which keys
// must vouch for a release and where signatures are published. Its value does not
// matter.
const configAnnotation = "release.openshift.io/verification-config-map"

// The prefixes of the keys of that ConfigMap's data.
const (
	keyringPrefix = "verifier-public-key-"
	storePrefix   = "store-"
)

// The limits of a configuration.
const (
	// maxConfigEntries is how many keyrings and stores a configuration may have
	// together.
	maxConfigEntries = 64
	// maxKeyName is how many bytes of a key errors show.
	maxKeyName = 256
	// maxConfigFaults is how many faults and warnings are listed.
	maxConfigFaults = 32
)

// ErrNoConfig reports that no ConfigMap carries the annotation
// release.openshift.io/verification-config-map. It is not a fault of a payload: the
// cluster-version operator then uses [signature.NotPossible], and warns.
var ErrNoConfig = errors.New("no release authenticity verification is configured, all releases are considered unverified")

// Config is what a verification ConfigMap says.
type Config struct {
	// Source names the ConfigMap: "the config map <namespace>/<name>".
	Source string
	// Keyrings are in the order of their keys.
	Keyrings []*signature.Keyring
	// Stores are in the order of their keys. They are asked in parallel.
	Stores []signature.Store
	// Warnings name keys that were ignored and public keys that were skipped.
	Warnings []string
}

// ConfigSource is a manifest of a payload.
type ConfigSource struct {
	// Name is the manifest's file name, for errors; may be empty.
	Name string
	// Object is only read.
	Object *unstructured.Unstructured
}

// ConfigOptions say how a configuration becomes a verifier. The zero value
// works.
type ConfigOptions struct {
	// Options of the verifier. Its Keyrings are required in addition to those
	// of the configuration, its Stores are asked first.
	signature.Options
	// Reader reads the cluster's own sources of signatures, which are asked
	// before the stores of the configuration: a [ConfigMapStore], then a
	// [ClusterVersionStore]. Nil means that neither is asked.
	Reader clusterapi.Reader
	// HTTP configures the HTTP stores.
	HTTP signature.HTTPOptions
}

// FromManifests returns the verifier that a payload configures: see
// [ReadConfig], whose errors it returns but for [ErrNoConfig]. A payload without a
// configuration gives [signature.NotPossible], as in the cluster-version operator:
// nothing passes unverified.
func FromManifests(manifests []ConfigSource, o ConfigOptions) (signature.Verifier, error) {
	c, err := ReadConfig(manifests, o.HTTP)
	if errors.Is(err, ErrNoConfig) {
		return signature.NotPossible{}, nil
	}
	if err != nil {
		return nil, err
	}
	return c.Verifier(o)
}

// Verifier returns a verifier for the configuration. Its error is as from [signature.New].
func (c *Config) Verifier(o ConfigOptions) (*signature.OpenPGP, error) {
	v := o.Options
	v.Keyrings = append(slices.Clone(v.Keyrings), c.Keyrings...)
	v.Stores = slices.Clone(v.Stores)
	published := signature.Parallel(c.Stores...)
	if o.Reader != nil {
		published = signature.Serial(&ClusterVersionStore{Reader: o.Reader, HTTP: o.HTTP}, published)
		v.Stores = append(v.Stores, &ConfigMapStore{Reader: o.Reader})
	}
	v.Stores = append(v.Stores, published)
	return signature.New(v)
}

// ReadConfig looks for the first ConfigMap with annotation
// release.openshift.io/verification-config-map among the
// manifests of a payload, in their order, and reads it; later ones are ignored.
// Without any, the error is ErrNoConfig. A faulty one is an error with all its
// faults: a cluster must not fall back to less than its payload wants.
//
// The manifests must be those of the release that runs: keys out of the release
// that is to be verified would vouch for themselves.
func ReadConfig(manifests []ConfigSource, o signature.HTTPOptions) (*Config, error) {
	for _, m := range manifests {
		obj := m.Object
		// Another group may have a kind of that name.
		if obj == nil || obj.GetKind() != "ConfigMap" || strings.Contains(obj.GetAPIVersion(), "/") || !annotated(obj) {
			continue
		}
		data, _, err := unstructured.NestedStringMap(obj.Object, "data")
		switch {
		case err != nil:
		case obj.GetAPIVersion() != "v1":
			err = fmt.Errorf("no ConfigMap has the apiVersion %q", obj.GetAPIVersion())
		default:
			err = decodes(obj)
		}
		if err != nil {
			err = fmt.Errorf("%s is not valid: %w", sourceName(obj.GetNamespace(), obj.GetName()), err)
			return nil, inFile(m.Name, err)
		}
		c, err := readConfig(obj.GetNamespace(), obj.GetName(), data, o)
		return c, inFile(m.Name, err)
	}
	return nil, ErrNoConfig
}

func inFile(name string, err error) error {
	if err == nil || name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// annotated looks at the annotation alone: another that is not a string must not
// hide it.
func annotated(obj *unstructured.Unstructured) bool {
	annotations, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "annotations")
	m, _ := annotations.(map[string]any)
	_, ok := m[configAnnotation]
	return ok
}

// decodes reports whether the object is a ConfigMap in all its fields.
func decodes(obj *unstructured.Unstructured) error {
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, &corev1.ConfigMap{})
}

func sourceName(namespace, name string) string {
	return fmt.Sprintf("the config map %s/%s", namespace, name)
}

func readConfig(namespace, name string, data map[string]string, o signature.HTTPOptions) (*Config, error) {
	c := &Config{Source: sourceName(namespace, name)}
	var errs []error
	rings, stores := 0, 0
	if entries := slices.DeleteFunc(slices.Collect(maps.Keys(data)), unknownKey); len(entries) > maxConfigEntries {
		return nil, fmt.Errorf("%s has %d keyrings and stores, more than the limit of %d", c.Source, len(entries), maxConfigEntries)
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		key, value := bounded.Text(name, maxKeyName), data[name]
		switch {
		case strings.HasPrefix(key, keyringPrefix):
			rings++
			ring, err := signature.ParseKeyring(key, []byte(value))
			if err != nil {
				errs = append(errs, fmt.Errorf("%s has an invalid key %q that must be a GPG public key: %w", c.Source, key, err))
				continue
			}
			c.Keyrings = append(c.Keyrings, ring)
			for _, s := range ring.Skipped() {
				c.Warnings = append(c.Warnings, fmt.Sprintf("%s: key %s in %q is %s: %s", c.Source, s.ID, key, s.Use(), s.Reason))
			}
		case strings.HasPrefix(key, storePrefix):
			stores++
			store, ok := storeFor(strings.TrimSpace(value), o)
			if !ok {
				errs = append(errs, fmt.Errorf("%s has an invalid key %q: must be a valid URL with scheme file://, http://, or https://", c.Source, key))
				continue
			}
			c.Stores = append(c.Stores, store)
		default:
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s has an unknown key %q, which is ignored", c.Source, key))
		}
	}
	if stores == 0 {
		errs = append(errs, fmt.Errorf("%s did not provide any signature stores to read from and cannot be used", c.Source))
	}
	// The operator stops at missing stores, and so do those who look for its text.
	if rings == 0 && stores > 0 {
		errs = append(errs, fmt.Errorf("%s did not provide any GPG public keys to verify signatures from and cannot be used", c.Source))
	}
	if more := len(c.Warnings) - maxConfigFaults; more > 0 {
		c.Warnings = append(c.Warnings[:maxConfigFaults], fmt.Sprintf("%s: %d more warnings", c.Source, more))
	}
	if more := len(errs) - maxConfigFaults; more > 0 {
		errs = append(errs[:maxConfigFaults], fmt.Errorf("%s has %d more faults", c.Source, more))
	}
	if err := bounded.Errors(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

func unknownKey(key string) bool {
	return !strings.HasPrefix(key, keyringPrefix) && !strings.HasPrefix(key, storePrefix)
}

// storeFor returns the store of a URL; ok is false for one that cannot be used.
func storeFor(text string, o signature.HTTPOptions) (s signature.Store, ok bool) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, false
	}
	switch u.Scheme {
	case "http", "https":
		h, err := signature.NewHTTPStore(text, o)
		return h, err == nil
	case "file":
		if u.Path == "" {
			return nil, false
		}
		return &signature.FileStore{FS: os.DirFS(u.Path), Name: u.Path}, true
	}
	return nil, false
}
