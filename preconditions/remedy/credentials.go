package remedy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/operators"
)

// annotationPreparedFor marks what [Credentials] made, and CloudCredential cluster
// where it annotated that; its value is JSON with a format version.
const annotationPreparedFor = clusterapi.AnnotationPrefix + "prepared-for"

// Credentials prepares a cluster that maintains its cloud credentials by hand for a
// release; on others every action fails with [ErrNotManual]. The actions are
// asked for one by one: [Credentials.CreateNamespaces], [Credentials.CreateRequests],
// [Credentials.CreateSecrets], and in the end [Credentials.Annotate].
type Credentials struct {
	// Target is the release to update to; required.
	Target *manifest.Payload
	// Current is the release that the cluster runs. Nil: capabilities that the
	// target enables implicitly are not known.
	Current *manifest.Payload
	// Data returns what a Secret has to hold, which ccoctl or an administrator
	// has made. Nil, and where it returns nothing: the Secret is not created.
	Data func(*manifest.CredentialsRequest) map[string][]byte
}

// CredentialsPlan is what a cluster lacks for a release. It is plain data.
type CredentialsPlan struct {
	Platform configv1.PlatformType
	// Manual reports that the cluster maintains its cloud credentials by hand.
	Manual bool
	// Requests are all of the release for this cluster, in its order.
	Requests []*manifest.CredentialsRequest
	// NewRequests are those that the cluster does not have.
	NewRequests []*manifest.CredentialsRequest
	// Namespaces are to be created, sorted: those of Secrets that neither the
	// cluster nor the release has.
	Namespaces []string
	// Secrets are the requests whose Secret is missing, in the order of Requests.
	Secrets []*manifest.CredentialsRequest
	// Annotation is what upgradeable-to is to say, and Annotated what it says.
	Annotation, Annotated string
}

// Plan reads what the cluster has; it writes nothing. Errors are those of the reads
// and of the release's requests.
func (c Credentials) Plan(ctx context.Context, r clusterapi.Reader) (*CredentialsPlan, error) {
	if c.Target == nil {
		return nil, errors.New("cloud credentials: the release to update to is not given")
	}
	p := &CredentialsPlan{Annotation: c.Target.Release.Version}
	if err := p.read(ctx, r, c); err != nil {
		return nil, fmt.Errorf("cloud credentials: %w", err)
	}
	return p, nil
}

func (p *CredentialsPlan) read(ctx context.Context, r clusterapi.Reader, c Credentials) error {
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, r, clusterapi.Key("", "version"))
	if err != nil {
		return err
	}
	infrastructure, err := clusterapi.Read[configv1.Infrastructure](ctx, r, clusterapi.Key("", "cluster"))
	if err != nil {
		return err
	}
	if s := infrastructure.Status.PlatformStatus; s != nil {
		p.Platform = s.Type
	}
	cloud, err := clusterapi.Read[operatorv1.CloudCredential](ctx, r, clusterapi.Key("", "cluster"))
	if err != nil {
		return err
	}
	p.Annotated = cloud.Annotations[operators.AnnotationUpgradeableTo]
	if p.Manual, err = operators.ManualCredentials(ctx, r, cloud); err != nil {
		return err
	}
	requests, err := operators.RequestsOf(cv, c.Current, c.Target, p.Platform)
	if err != nil {
		return err
	}
	p.Requests = requests.All
	missing, newErrs := requests.Missing(ctx, r, requestKind)
	p.NewRequests = missing
	noNamespace, namespaceErrs := requests.Missing(ctx, r, operators.NamespaceKind)
	for _, q := range noNamespace {
		p.Namespaces = append(p.Namespaces, q.Spec.SecretRef.Namespace)
	}
	slices.Sort(p.Namespaces)
	p.Namespaces = slices.Compact(p.Namespaces)
	noSecret, secretErrs := requests.Missing(ctx, r, operators.SecretKind)
	p.Secrets = noSecret
	return errors.Join(slices.Concat(newErrs, namespaceErrs, secretErrs)...)
}

