package preconditions

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func credentialsRequestsCheck() Check {
	return documented{Rule{
		Name: "CredentialsRequests", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster with manually maintained credentials, CredentialsRequests", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{
			gvkOf[configv1.Infrastructure](), gvkOf[operatorv1.CloudCredential](), gvkOf[corev1.ConfigMap](),
			gvkOf[configv1.ClusterVersion](), gvkOf[corev1.Namespace](), gvkOf[corev1.Secret](),
		},
		Needs: []string{"TargetPayload", "CurrentPayload"},
	}, credentialsRequests}
}

// credentialsRequests: in manual mode every Secret that the target's components read
// their cloud credentials from is there. Whether it allows what they need cannot be
// seen; what has changed since the current release is told.
func credentialsRequests(ctx context.Context, in *Input) ([]Finding, error) {
	s, err := readCredentialState(ctx, in)
	if err != nil {
		return nil, err
	}
	if !s.manual {
		return nil, &NotApplicableError{Why: "cloud credentials are not maintained by hand"}
	}
	if in.TargetPayload == nil {
		return nil, &NoSourceError{Source: "TargetPayload"}
	}
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	filter := manifest.ClusterFilter(cv, nil, in.CurrentPayload, in.TargetPayload)
	filter.Overrides = nil // as oc adm release extract --included selects
	requests, err := in.TargetPayload.CredentialsRequests(s.platform, filter)
	errs := []error{err}
	created := namespacesOf(in.TargetPayload, filter)
	var noNamespace, noSecret []Object
	for _, r := range requests {
		ref := r.Spec.SecretRef
		note := "for CredentialsRequest " + r.Namespace + "/" + r.Name
		if !created[ref.Namespace] {
			_, err := clusterapi.GetShared(ctx, in.Reader, gvkOf[corev1.Namespace](), clusterapi.Key("", ref.Namespace))
			if apierrors.IsNotFound(err) {
				noNamespace = append(noNamespace, Object{GVK: gvkOf[corev1.Namespace](), Name: ref.Namespace, Note: note})
			} else {
				errs = append(errs, err)
			}
		}
		there, err := in.hasSecret(ctx, ref.Namespace, ref.Name)
		if err == nil && !there {
			noSecret = append(noSecret, Object{GVK: gvkOf[corev1.Secret](), Namespace: ref.Namespace, Name: ref.Name, Note: note})
		}
		errs = append(errs, err)
	}
	var findings []Finding
	add := func(severity Severity, reason, meaning string, objects []Object, remedy string) {
		if len(objects) > 0 {
			sortObjects(objects)
			findings = append(findings, newFinding(severity, reason, meaning, objects, remedy))
		}
	}
	add(Blocking, "CredentialsNamespaceMissing", "Namespaces of cloud credentials that the target needs are missing", noNamespace, "Create each: oc create namespace NAME")
	add(Blocking, "CredentialsSecretMissing", "Secrets with cloud credentials that the target needs are missing", noSecret, "Create each with ccoctl, or by hand as its CredentialsRequest asks")
	if in.CurrentPayload == nil {
		errs = append(errs, &NoSourceError{Source: "CurrentPayload"})
	} else {
		changed, err := changedRequests(in.CurrentPayload, s.platform, filter, requests)
		errs = append(errs, err)
		add(Warning, "CredentialsPermissionsChanged", "Components of the target need other permissions than those of the current release", changed,
			"Bring the permissions in the cloud up to date")
	}
	return findings, joinErrors(errs...)
}

// namespacesOf are the Namespaces that a release creates itself.
func namespacesOf(p *manifest.Payload, f manifest.Filter) map[string]bool {
	included, _ := p.Included(f)
	names := map[string]bool{}
	for _, m := range included {
		if id := m.Identity(); id.Group == "" && id.Kind == "Namespace" {
			names[id.Name] = true
		}
	}
	return names
}

// changedRequests compares requests with those of the same name in the current
// release. A new one is not a change.
func changedRequests(current *manifest.Payload, platform configv1.PlatformType, f manifest.Filter, requests []*manifest.CredentialsRequest) ([]Object, error) {
	before, err := current.CredentialsRequests(platform, f)
	byName := make(map[string]*manifest.CredentialsRequest, len(before))
	for _, r := range before {
		byName[r.Namespace+"/"+r.Name] = r
	}
	var changed []Object
	for _, r := range requests {
		was := byName[r.Namespace+"/"+r.Name]
		if was == nil {
			continue
		}
		if lines := diffLines("", was.Spec.ProviderSpec, r.Spec.ProviderSpec); len(lines) > 0 {
			changed = append(changed, Object{GVK: r.APIKind(), Namespace: r.Namespace, Name: r.Name, FieldPath: "spec.providerSpec",
				Note: bounded.Join(lines, "; ", 4<<10)})
		}
	}
	return changed, err
}

// diffLines tells what was removed from a JSON value and what was added. The order of
// lists does not matter.
func diffLines(path string, before, after any) []string {
	if a, ok := before.(map[string]any); ok {
		if b, ok := after.(map[string]any); ok {
			keys := maps.Clone(a)
			maps.Copy(keys, b)
			var lines []string
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				lines = append(lines, diffLines(strings.TrimPrefix(path+"."+key, "."), a[key], b[key])...)
			}
			return lines
		}
	}
	a, listA := before.([]any)
	b, listB := after.([]any)
	if !listA || !listB {
		a, b = single(before), single(after)
	}
	var lines []string
	for _, text := range without(a, b) {
		lines = append(lines, "- "+path+": "+text)
	}
	for _, text := range without(b, a) {
		lines = append(lines, "+ "+path+": "+text)
	}
	return lines
}

func single(v any) []any {
	if v == nil {
		return nil
	}
	return []any{v}
}

// without returns the elements of a that are not in b, as JSON.
func without(a, b []any) []string {
	count := map[string]int{}
	for _, v := range b {
		count[jsonText(v)]++
	}
	var out []string
	for _, v := range a {
		text := jsonText(v)
		if count[text]--; count[text] < 0 {
			out = append(out, text)
		}
	}
	return out
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
