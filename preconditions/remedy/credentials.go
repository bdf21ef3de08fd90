package remedy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// AnnotationPreparedFor marks what [Credentials] made, and CloudCredential cluster
// where it annotated that; its value is JSON with a format version.
const AnnotationPreparedFor = clusterapi.AnnotationPrefix + "prepared-for"

// Credentials prepares a cluster that maintains its cloud credentials by hand for a
// release; on others every action fails with [ErrNotManual]. The actions are asked for one by one: [Credentials.CreateNamespaces],
// [Credentials.CreateRequests], [Credentials.CreateSecrets], and in the end
// [Credentials.Annotate].
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
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, r, clusterapi.Key("", "version"))
	if err != nil {
		return nil, fmt.Errorf("cloud credentials: %w", err)
	}
	infrastructure, err := clusterapi.Read[configv1.Infrastructure](ctx, r, clusterapi.Key("", "cluster"))
	if err != nil {
		return nil, fmt.Errorf("cloud credentials: %w", err)
	}
	cloud, err := clusterapi.Read[operatorv1.CloudCredential](ctx, r, clusterapi.Key("", "cluster"))
	if err != nil {
		return nil, fmt.Errorf("cloud credentials: %w", err)
	}
	p := &CredentialsPlan{Annotation: c.Target.Release.Version, Annotated: cloud.Annotations[preconditions.AnnotationUpgradeableTo]}
	if s := infrastructure.Status.PlatformStatus; s != nil {
		p.Platform = s.Type
	}
	if p.Manual, err = preconditions.ManualCredentials(ctx, r, cloud); err != nil {
		return nil, fmt.Errorf("cloud credentials: %w", err)
	}
	filter := manifest.ClusterFilter(cv, nil, c.Current, c.Target)
	filter.Overrides = nil // as oc adm release extract --included selects
	if p.Requests, err = c.Target.CredentialsRequests(p.Platform, filter); err != nil {
		return nil, fmt.Errorf("cloud credentials: %w", err)
	}
	created := map[string]bool{}
	included, _ := c.Target.Included(filter)
	for _, m := range included {
		if id := m.Identity(); id.Group == "" && id.Kind == "Namespace" {
			created[id.Name] = true
		}
	}
	for _, q := range p.Requests {
		ref := q.Spec.SecretRef
		for _, o := range []struct {
			gvk     schema.GroupVersionKind
			key     types.NamespacedName
			missing func()
		}{
			{q.APIKind(), clusterapi.Key(q.Namespace, q.Name), func() { p.NewRequests = append(p.NewRequests, q) }},
			{namespaceKind, clusterapi.Key("", ref.Namespace), func() {
				if !created[ref.Namespace] && !slices.Contains(p.Namespaces, ref.Namespace) {
					p.Namespaces = append(p.Namespaces, ref.Namespace)
				}
			}},
			{secretKind, clusterapi.Key(ref.Namespace, ref.Name), func() { p.Secrets = append(p.Secrets, q) }},
		} {
			switch _, err := clusterapi.GetShared(ctx, r, o.gvk, o.key); {
			case apierrors.IsNotFound(err):
				o.missing()
			case err != nil:
				return nil, fmt.Errorf("cloud credentials: %w", err)
			}
		}
	}
	slices.Sort(p.Namespaces)
	return p, nil
}

var (
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
)

// Complete reports whether nothing is missing but the annotation.
func (p *CredentialsPlan) Complete() bool { return len(p.Namespaces)+len(p.Secrets) == 0 }