var requestKind = new(manifest.CredentialsRequest).APIKind()

// Complete reports whether nothing is missing but the annotation.
func (p *CredentialsPlan) Complete() bool { return len(p.Namespaces)+len(p.Secrets) == 0 }

// templates returns a Secret for each that is missing, with the keys that components
// read on this platform and placeholders in angle brackets for what is to be filled in.
func (p *CredentialsPlan) templates() []*corev1.Secret {
	var out []*corev1.Secret
	for _, q := range p.Secrets {
		s := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Type: corev1.SecretTypeOpaque}
		s.Namespace, s.Name = q.Spec.SecretRef.Namespace, q.Spec.SecretRef.Name
		s.StringData = map[string]string{}
		for _, key := range secretKeys(p.Platform) {
			s.StringData[key] = "<" + key + ">"
		}
		out = append(out, s)
	}
	return out
}

// secretKeys are what the components of a platform read their credentials from.
func secretKeys(platform configv1.PlatformType) []string {
	switch platform {
	case configv1.AWSPlatformType:
		return []string{"aws_access_key_id", "aws_secret_access_key", "credentials"}
	case configv1.AzurePlatformType:
		return []string{"azure_client_id", "azure_client_secret", "azure_region", "azure_resource_prefix", "azure_resourcegroup", "azure_subscription_id", "azure_tenant_id"}
	case configv1.GCPPlatformType:
		return []string{"service_account.json"}
	case configv1.IBMCloudPlatformType, configv1.PowerVSPlatformType:
		return []string{"ibm-credentials.env", "ibmcloud_api_key"}
	case configv1.NutanixPlatformType:
		return []string{"credentials"}
	case configv1.OpenStackPlatformType:
		return []string{"clouds.yaml"}
	case configv1.VSpherePlatformType:
		return []string{"VCENTER.password", "VCENTER.username"}
	}
	return nil
}

