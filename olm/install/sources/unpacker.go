package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// UnpackerOptions are those of [NewUnpacker].
type UnpackerOptions struct {
	// Source has the images of bundles. Required.
	Source *image.Source
	// Tags allows bundles that are named by a tag, whose content nothing verifies.
	Tags bool
	// MaxFiles is the largest number of files of a bundle; 0: 1,000.
	MaxFiles int
	// MaxKept is how many bytes of files of bundles are kept in memory; 0: 64 MiB. The one
	// that was asked for last is always kept.
	MaxKept int64
	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
}

// The reasons of the *install.UnpackErrors that an [Unpacker] returns.
const (
	// ReasonUnreadable: the image cannot be read, or not in the time that the
	// OperatorGroup allows.
	ReasonUnreadable = "ImageUnreadable"
	// ReasonInvalid: the image is not the operator's bundle.
	ReasonInvalid = "BundleInvalid"
)

// maxFailures is how many failures an unpacker remembers.
const maxFailures = 1000

// Unpacker reads bundle images. It implements [install.Unpacker].
type Unpacker struct {
	o UnpackerOptions

	mu     sync.Mutex
	kept   []*bundle // the one that was asked for last at the end
	size   int64     // of kept
	failed map[string]failure
}

var _ install.Unpacker = (*Unpacker)(nil)

// bundle is one that was read.
type bundle struct {
	image, operator string // with digest
	objects         []*unstructured.Unstructured
	size            int64
}

// failure is an attempt's.
type failure struct {
	at  time.Time
	err *install.UnpackError
}

// NewUnpacker returns an unpacker that has read nothing. The error names an option that is
// missing or negative.
func NewUnpacker(o UnpackerOptions) (*Unpacker, error) {
	if o.Source == nil {
		return nil, errors.New("sources: UnpackerOptions.Source is required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.MaxFiles = cmp.Or(o.MaxFiles, 1000)
	o.MaxKept = cmp.Or(o.MaxKept, 64<<20)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Unpacker{o: o, failed: map[string]failure{}}, nil
}

// Unpack implements [install.Unpacker]. It reads the image at once, and returns when it has.
// A failure is the answer until r.Limits.Retry has passed. The objects are shared and must
// not be changed. An error is the context's, or an *install.UnpackError with one of the
// reasons of this package.
func (u *Unpacker) Unpack(ctx context.Context, r install.UnpackRequest) ([]*unstructured.Unstructured, error) {
	key := r.Lookup.Path + " " + r.Lookup.Identifier
	if err := u.failure(key, r.Limits.Retry); err != nil {
		return nil, err
	}
	within := ctx
	if r.Limits.Timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, r.Limits.Timeout)
		defer cancel()
	}
	objects, failed := u.unpack(within, r.Lookup.Path, r.Lookup.Identifier)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if failed == nil {
		return objects, nil
	}
	if within.Err() != nil {
		failed.Message = fmt.Sprintf("the image was not read within %v", r.Limits.Timeout)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.failed) >= maxFailures {
		clear(u.failed)
	}
	u.failed[key] = failure{u.o.Clock.Now(), failed}
	return nil, failed
}

// failure returns the last failure if it is not old enough for another attempt.
func (u *Unpacker) failure(key string, retry time.Duration) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	f, ok := u.failed[key]
	if !ok {
		return nil
	}
	age := u.o.Clock.Now().Sub(f.at)
	if age >= 0 && age < retry { // a clock that was set back proves nothing
		return f.err
	}
	delete(u.failed, key)
	return nil
}

// unpack returns the objects of an operator's bundle.
func (u *Unpacker) unpack(
	ctx context.Context, spec, operator string,
) ([]*unstructured.Unstructured, *install.UnpackError) {
	if u.o.Tags {
		var err error
		spec, err = u.o.Source.Resolve(ctx, spec)
		if err != nil {
			return nil, unpackError(ReasonUnreadable, err)
		}
	}
	_, digest, _ := strings.Cut(spec, "@")
	if b := u.find(digest, operator); b != nil {
		return b.objects, nil
	}
	i, err := u.o.Source.Image(ctx, spec)
	if err != nil {
		return nil, unpackError(ReasonUnreadable, err)
	}
	l, err := layoutOf(i.Labels)
	if err != nil {
		return nil, unpackError(ReasonInvalid, err)
	}
	files, err := i.Files(ctx, l.manifests, l.metadata)
	if err != nil {
		return nil, unpackError(ReasonUnreadable, err)
	}
	b := &bundle{image: digest, operator: operator}
	b.objects, b.size, err = readBundle(files, l, operator, u.o.MaxFiles)
	if err != nil {
		return nil, unpackError(ReasonInvalid, err)
	}
	u.keep(b)
	return b.objects, nil
}

func unpackError(reason string, err error) *install.UnpackError {
	return &install.UnpackError{Reason: reason, Message: bounded.Text(err.Error(), maxMessage)}
}

// find returns a bundle that is kept, nil if it is not.
func (u *Unpacker) find(digest, operator string) *bundle {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, b := range u.kept {
		if b.image == digest && b.operator == operator {
			u.kept = append(append(u.kept[:i:i], u.kept[i+1:]...), b)
			return b
		}
	}
	return nil
}

// keep keeps a bundle, and forgets those that nobody has asked for the longest.
func (u *Unpacker) keep(b *bundle) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.kept = append(u.kept, b)
	u.size += b.size
	for len(u.kept) > 1 && u.size > u.o.MaxKept {
		u.size -= u.kept[0].size
		u.kept[0] = nil
		u.kept = u.kept[1:]
	}
}
