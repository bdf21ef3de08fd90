package remedy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/operators"
)

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
	// Data returns what a Secret has to hold, which ccoctl or an administrator has
	// made. Nil, and if it returns nothing: the Secret is not created.
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
	p.Manual, err = operators.ManualCredentials(ctx, r, cloud)
	if err != nil {
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
	return c.create(ctx, api, func(p *CredentialsPlan) (objects []any) {
		for _, name := range p.Namespaces {
			objects = append(objects, &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return objects
	})
}

// CreateRequests creates the CredentialsRequests that are missing, and returns their
// names. In manual mode nothing acts on them. Errors are [ErrNotManual], and those of Plan
// and of writing.
func (c Credentials) CreateRequests(ctx context.Context, api clusterapi.ClusterAPI) ([]string, error) {
	return c.create(ctx, api, func(p *CredentialsPlan) (objects []any) {
		for _, q := range p.NewRequests {
			objects = append(objects, q.Manifest.Object())
		}
		return objects
	})
}

// CreateSecrets creates the Secrets that are missing and that c.Data has data for, and
// returns their names. One that exists is never changed. Errors are [ErrNotManual], those
// of Plan and of writing.
func (c Credentials) CreateSecrets(ctx context.Context, api clusterapi.ClusterAPI) ([]string, error) {
	return c.create(ctx, api, func(p *CredentialsPlan) (objects []any) {
		if c.Data == nil {
			return nil
		}
		for _, q := range p.Secrets {
			s := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Type: corev1.SecretTypeOpaque, Data: c.Data(q)}
			s.Namespace, s.Name = q.Spec.SecretRef.Namespace, q.Spec.SecretRef.Name
			if !empty(s.Data) {
				objects = append(objects, s)
			}
		}
		return objects
	})
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

// create creates objects of a plan that nobody else has created meanwhile.
func (c Credentials) create(ctx context.Context, api clusterapi.ClusterAPI, of func(*CredentialsPlan) []any) (names []string, err error) {
	p, err := c.planManual(ctx, api)
	if err != nil {
		return nil, err
	}
	for _, o := range of(p) {
		u, err := clusterapi.ToUnstructured(o)
		if err != nil {
			return names, err
		}
		name := strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
		switch _, err := api.Create(ctx, u, clusterapi.CreateOptions{}); {
		case apierrors.IsAlreadyExists(err):
		case err != nil:
			return names, fmt.Errorf("creating %s %s: %w", u.GetKind(), name, err)
		default:
			names = append(names, name)
		}
	}
	return names, nil
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
	_, err = clusterapi.Modify(ctx, api, clusterapi.Key("", "cluster"), clusterapi.ModifyOptions{}, func(o *operatorv1.CloudCredential) error {
		manual, err := operators.ManualCredentials(ctx, api, o) // as it is now
		if err != nil {
			return err
		}
		if !manual {
			return ErrNotManual
		}
		annotate(o, operators.AnnotationUpgradeableTo, p.Annotation)
		return nil
	})
	return wrap("annotating CloudCredential cluster", err)
}

// annotate sets an annotation of an object.
func annotate(o metav1.Object, name, value string) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	o.SetAnnotations(annotations)
}

// wrap puts what was done before an error, if there is one.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
