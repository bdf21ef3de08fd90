package signature

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

const (
	// PersistedName is the ConfigMap in ConfigMapNamespace that keeps the
	// signatures which a cluster has found.
	PersistedName = "signatures-managed"
	// MaxPersistedDigests is how many digests it keeps.
	MaxPersistedDigests = 64
	// MaxPersistedBytes bounds its data: keys, and signatures in base64. An
	// object of more than 1 MiB would be refused.
	MaxPersistedBytes = 900 << 10
)

// PersistOptions configure a [Persister]. API and Signatures are required.
type PersistOptions struct {
	// API is where the ConfigMap is.
	API clusterapi.ReadWriter
	// Signatures returns what has been found, by digest: the method value
	// [OpenPGP.Signatures].
	Signatures func() map[string][][]byte

	// Interval is the time between two writes of [Persister.Run]. Zero means a
	// random one between 4 and 8 minutes, drawn once.
	Interval time.Duration
	// FlushTimeout bounds the last write, after the context of Run has ended.
	// Zero means 30 s.
	FlushTimeout time.Duration
	// MaxDigests and MaxBytes bound what is kept; zero means the constants
	// MaxPersistedDigests and MaxPersistedBytes. What does not fit is left out.
	MaxDigests int
	MaxBytes   int
	// Retries is how often a write is repeated after a conflict; zero means 4.
	Retries int
	// Clock measures the interval; nil means the real one.
	Clock clock.WithTicker
	// Logger gets failures as warnings; nil means none.
	Logger *slog.Logger
}

// Persister keeps signatures that verified a release in the cluster, so that
// they are there when the stores are not. A [ConfigMapStore] reads them again;
// they are not trusted, and verified anew each time.
//
// What is in the cluster already stays there, within the limits: signatures
// just found come first, then those of before in the order of their keys.
// It is safe for concurrent use. Make one with [NewPersister].
type Persister struct{ o PersistOptions }

// NewPersister returns a persister.
func NewPersister(o PersistOptions) *Persister {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Interval <= 0 {
		o.Interval = 4*time.Minute + rand.N(4*time.Minute)
	}
	if o.FlushTimeout <= 0 {
		o.FlushTimeout = 30 * time.Second
	}
	if o.Retries <= 0 {
		o.Retries = 4
	}
	o.MaxDigests = orDefault(o.MaxDigests, MaxPersistedDigests)
	o.MaxBytes = orDefault(o.MaxBytes, MaxPersistedBytes)
	return &Persister{o: o}
}

// Run saves at once, then at each interval, then once more after ctx has ended.
// Failures are logged and tried again at the next interval. It returns the
// error of ctx.
func (p *Persister) Run(ctx context.Context) error {
	ticker := p.o.Clock.NewTicker(p.o.Interval)
	defer ticker.Stop()
	for {
		if err := p.Save(ctx); err != nil && ctx.Err() == nil {
			p.warn(fmt.Sprintf("Unable to save signatures: %v", err))
		}
		select {
		case <-ticker.C():
			continue
		case <-ctx.Done():
		}
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.o.FlushTimeout)
		defer cancel()
		if err := p.Save(flush); err != nil {
			p.warn(fmt.Sprintf("Unable to save signatures during final flush: %v", err))
		}
		return ctx.Err()
	}
}

func (p *Persister) warn(text string) {
	if p.o.Logger != nil {
		p.o.Logger.Warn(text)
	}
}

// retryDelay is the first delay before a write is repeated; it doubles.
const retryDelay = 10 * time.Millisecond

// Save writes what is new. It writes nothing when the cluster has it all.
func (p *Persister) Save(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := p.save(ctx)
		if err == nil || attempt >= p.o.Retries || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
		timer := p.o.Clock.NewTimer(retryDelay << min(attempt, 10))
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (p *Persister) save(ctx context.Context) error {
	gvk := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	found := p.o.Signatures()
	old, err := p.o.API.Get(ctx, gvk, clusterapi.Key(ConfigMapNamespace, PersistedName))
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return err
	}
	if absent {
		data := p.merge(found, nil)
		if len(data) == 0 {
			return nil
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		u.SetNamespace(ConfigMapNamespace)
		u.SetName(PersistedName)
		setPersisted(u, data)
		_, err = p.o.API.Create(ctx, u, clusterapi.CreateOptions{})
		return err
	}

	before, _, _ := unstructured.NestedFieldNoCopy(old.Object, "binaryData")
	entries, _ := before.(map[string]any)
	data := p.merge(found, entries)
	if samePersisted(old, entries, data) {
		return nil
	}
	setPersisted(old, data)
	_, err = p.o.API.Update(ctx, old, clusterapi.UpdateOptions{})
	return err
}

func setPersisted(u *unstructured.Unstructured, data map[string]string) {
	content := make(map[string]any, len(data))
	for k, v := range data {
		content[k] = v
	}
	u.Object["binaryData"] = content
	delete(u.Object, "data")
	u.SetLabels(map[string]string{ConfigMapLabel: ""})
}

// samePersisted reports whether the object holds data, is labelled, and holds
// nothing else.
func samePersisted(u *unstructured.Unstructured, entries map[string]any, data map[string]string) bool {
	if _, ok := u.Object["data"]; ok || len(entries) != len(data) || !maps.Equal(u.GetLabels(), map[string]string{ConfigMapLabel: ""}) {
		return false
	}
	for k, v := range data {
		if entries[k] != v {
			return false
		}
	}
	return true
}

var (
	// mapKey is what a key of a ConfigMap may look like.
	mapKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
	// persistedKey is the key of a persisted signature: the digest's part and a
	// number.
	persistedKey = regexp.MustCompile(`^([-._a-zA-Z0-9]+)-[0-9]+$`)
)

// merge returns the new content, in base64: the signatures found, then
// those of other digests that the cluster has, within the limits. A digest is
// taken whole or not at all. Keys that hold no signature are dropped.
func (p *Persister) merge(found map[string][][]byte, old map[string]any) map[string]string {
	type group struct {
		prefix string
		data   map[string]string
	}
	var groups []*group
	for _, digest := range slices.Sorted(maps.Keys(found)) {
		prefix, err := digestPrefix(digest, "-")
		if err != nil || !mapKey.MatchString(prefix+"-0") || len(found[digest]) == 0 {
			continue // cannot be the key of a ConfigMap
		}
		g := &group{prefix, map[string]string{}}
		for i, sig := range found[digest] {
			g.data[prefix+"-"+strconv.Itoa(i)] = base64.StdEncoding.EncodeToString(sig)
		}
		groups = append(groups, g)
	}
	fresh := len(groups)
	byPrefix := map[string]*group{}
	for _, g := range groups {
		byPrefix[g.prefix] = g
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		m := persistedKey.FindStringSubmatch(key)
		text, _ := old[key].(string)
		if raw, err := base64.StdEncoding.DecodeString(text); m == nil || err != nil || len(raw) == 0 {
			continue
		}
		g := byPrefix[m[1]]
		if g == nil {
			g = &group{m[1], map[string]string{}}
			byPrefix[m[1]] = g
			groups = append(groups, g)
		} else if slices.Contains(groups[:fresh], g) {
			continue // replaced by what verified
		}
		g.data[key] = text
	}

	out, bytes, digests := map[string]string{}, 0, 0
	for _, g := range groups {
		size := 0
		for k, v := range g.data {
			size += len(k) + len(v)
		}
		if digests == p.o.MaxDigests || bytes+size > p.o.MaxBytes {
			continue
		}
		digests, bytes = digests+1, bytes+size
		maps.Copy(out, g.data)
	}
	return out
}
