package preconditions_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/signature"
)

// store is a signature store that has what it has, and fails if it fails.
type store struct {
	has  bool
	err  error
	asks *int
}

func (s store) Candidates(context.Context, string) iter.Seq2[signature.Candidate, error] {
	return func(yield func(signature.Candidate, error) bool) {
		if s.asks != nil {
			*s.asks++
		}
		if s.err != nil {
			yield(signature.Candidate{}, s.err)
		} else if s.has {
			yield(signature.Candidate{Signature: []byte("x")}, nil)
		}
	}
}

func TestDisconnected(t *testing.T) {
	stores := func(has bool, err error) func(*preconditions.Input) {
		return func(in *preconditions.Input) { in.Signatures = store{has: has, err: err} }
	}
	_, digest, _ := strings.Cut(targetImage, "@")
	kept := func(digest string) *corev1.ConfigMap {
		cm := configMap("openshift-config-managed", "mirrored", nil)
		cm.Labels = map[string]string{"release.openshift.io/verification-signatures": ""}
		cm.BinaryData = map[string][]byte{strings.Replace(digest, ":", "-", 1) + "-1": []byte("x")}
		return cm
	}
	idms := func(source string, mirrors ...configv1.ImageMirror) *configv1.ImageDigestMirrorSet {
		s := &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
		s.Spec.ImageDigestMirrors = []configv1.ImageDigestMirrors{{Source: source, Mirrors: mirrors}}
		return s
	}
	itms := &configv1.ImageTagMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	itms.Spec.ImageTagMirrors = []configv1.ImageTagMirrors{{Source: "quay.io", Mirrors: []configv1.ImageMirror{"m"}}}
	icsp := &operatorv1alpha1.ImageContentSourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	icsp.Spec.RepositoryDigestMirrors = []operatorv1alpha1.RepositoryDigestMirrors{{Source: "quay.io/ocp/release", Mirrors: []string{"m"}}}
	away := errors.New("no route to host")
	const blocked = "Failed\nBlocking SignatureNotAvailable: No signature of the target is in the cluster or in a store that can be reached, so the release will not verify: "
	const noMirror = "Warning NoMirror: No mirror is configured for the repository of the target, and no signature store can be reached: quay.io/ocp/release"
	cases := []checkCase{
		{name: "connected", input: stores(true, nil), want: "Passed"},
		{name: "no signature anywhere", input: stores(false, nil), want: blocked + digest},
		{name: "store says so", input: stores(false, fmt.Errorf("404: %w", signature.ErrNotFound)), want: blocked + digest},
		{name: "kept, connected", objects: []any{kept(digest)}, input: stores(false, nil), want: "Passed"},
		{name: "kept, mirrored, away", objects: []any{kept(digest), idms("quay.io/ocp/release", "m")}, input: stores(false, away), want: "Passed"},
		{name: "kept, not mirrored, away", objects: []any{kept(digest)}, input: stores(false, away), want: "Failed\n" + noMirror},
		{name: "another digest is kept, away", objects: []any{kept("sha256:" + strings.Repeat("3", 64)), idms("quay.io", "m")}, input: stores(false, away), want: blocked + digest + " (no route to host)"},
		{name: "nothing, away", input: stores(false, away), want: blocked + digest + " (no route to host)\n" + noMirror},
		{name: "no stores", want: "Unknown\nWarning NoSource: no source given for Signatures"},
		{name: "no stores, kept, mirrored", objects: []any{kept(digest), idms("quay.io/ocp", "m")}, want: "Passed"},
		{name: "no stores, kept, not mirrored", objects: []any{kept(digest)}, want: "Unknown\nWarning NoSource: no source given for Signatures"},
		{name: "mirrored by tags", objects: []any{kept(digest), itms}, input: stores(false, away), want: "Passed"},
		{name: "mirrored by a policy", objects: []any{kept(digest), icsp}, input: stores(false, away), want: "Passed"},
		{name: "mirrored by domain", objects: []any{kept(digest), idms("*.io", "m")}, input: stores(false, away), want: "Passed"},
		{name: "a sibling is mirrored", objects: []any{kept(digest), idms("quay.io/ocp/rel", "m"), itms.DeepCopy()}, input: stores(false, away), want: "Passed"},
		{name: "only a sibling is mirrored", objects: []any{kept(digest), idms("quay.io/ocp/rel", "m")}, input: stores(false, away), want: "Failed\n" + noMirror},
		{name: "without mirrors", objects: []any{kept(digest), idms("quay.io/ocp/release")}, input: stores(false, away), want: "Failed\n" + noMirror},
		{name: "mirrors not served", objects: []any{kept(digest)}, fail: map[string]error{"ImageDigestMirrorSet": noKind("ImageDigestMirrorSet"), "ImageTagMirrorSet": noKind("ImageTagMirrorSet"), "ImageContentSourcePolicy": noKind("ImageContentSourcePolicy")}, input: stores(false, away), want: "Failed\n" + noMirror},
		{name: "mirrors not known", objects: []any{kept(digest)}, fail: map[string]error{"ImageTagMirrorSet": errors.New("boom")}, input: stores(false, away), want: "Unknown\nWarning UnknownError: boom"},
		{name: "ConfigMaps not known", fail: map[string]error{"ConfigMap": clusterapi.ErrNotCollected}, input: stores(false, nil), want: "Unknown\nWarning NotCollected: ConfigMap: unable to list config maps in openshift-config-managed with label \"release.openshift.io/verification-signatures\": not collected in this recording"},
		{name: "ConfigMaps not known, and not needed", fail: map[string]error{"ConfigMap": clusterapi.ErrNotCollected}, input: stores(true, nil), want: "Passed"},
		{name: "no digest", target: "4.19.1@quay.io/ocp/release:4.19.1", input: stores(true, nil), want: "Unknown\nWarning TargetImageUnknown: the image of the target is not known by its digest: \"quay.io/ocp/release:4.19.1\""},
		{name: "no image", target: "4.19.1", input: stores(true, nil), want: "Unknown\nWarning TargetImageUnknown: the image of the target is not known"},
		{name: "what runs", target: "4.18.5@A", input: stores(false, nil), want: "Passed"},
	}
	for i := range cases {
		if cases[i].target == "" {
			cases[i].target = "4.19.1@" + targetImage
		}
	}
	runCases(t, checkNamed(t, "Disconnected"), cases)

	// Each store is asked once.
	asks := 0
	in := input(reader(t, clusterVersion("4.18.5@A")), clusterVersion("4.18.5@A"), "4.19.1@"+targetImage)
	in.Signatures = store{err: away, asks: &asks}
	if run(t, []preconditions.Check{checkNamed(t, "Disconnected")}, in); asks != 1 {
		t.Errorf("the store is asked %d times", asks)
	}
}