// WriteManifests writes the requests of the release, the namespaces that are missing and
// templates of the Secrets, as YAML documents: what oc adm release extract writes, and
// what is to be created. It returns the error of w, or of a request that cannot be
// written.
func (p *CredentialsPlan) WriteManifests(w io.Writer) error {
	var objects []any
	for _, q := range p.Requests {
		objects = append(objects, q.Manifest.Object().Object)
	}
	for _, name := range p.Namespaces {
		objects = append(objects, namespaceNamed(name))
	}
	for _, s := range p.templates() {
		objects = append(objects, s)
	}
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// ErrNotManual is the error of an action on a cluster whose cloud credentials the cloud
// credential operator maintains. It acts on requests itself, and the annotation would
// hide that it lacks the administrator's credentials.
var ErrNotManual = errors.New("the cluster does not maintain its cloud credentials by hand")

// planManual is Plan for the actions.
func (c Credentials) planManual(ctx context.Context, r clusterapi.Reader) (*CredentialsPlan, error) {
	p, err := c.Plan(ctx, r)
	if err == nil && !p.Manual {
		err = ErrNotManual
	}
	return p, err
}

// CreateNamespaces creates the namespaces that are missing, and returns their names.
// Errors are [ErrNotManual], those of Plan and of writing.
func (c Credentials) CreateNamespaces(ctx context.Context, api clusterapi.ClusterAPI) ([]string, error) {
	p, err := c.planManual(ctx, api)
	if err != nil {
		return nil, err
	}
	var objects []any
	for _, name := range p.Namespaces {
		objects = append(objects, namespaceNamed(name))
	}
	return c.create(ctx, api, objects)
}

// CreateRequests creates the CredentialsRequests that are missing, and returns their
// names. In manual mode nothing acts on them. Errors are [ErrNotManual], and those of Plan
// and of writing.
func (c Credentials) CreateRequests(ctx context.Context, api clusterapi.ClusterAPI) ([]string, error) {
	p, err := c.planManual(ctx, api)
	if err != nil {
		return nil, err
	}
	var objects []any
	for _, q := range p.NewRequests {
		objects = append(objects, q.Manifest.Object())
	}
	return c.create(ctx, api, objects)
}

// CreateSecrets creates the Secrets that are missing and that c.Data has data for, and
// returns their names. One that exists is never changed. Errors are those of Plan and
// of writing.
func (c Credentials) CreateSecrets(ctx context.Context, api clusterapi.ClusterAPI) ([]string, error) {
	p, err := c.planManual(ctx, api)
	if err != nil || c.Data == nil {
		return nil, err
	}
	var objects []any
	for i, s := range p.templates() {
		s.StringData, s.Data = nil, c.Data(p.Secrets[i])
		if !empty(s.Data) {
			objects = append(objects, s)
		}
	}
	return c.create(ctx, api, objects)
}

// empty reports whether a Secret would hold nothing: its presence alone would hide that
// the credentials are missing.
func empty(data map[string][]byte) bool {
	for _, value := range data {
		if len(value) > 0 {
			return false
		}
	}
	return true
}

// create creates objects that nobody else has created meanwhile, each with the mark.
func (c Credentials) create(ctx context.Context, api clusterapi.ClusterAPI, objects []any) (names []string, err error) {
	for _, o := range objects {
		u, err := clusterapi.ToUnstructured(o)
		if err != nil {
			return names, err
		}
		mark{For: c.Target.Release.Version}.put(u, annotationPreparedFor)
		switch _, err := api.Create(ctx, u, clusterapi.CreateOptions{}); {
		case apierrors.IsAlreadyExists(err):
		case err != nil:
			return names, fmt.Errorf("creating %s %s: %w", u.GetKind(), fullName(u), err)
		default:
			names = append(names, fullName(u))
		}
	}
	return names, nil
}

func fullName(u *unstructured.Unstructured) string {
	return strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

// Annotate says on CloudCredential cluster that the cluster is prepared for the release,
// once nothing is missing any more. Errors are [ErrNotManual], those of Plan, an
// [*BlockedError] that names what is missing, and those of writing.
func (c Credentials) Annotate(ctx context.Context, api clusterapi.ClusterAPI) error {
	p, err := c.planManual(ctx, api)
	if err != nil {
		return err
	}
	if !p.Complete() {
		var secrets []string
		for _, q := range p.Secrets {
			secrets = append(secrets, q.Spec.SecretRef.Namespace+"/"+q.Spec.SecretRef.Name)
		}
		return &BlockedError{Summary: "the cloud credentials are not complete: missing are the namespaces [" +
			strings.Join(p.Namespaces, ", ") + "] and the Secrets [" + strings.Join(secrets, ", ") + "]"}
	}
	return c.modify(ctx, api, func(o *operatorv1.CloudCredential) error {
		manual, err := operators.ManualCredentials(ctx, api, o) // as it is now
		if err != nil {
			return err
		}
		if !manual {
			return ErrNotManual
		}
		before, was := o.Annotations[operators.AnnotationUpgradeableTo]
		if before == p.Annotation {
			return nil
		}
		m := mark{For: c.Target.Release.Version, After: map[string]string{operators.AnnotationUpgradeableTo: p.Annotation}}
		if was {
			m.Before = map[string]string{operators.AnnotationUpgradeableTo: before}
		}
		annotate(o, operators.AnnotationUpgradeableTo, p.Annotation)
		return m.putAgain(o, annotationPreparedFor)
	})
}

func (c Credentials) modify(ctx context.Context, api clusterapi.ClusterAPI, f func(*operatorv1.CloudCredential) error) error {
	_, err := clusterapi.Modify(ctx, api, clusterapi.Key("", "cluster"), clusterapi.ModifyOptions{}, f)
	return wrap("annotating CloudCredential cluster", err)
}

// Undo takes back what was made for the release, as far as it still carries the mark:
// the annotation gets the value that it had, Secrets and CredentialsRequests are
// deleted, namespaces stay, since others may have put something there. Errors are
// [ErrBegun], and those of reading and writing.
func (c Credentials) Undo(ctx context.Context, api clusterapi.ClusterAPI) error {
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, api, clusterapi.Key("", "version"))
	if err != nil {
		return fmt.Errorf("cloud credentials: %w", err)
	}
	version := c.Target.Release.Version
	if slices.ContainsFunc(cv.Status.History, func(h configv1.UpdateHistory) bool { return h.Version == version }) {
		return fmt.Errorf("the update to %s has begun, and the credentials are in use: %w", version, ErrBegun)
	}
	if err := c.restore(ctx, api); err != nil {
		return err
	}
	return c.marked(ctx, api, func(u *unstructured.Unstructured) error {
		if u.GetKind() == "Namespace" {
			return unmark(ctx, api, u)
		}
		return api.Delete(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u), clusterapi.DeleteOptions{UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()})
	})
}

