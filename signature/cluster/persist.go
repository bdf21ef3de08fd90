package cluster

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/options"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/signature"
)

const (
	// PersistedName is the ConfigMap in ConfigMapNamespace that keeps the
	// signatures which a cluster has found.
	PersistedName = "signatures-managed"
	// maxPersistedDigests is how many digests it keeps.
	maxPersistedDigests = 64
	// maxPersistedBytes bounds its data: keys, and signatures in base64. An
	// object of more than 1 MiB would be refused.
	maxPersistedBytes = 900 << 10
)

// PersistOptions configure a [Persister]. API and Signatures are required.
type PersistOptions struct {
	// API is where the ConfigMap is.
	API clusterapi.ReadWriter
	// Signatures returns what has been found, by digest: the method value
	// [signature.OpenPGP.Signatures].
	Signatures func() map[string][][]byte
	// Recent returns the digests of Signatures, the one that succeeded last
	// first: the method value [signature.OpenPGP.Recent]. Nil: their order is not known.
	Recent func() []string

	// Interval is the time between two writes of [Persister.Run]. Zero means a
	// random one between 4 and 8 minutes, drawn once.
	Interval time.Duration
	// MaxDigests and MaxBytes bound what is kept, in bytes; zero means 64 digests
	// and 900 KiB. What does not fit is left out,
	// but MaxDigests drops none that the history of the ClusterVersion names.
	MaxDigests int
	MaxBytes   int
	// Retries is how often Save repeats a write after a conflict; zero means 4.
	Retries int
	// Once returns a conflict at once.
	Once bool
	// Clock measures the interval; nil means the real one.
	Clock clock.WithTicker
	// Logger gets failures as warnings; nil means none.
	Logger *slog.Logger
}

// Persister keeps signatures that verified a release in the cluster, so that
// they are there when the stores are not. A [ConfigMapStore] reads them again;
// they are not trusted, and verified again each time.
//
// What is in the cluster already stays there, within the limits. If not all fits, the
// releases of the ClusterVersion's history come first, from the newest on, then what
// verified in this process, from the last success on; what is known from the ConfigMap
// alone is dropped first. It is safe for concurrent use. Make one with [NewPersister].
type Persister struct{ o PersistOptions }

// NewPersister returns a persister, or an error for options that cannot work:
// without Signatures, or with a negative number.
func NewPersister(o PersistOptions) (*Persister, error) {
	if o.Signatures == nil {
		return nil, errors.New("cluster.PersistOptions: Signatures is required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Interval == 0 {
		o.Interval = 4*time.Minute + rand.N(4*time.Minute)
	}
	o.Retries = cmp.Or(o.Retries, 4)
	o.MaxDigests = cmp.Or(o.MaxDigests, maxPersistedDigests)
	o.MaxBytes = cmp.Or(o.MaxBytes, maxPersistedBytes)
	return &Persister{o: o}, nil
}

// Run saves at once, then at each interval, then once more, for at most 30 seconds,
// after ctx has ended. Failures are logged and tried again at the next interval,
// conflicts at once and then with growing delays. It returns the error of ctx.
func (p *Persister) Run(ctx context.Context) error {
	if err := reconcile.Run(ctx, reconcile.Options{Clock: p.o.Clock, Resync: reconcile.Never}, p.Process()); err != nil {
		return err
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := p.Save(flush); err != nil {
		p.warn(fmt.Sprintf("Unable to save signatures during final flush: %v", err))
	}
	return ctx.Err()
}

// Process is the persister for a driver of package reconcile: what Run drives
// live, without the last write. It uses the driver's API if that has one.
func (p *Persister) Process() reconcile.Process {
	return reconcile.Process{Name: "signatures", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		o := p.o
		if api != nil {
			o.API = api
		}
		o.Once = true // a conflict is the driver's
		return []reconcile.Reconciler{persisting{p: &Persister{o: o}}}
	}}
}

// persisting is a persister that saves again and again.
type persisting struct{ p *Persister }

func (r persisting) Name() string               { return PersistedName }
func (r persisting) Watches() []reconcile.Watch { return nil }
func (r persisting) Keys() []reconcile.Key {
	return []reconcile.Key{{Kind: "ConfigMap", Namespace: ConfigMapNamespace, Name: PersistedName}}
}

func (r persisting) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	err := r.p.Save(ctx)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, err
	}
	if err != nil && ctx.Err() == nil {
		r.p.warn(fmt.Sprintf("Unable to save signatures: %v", err))
	}
	return reconcile.Result{At: q.Now.Add(r.p.o.Interval)}, nil
}

func (p *Persister) warn(text string) {
	if p.o.Logger != nil {
		_ = panics.Catch(func() error { p.o.Logger.Warn(text); return nil }) // a log must not end the loop
	}
}

// retryDelay is the first delay before a write is repeated; it doubles.
const retryDelay = 10 * time.Millisecond

// Save writes what is new. It writes nothing when the cluster has it all. Where
// not all fits and the ClusterVersion cannot be read, nothing is written: what
// must be kept is not known. A panic in Signatures or Recent is an error, and so
// is an attempt that takes more than 30 s.
func (p *Persister) Save(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := panics.Catch(func() error { return p.save(ctx) })
		if err == nil || p.o.Once || attempt >= p.o.Retries || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := reconcile.Sleep(reconcile.WithClock(ctx, p.o.Clock), retryDelay<<min(attempt, 10)); err != nil {
			return err
		}
	}
}