// A proxy between the cluster and an update service that does not answer.
func TestDisconnectedProxy(t *testing.T) {
	proxy := func(url, no string) *configv1.Proxy {
		p := &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		p.Status.HTTPSProxy, p.Status.NoProxy = url, no
		return p
	}
	const fault = "Failed\nWarning UpdateServiceNotReached: The update service at %s does not answer, which is asked through the proxy proxy.example:3128"
	failed := cond("RetrievedUpdates", "False", "RemoteFailed", "http://bob:secret@proxy.example:3128 refused")
	signed := func(in *preconditions.Input) { in.Signatures = store{has: true} }
	image := "4.19.1@" + targetImage
	runCases(t, checkNamed(t, "Disconnected"), []checkCase{
		{input: signed, target: image, name: "fails", edits: []cvEdit{failed}, objects: []any{proxy("http://bob:secret@proxy.example:3128", "")}, want: fmt.Sprintf(fault, "api.openshift.com")},
		{input: signed, target: image, name: "own service", edits: []cvEdit{failed, func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = "https://updates.example/graph" }}, objects: []any{proxy("http://proxy.example:3128", "")}, want: fmt.Sprintf(fault, "updates.example")},
		{input: signed, target: image, name: "reached directly", edits: []cvEdit{failed}, objects: []any{proxy("http://proxy.example:3128", ".openshift.com")}, want: "Passed"},
		{input: signed, target: image, name: "no proxy", edits: []cvEdit{failed}, objects: []any{proxy("", "")}, want: "Passed"},
		{input: signed, target: image, name: "no Proxy", edits: []cvEdit{failed}, want: "Passed"},
		{input: signed, target: image, name: "answers", edits: []cvEdit{cond("RetrievedUpdates", "True", "", "")}, objects: []any{proxy("http://proxy.example:3128", "")}, want: "Passed"},
		{input: signed, target: image, name: "another fault", edits: []cvEdit{cond("RetrievedUpdates", "False", "VersionNotFound", "")}, objects: []any{proxy("http://proxy.example:3128", "")}, want: "Passed"},
		{input: signed, target: image, name: "not a proxy", edits: []cvEdit{failed}, objects: []any{proxy("http://bob:secret@[", "")}, want: "Unknown\nWarning UnknownError: the cluster's proxy is not a valid URL"},
		{input: signed, target: image, name: "Proxy not known", edits: []cvEdit{failed}, fail: map[string]error{"Proxy": errors.New("boom")}, want: "Unknown\nWarning UnknownError: boom"},
	})
}