// restore gives the annotation the value that it had.
func (c Credentials) restore(ctx context.Context, api clusterapi.ClusterAPI) error {
	return c.modify(ctx, api, func(o *operatorv1.CloudCredential) error {
		if ours, err := c.marks(o); err != nil || !ours {
			return err
		}
		return takeBack(o, annotationPreparedFor, o.Annotations, func(before map[string]string) error {
			if value, ok := before[operators.AnnotationUpgradeableTo]; ok {
				annotate(o, operators.AnnotationUpgradeableTo, value)
			} else {
				unannotate(o, operators.AnnotationUpgradeableTo)
			}
			return nil
		})
	})
}

// marks reports whether an object has the mark of the release.
func (c Credentials) marks(o metav1.Object) (bool, error) {
	m, ok, err := readMark(o, annotationPreparedFor)
	return ok && m.For == c.Target.Release.Version, err
}

// Uninstall removes the marks that were made for the release, and nothing else. Errors
// are those of reading and writing.
func (c Credentials) Uninstall(ctx context.Context, api clusterapi.ClusterAPI) error {
	err := c.modify(ctx, api, func(o *operatorv1.CloudCredential) error {
		ours, err := c.marks(o)
		if ours {
			unannotate(o, annotationPreparedFor)
		}
		return err
	})
	return errors.Join(err, c.marked(ctx, api, func(u *unstructured.Unstructured) error { return unmark(ctx, api, u) }))
}

// marked calls f for what the release needs and carries its mark.
func (c Credentials) marked(ctx context.Context, api clusterapi.ClusterAPI, f func(*unstructured.Unstructured) error) error {
	p, err := c.planManual(ctx, api)
	if err != nil {
		return err
	}
	var errs []error
	type id struct {
		gvk schema.GroupVersionKind
		key types.NamespacedName
	}
	seen := map[id]bool{}
	for _, q := range p.Requests {
		for _, gvk := range []schema.GroupVersionKind{operators.SecretKind, requestKind, operators.NamespaceKind} {
			at := id{gvk, operators.ObjectOf(q, gvk)}
			if seen[at] {
				continue
			}
			seen[at] = true
			if err := c.ifMarked(ctx, api, gvk, at.key, f); err != nil {
				errs = append(errs, fmt.Errorf("%s %s: %w", gvk.Kind, strings.TrimPrefix(at.key.String(), "/"), err))
			}
		}
	}
	return errors.Join(errs...)
}

// ifMarked calls f for an object if it is there and carries the mark.
func (c Credentials) ifMarked(ctx context.Context, r clusterapi.Reader, gvk schema.GroupVersionKind, key types.NamespacedName, f func(*unstructured.Unstructured) error) error {
	u, err := r.Get(ctx, gvk, key)
	if err != nil {
		return ignoreNotFound(err)
	}
	ours, err := c.marks(u)
	if err != nil || !ours {
		return err
	}
	return ignoreNotFound(f(u))
}

// unmark removes the mark of an object, on condition that it is as it was read.
func unmark(ctx context.Context, api clusterapi.ClusterAPI, u *unstructured.Unstructured) error {
	unannotate(u, annotationPreparedFor)
	_, err := api.Update(ctx, u, clusterapi.UpdateOptions{})
	return err
}

// ignoreNotFound is the error unless it is that an object is not there.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// wrap puts what was done before an error, if there is one.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