func (p *Persister) save(ctx context.Context) error {
	ctx, cancel := reconcile.WithTimeout(reconcile.WithClock(ctx, p.o.Clock), readTimeout)
	defer cancel()
	gvk := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	found := p.o.Signatures()
	old, err := p.o.API.Get(ctx, gvk, clusterapi.Key(ConfigMapNamespace, PersistedName))
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return err
	}
	if absent {
		old = &unstructured.Unstructured{Object: map[string]any{}}
		old.SetGroupVersionKind(gvk)
		old.SetNamespace(ConfigMapNamespace)
		old.SetName(PersistedName)
	}
	entries, _ := old.Object["binaryData"].(map[string]any)
	data, err := p.merge(ctx, found, entries)
	if err != nil || absent && len(data) == 0 || samePersisted(old, entries, data) {
		return err
	}
	setPersisted(old, data)
	if absent {
		_, err = p.o.API.Create(ctx, old, clusterapi.CreateOptions{})
	} else {
		_, err = p.o.API.Update(ctx, old, clusterapi.UpdateOptions{})
	}
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
	_, more := u.Object["data"]
	return !more && maps.Equal(u.GetLabels(), map[string]string{ConfigMapLabel: ""}) &&
		maps.EqualFunc(entries, data, func(entry any, text string) bool { return entry == text })
}

var (
	// mapKey is what a key of a ConfigMap may look like.
	mapKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
	// persistedKey is the key of a persisted signature: the digest's part and a
	// number.
	persistedKey = regexp.MustCompile(`^([-._a-zA-Z0-9]+)-[0-9]+$`)
)

// kept is what is known of one digest.
type kept struct {
	prefix    string // the digest, as keys have it
	fresh     bool   // it verified in this process
	data      map[string]string
	inHistory bool   // of the ClusterVersion
	rank      [3]int // the lower, the more it matters
}

func (k *kept) size() int {
	size := 0
	for key, value := range k.data {
		size += len(key) + len(value)
	}
	return size
}

// merge returns the new content, in base64: the signatures found, then
// those of other digests that the cluster has, within the limits. A digest is
// taken whole or not at all. Keys that hold no signature are dropped.
func (p *Persister) merge(ctx context.Context, found map[string][][]byte, old map[string]any) (map[string]string, error) {
	all := p.known(found, old)
	total := 0
	for _, k := range all {
		total += k.size()
	}
	if len(all) > p.o.MaxDigests || total > p.o.MaxBytes {
		if err := p.rank(ctx, all); err != nil {
			return nil, err
		}
	}
	out, size, digests := map[string]string{}, 0, 0
	for _, k := range all {
		if size+k.size() > p.o.MaxBytes || digests >= p.o.MaxDigests && !k.inHistory {
			continue
		}
		digests, size = digests+1, size+k.size()
		maps.Copy(out, k.data)
	}
	return out, nil
}

// known lists what was found, and then what else the cluster has, each in
// the order of the digests.
func (p *Persister) known(found map[string][][]byte, old map[string]any) []*kept {
	var all []*kept
	byPrefix := map[string]*kept{}
	for _, digest := range slices.Sorted(maps.Keys(found)) {
		prefix, err := signature.DigestKey(digest, "-")
		if err != nil || !mapKey.MatchString(prefix+"-0") || len(found[digest]) == 0 {
			continue // cannot be the key of a ConfigMap
		}
		k := &kept{prefix: prefix, fresh: true, data: map[string]string{}}
		for i, sig := range found[digest] {
			k.data[prefix+"-"+strconv.Itoa(i)] = base64.StdEncoding.EncodeToString(sig)
		}
		all, byPrefix[prefix] = append(all, k), k
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		m := persistedKey.FindStringSubmatch(key)
		text, _ := old[key].(string)
		if raw, err := base64.StdEncoding.DecodeString(text); m == nil || err != nil || len(raw) == 0 {
			continue
		}
		k := byPrefix[m[1]]
		if k == nil {
			k = &kept{prefix: m[1], data: map[string]string{}}
			all, byPrefix[m[1]] = append(all, k), k
		} else if k.fresh {
			continue // replaced by what verified
		}
		k.data[key] = text
	}
	return all
}

// rank sorts digests by how much they matter, the most important first.
func (p *Persister) rank(ctx context.Context, all []*kept) error {
	cv, err := readObject[configv1.ClusterVersion](ctx, p.o.API, "", clusterVersionName)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return fmt.Errorf("not all signatures fit, and the history that says which must stay cannot be read: %w", err)
	}
	history, recent := map[string]int{}, map[string]int{}
	note := func(in map[string]int, digest string) {
		if prefix, err := signature.DigestKey(digest, "-"); err == nil {
			if _, known := in[prefix]; !known {
				in[prefix] = len(in)
			}
		}
	}
	if err == nil {
		note(history, signature.Digest(cv.Status.Desired.Image))
		for _, entry := range cv.Status.History {
			note(history, signature.Digest(entry.Image))
		}
	}
	if p.o.Recent != nil {
		for _, digest := range p.o.Recent() {
			note(recent, digest)
		}
	}
	place := func(in map[string]int, prefix string) (at int, known bool) {
		if at, known = in[prefix]; !known {
			at = len(in)
		}
		return at, known
	}
	for _, k := range all {
		k.rank[0], k.inHistory = place(history, k.prefix)
		if !k.fresh {
			k.rank[1] = 1
		}
		k.rank[2], _ = place(recent, k.prefix)
	}
	slices.SortStableFunc(all, func(a, b *kept) int { return slices.Compare(a.rank[:], b.rank[:]) })
	return nil
}