// Templates returns a Secret for each that is missing, with the keys that components
// read on this platform and placeholders in angle brackets for what is to be filled in.
func (p *CredentialsPlan) Templates() []*corev1.Secret {
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
	for _, s := range p.Templates() {
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
	var objects []*unstructured.Unstructured
	for _, name := range p.Namespaces {
		u, err := clusterapi.ToUnstructured(namespaceNamed(name))
		if err != nil {
			return nil, err
		}
		objects = append(objects, u)
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
	var objects []*unstructured.Unstructured
	for _, q := range p.NewRequests {
		objects = append(objects, q.Manifest.Object().DeepCopy())
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
	var objects []*unstructured.Unstructured
	for i, s := range p.Templates() {
		s.StringData, s.Data = nil, c.Data(p.Secrets[i])
		if empty(s.Data) {
			continue
		}
		u, err := clusterapi.ToUnstructured(s)
		if err != nil {
			return nil, err
		}
		objects = append(objects, u)
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
func (c Credentials) create(ctx context.Context, api clusterapi.ClusterAPI, objects []*unstructured.Unstructured) (names []string, err error) {
	for _, u := range objects {
		annotations := maps.Clone(u.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[AnnotationPreparedFor] = mark{For: c.Target.Release.Version}.String()
		u.SetAnnotations(annotations)
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

// IncompleteError says what is missing before a cluster may be called prepared. It is
// plain data.
type IncompleteError struct {
	Namespaces, Secrets []string
}

// Error names what is missing.
func (e *IncompleteError) Error() string {
	return "the cloud credentials are not complete: missing are the namespaces [" + strings.Join(e.Namespaces, ", ") + "] and the Secrets [" + strings.Join(e.Secrets, ", ") + "]"
}

// Annotate says on CloudCredential cluster that the cluster is prepared for the release,
// once nothing is missing any more. Errors are [ErrNotManual], those of Plan, an
// [*IncompleteError], and those of writing.
func (c Credentials) Annotate(ctx context.Context, api clusterapi.ClusterAPI) error {
	p, err := c.planManual(ctx, api)
	if err != nil {
		return err
	}
	if !p.Complete() {
		e := &IncompleteError{Namespaces: p.Namespaces}
		for _, q := range p.Secrets {
			e.Secrets = append(e.Secrets, q.Spec.SecretRef.Namespace+"/"+q.Spec.SecretRef.Name)
		}
		return e
	}
	return c.modify(ctx, api, func(o *operatorv1.CloudCredential) error {
		manual, err := preconditions.ManualCredentials(ctx, api, o) // as it is now
		if err != nil {
			return err
		}
		if !manual {
			return ErrNotManual
		}
		before, was := o.Annotations[preconditions.AnnotationUpgradeableTo]
		if before == p.Annotation {
			return nil
		}
		m := mark{For: c.Target.Release.Version, After: map[string]string{preconditions.AnnotationUpgradeableTo: p.Annotation}}
		if earlier, ok, err := readMark(o.Annotations, AnnotationPreparedFor); err != nil {
			return err
		} else if ok { // what was there before the first
			m.Before = earlier.Before
		} else if was {
			m.Before = map[string]string{preconditions.AnnotationUpgradeableTo: before}
		}
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[preconditions.AnnotationUpgradeableTo] = p.Annotation
		o.Annotations[AnnotationPreparedFor] = m.String()
		return nil
	})
}

func (c Credentials) modify(ctx context.Context, api clusterapi.ClusterAPI, f func(*operatorv1.CloudCredential) error) error {
	if _, err := clusterapi.Modify(ctx, api, clusterapi.Key("", "cluster"), clusterapi.ModifyOptions{}, f); err != nil {
		return fmt.Errorf("annotating CloudCredential cluster: %w", err)
	}
	return nil
}

// ErrInUse says that an update to the release has begun: its components read the
// credentials.
var ErrInUse = errors.New("the update has begun, and the credentials are in use")

// Undo takes back what was made for the release, as far as it still carries the mark:
// the annotation gets the value that it had, Secrets and CredentialsRequests are
// deleted, namespaces stay, since others may have put something there. Errors are
// [ErrInUse], and those of reading and writing.
func (c Credentials) Undo(ctx context.Context, api clusterapi.ClusterAPI) error {
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, api, clusterapi.Key("", "version"))
	if err != nil {
		return fmt.Errorf("cloud credentials: %w", err)
	}
	version := c.Target.Release.Version
	if slices.ContainsFunc(cv.Status.History, func(h configv1.UpdateHistory) bool { return h.Version == version }) {
		return fmt.Errorf("%s: %w", version, ErrInUse)
	}
	if err := c.restore(ctx, api); err != nil {
		return err
	}
	return c.marked(ctx, api, func(u *unstructured.Unstructured) error {
		if u.GetKind() == "Namespace" {
			return unmark(ctx, api, u)
		}
		err := api.Delete(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u), clusterapi.DeleteOptions{UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// restore gives the annotation the value that it had.
func (c Credentials) restore(ctx context.Context, api clusterapi.ClusterAPI) error {
	return c.modify(ctx, api, func(o *operatorv1.CloudCredential) error {
		m, ok, err := readMark(o.Annotations, AnnotationPreparedFor)
		if err != nil || !ok || m.For != c.Target.Release.Version {
			return err
		}
		delete(o.Annotations, AnnotationPreparedFor)
		if o.Annotations[preconditions.AnnotationUpgradeableTo] != m.After[preconditions.AnnotationUpgradeableTo] {
			return nil // somebody else's by now
		}
		if before, ok := m.Before[preconditions.AnnotationUpgradeableTo]; ok {
			o.Annotations[preconditions.AnnotationUpgradeableTo] = before
		} else {
			delete(o.Annotations, preconditions.AnnotationUpgradeableTo)
		}
		return nil
	})
}

// Uninstall removes the marks that were made for the release, and nothing else. Errors
// are those of reading and writing.
func (c Credentials) Uninstall(ctx context.Context, api clusterapi.ClusterAPI) error {
	err := c.modify(ctx, api, func(o *operatorv1.CloudCredential) error {
		m, ok, err := readMark(o.Annotations, AnnotationPreparedFor)
		if ok && m.For == c.Target.Release.Version {
			delete(o.Annotations, AnnotationPreparedFor)
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
	seen := map[string]bool{}
	look := func(gvk schema.GroupVersionKind, namespace, name string) {
		if id := gvk.Kind + " " + namespace + "/" + name; seen[id] {
			return
		} else {
			seen[id] = true
		}
		u, err := api.Get(ctx, gvk, clusterapi.Key(namespace, name))
		if apierrors.IsNotFound(err) {
			return
		}
		if err == nil {
			m, ok, fault := readMark(u.GetAnnotations(), AnnotationPreparedFor)
			if err = fault; ok && m.For == c.Target.Release.Version {
				err = f(u)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", gvk.Kind, strings.TrimPrefix(namespace+"/"+name, "/"), err))
		}
	}
	for _, q := range p.Requests {
		look(secretKind, q.Spec.SecretRef.Namespace, q.Spec.SecretRef.Name)
		look(q.APIKind(), q.Namespace, q.Name)
		look(namespaceKind, "", q.Spec.SecretRef.Namespace)
	}
	return errors.Join(errs...)
}

// unmark removes the mark of an object, on condition that it is as it was read.
func unmark(ctx context.Context, api clusterapi.ClusterAPI, u *unstructured.Unstructured) error {
	annotations := maps.Clone(u.GetAnnotations())
	delete(annotations, AnnotationPreparedFor)
	u.SetAnnotations(annotations)
	_, err := api.Update(ctx, u, clusterapi.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
