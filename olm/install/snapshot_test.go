package install_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

func key(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func catalogsText(s *olm.Snapshot) []string {
	var out []string
	for _, c := range s.Catalogs {
		text := fmt.Sprintf("%s %d", c.Key, c.Priority)
		if c.Err != nil {
			text += ": " + c.Err.Error()
		}
		out = append(out, text)
	}
	return out
}

func TestReadSnapshot(t *testing.T) {
	api := memory.NewOpenShift(memory.Options{})
	load := func(objects ...any) {
		for _, o := range objects {
			u := checktest.Get(clusterapi.ToUnstructured(o))(t)
			checktest.OK(t, api.Load(u))
		}
	}
	source := func(name string, priority int) *olmapi.CatalogSource {
		k := key(name)
		return &olmapi.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Spec: olmapi.CatalogSourceSpec{Priority: priority}}
	}
	group := func(namespace, exclude string) *olmapi.OperatorGroup {
		g := &olmapi.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "og"}}
		if exclude != "" {
			g.Annotations = map[string]string{olmapi.AnnotationExcludeGlobal: exclude}
		}
		return g
	}
	elsewhere := sub("x", "")
	elsewhere.Namespace = "other"
	lonely := newCSV("lonely.v1")
	lonely.Namespace = "third"
	copied := newCSV("copy.v1", withAnnotation("olm.operatorNamespace", ns))
	copied.Namespace = "fourth"
	labelled := newCSV("copy.v2")
	labelled.Labels = map[string]string{"olm.copiedFrom": "x"}
	load(ptr(sub("b", "")), ptr(sub("a", "")), &elsewhere, ptr(newCSV("a.v1")), &labelled, &lonely, &copied,
		source("ops/own", -3), source("openshift-marketplace/global", 7), source("openshift-marketplace/sick", 0), source("other/theirs", 9),
		group(ns, "True"), group("other", "true"))
	c := contents("a.v1 X")
	read := 0
	o := install.SnapshotOptions{Catalogs: map[types.NamespacedName]olm.Catalog{
		key("ops/own"):                      counted{c, &read},
		key("openshift-marketplace/global"): counted{c, &read},
		key("openshift-marketplace/sick"):   counted{down{errors.New("down")}, &read},
		key("openshift-marketplace/disk"):   counted{c, &read},
	}}

	s, err := install.ReadSnapshot(context.Background(), api, ns, o)
	checktest.OK(t, err)
	expect(t, "catalogs", catalogsText(s), []string{"openshift-marketplace/disk 0", "openshift-marketplace/global 7", "openshift-marketplace/sick 0: down", "ops/own -3"})
	var names []string
	for _, x := range s.Subscriptions {
		names = append(names, x.Name)
	}
	for _, x := range s.Installed {
		names = append(names, x.Name)
	}
	expect(t, "objects", names, []string{"a", "b", "a.v1"})
	if s.GlobalNamespace != "openshift-marketplace" || len(s.OperatorGroups) != 1 {
		t.Errorf("global namespace %s, %d groups", s.GlobalNamespace, len(s.OperatorGroups))
	}

	// An OperatorGroup hides the global ones; a CatalogSource without contents
	// is unreadable.
	s, err = install.ReadSnapshot(context.Background(), api, "other", o)
	checktest.OK(t, err)
	expect(t, "catalogs", catalogsText(s), []string{"other/theirs 9: no registry client established for catalogsource other/theirs"})

	read = 0
	all := checktest.Get(install.ReadSnapshots(context.Background(), api, o))(t)
	names = nil
	for _, s := range all {
		names = append(names, fmt.Sprintf("%s %d %d %d", s.Namespace, len(s.Subscriptions), len(s.Installed), len(s.Catalogs)))
	}
	expect(t, "namespaces", names, []string{"ops 2 1 4", "other 1 0 1", "third 0 1 3"})
	checktest.Equal(t, 4, read, "catalogs were read")
	if _, err := install.ReadSnapshot(context.Background(), api, "", o); err == nil {
		t.Error("a snapshot of no namespace")
	}
}

// A catalog must have contents or an error.
func TestReadSnapshotOfNothing(t *testing.T) {
	api := memory.NewOpenShift(memory.Options{})
	s := checktest.Get(install.ReadSnapshot(context.Background(), api, ns, install.SnapshotOptions{
		GlobalNamespace: "olm", Catalogs: map[types.NamespacedName]olm.Catalog{catalogKey: down{}},
	}))(t)
	expect(t, "catalogs", catalogsText(s), []string{"olm/c 0: the catalog has no contents"})
}

type counted struct {
	olm.Catalog
	n *int
}

func (c counted) Contents(ctx context.Context) (*olm.Contents, error) {
	*c.n++
	return c.Catalog.Contents(ctx)
}

// recording lacks some kinds.
type recording struct {
	clusterapi.Reader
	lacks string
}

func (r recording) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if strings.Contains(r.lacks, gvk.Kind) {
		return nil, clusterapi.ErrNotCollected
	}
	return r.Reader.List(ctx, gvk, o)
}

// A recording without CatalogSources can be planned against a catalog on disk;
// without other kinds nothing is known.
func TestReadSnapshotOfRecording(t *testing.T) {
	api := memory.NewOpenShift(memory.Options{})
	catalogs := install.SnapshotOptions{Catalogs: map[types.NamespacedName]olm.Catalog{key("openshift-marketplace/c"): contents("a.v1 X")}}
	for _, tc := range []struct {
		lacks string
		o     install.SnapshotOptions
		want  string
	}{
		{"CatalogSource", catalogs, ""},
		{"CatalogSource", install.SnapshotOptions{}, "catalogsources: "},
		{"Subscription", catalogs, "subscriptions: "},
		{"ClusterServiceVersion", catalogs, "clusterserviceversions: "},
		{"OperatorGroup", catalogs, "operatorgroups: "},
	} {
		s, err := install.ReadSnapshot(context.Background(), recording{api, tc.lacks}, ns, tc.o)
		if tc.want == "" {
			if err != nil || len(s.Catalogs) != 1 || s.Catalogs[0].Err != nil {
				t.Errorf("without %s: %v", tc.lacks, err)
			}
			continue
		}
		if !errors.Is(err, clusterapi.ErrNotCollected) || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("without %s: %v", tc.lacks, err)
		}
	}
}

func TestReadSnapshotCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	api := memory.NewOpenShift(memory.Options{})
	o := install.SnapshotOptions{Catalogs: map[types.NamespacedName]olm.Catalog{key("openshift-marketplace/c"): cancelling{cancel}}}
	if _, err := install.ReadSnapshot(ctx, api, ns, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type cancelling struct{ cancel func() }

func (c cancelling) Contents(ctx context.Context) (*olm.Contents, error) {
	c.cancel()
	return nil, ctx.Err()
}

// The kinds are those of OLM.
func TestKinds(t *testing.T) {
	got := map[string]string{}
	for _, k := range []clusterapi.Kinder{&olmapi.Subscription{}, &olmapi.ClusterServiceVersion{}, &olmapi.CatalogSource{}, &olmapi.OperatorGroup{}, &olmapi.InstallPlan{}} {
		gvk := k.APIKind()
		got[gvk.Kind] = gvk.GroupVersion().String()
	}
	want := map[string]string{
		"Subscription": "operators.coreos.com/v1alpha1", "ClusterServiceVersion": "operators.coreos.com/v1alpha1",
		"CatalogSource": "operators.coreos.com/v1alpha1", "InstallPlan": "operators.coreos.com/v1alpha1", "OperatorGroup": "operators.coreos.com/v1",
	}
	checktest.Same(t, want, got)
}
