package memory

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

type scope int

const (
	scopeAny scope = iota // whatever an object says
	scopeNamespaced
	scopeCluster
)

// kind is what the cluster knows about one version of one kind.
type kind struct {
	gvk     schema.GroupVersionKind
	plural  string // empty: guessed
	scope   scope
	status  bool // has a status subresource
	counts  bool // has a generation
	builtin bool // unknown fields and nulls go, as a typed decoder drops them
	// types is the schema; nil if absent.
	types *typed.ParseableType
	// openAPI is the same schema as a definition has it, which says where null is
	// allowed; nil for kinds without a definition.
	openAPI map[string]any

	// What an API server checks and completes. goType is nil for kinds that
	// have none, custom and defaults for those without a definition.
	goType   *goType
	rules    rules
	custom   *customRules
	defaults *apiserver.Defaults

	// main and sub manage the fields of the object and of its status.
	main, sub *managedfields.FieldManager
}

// metadataType is the type of metadata.
var metadataType = sync.OnceValue(func() *goType { return goTypeOf(reflect.TypeFor[metav1.ObjectMeta]()) })

// prepare finds the rules of the kind and makes the field managers.
func (k *kind) prepare() {
	k.rules = rulesOf[k.gvk.GroupKind()]
	if t, ok := objects.TypeOf(k.gvk); ok && k.builtin {
		k.goType = goTypeOf(t)
	} else {
		k.goType = &goType{name: k.gvk.Kind, shape: object, fields: map[string]goField{"metadata": {of: metadataType()}}}
	}
	tc, plain := typeConverter{k.parseable()}, objectConverter{}
	gv := k.gvk.GroupVersion()
	newManager := managedfields.NewDefaultCRDFieldManager
	if k.builtin {
		newManager = managedfields.NewDefaultFieldManager
	}
	var err error
	k.main, err = newManager(tc, plain, plain, plain, k.gvk, gv, "", nil)
	if err != nil {
		panic(err) // only for a nil converter
	}
	k.sub, err = newManager(tc, plain, plain, plain, k.gvk, gv, "status", nil)
	if err != nil {
		panic(err)
	}
}

// resource names the kind in errors, as an API server does.
func (k *kind) resource() schema.GroupResource {
	if k.plural != "" {
		return schema.GroupResource{Group: k.gvk.Group, Resource: k.plural}
	}
	plural, _ := meta.UnsafeGuessKindToResource(k.gvk)
	return plural.GroupResource()
}

// kind finds what is known about a kind, or a NoMatch error.
func (c *Cluster) kind(gvk schema.GroupVersionKind) (*kind, error) {
	if gvk.Kind == "" || gvk.Version == "" {
		return nil, noMatch(gvk)
	}
	if k := builtin().kind(gvk); k != nil {
		return k, nil
	}
	c.mu.RLock()
	k, cached := c.kinds[gvk]
	def := c.crds[gvk.GroupKind()]
	if cached && (def == nil || def.established) {
		c.mu.RUnlock()
		return k, nil
	}
	inUse := c.tables[gvk.GroupKind()] != nil && c.tables[gvk.GroupKind()].count > 0 || c.fork.serves(gvk.GroupKind())
	if inUse && builtin().known[gvk.GroupKind()] {
		inUse = c.stores(gvk) // other versions of it are served, and convert
	}
	c.mu.RUnlock()

	switch {
	case def == nil:
		if !c.o.Lenient && !inUse && !servedWithoutSchema[gvk.GroupKind()] {
			return nil, noMatch(gvk)
		}
		k = otherKind(gvk)
	case !def.established && !inUse:
		return nil, noMatch(gvk)
	default:
		var err error
		k, err = def.kind(gvk)
		if err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crds[gvk.GroupKind()] == def { // else it has changed since
		c.kinds[gvk] = k
	}
	return k, nil
}

// stores reports whether an object is stored in just this version: one that was
// loaded. The lock is held.
func (c *Cluster) stores(gvk schema.GroupVersionKind) bool {
	found := false
	c.tables[gvk.GroupKind()].each("", func(_ types.NamespacedName, e *entry) bool {
		found = e.obj.GroupVersionKind() == gvk
		return !found
	})
	return found
}

// servedWithoutSchema are kinds of every API server that k8s.io/api lacks.
var servedWithoutSchema = map[schema.GroupKind]bool{
	definitionKind: true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: true,
}

// otherKind describes a kind without a schema. Most such kinds are custom
// resources whose definition nobody stored, so it behaves as these usually do.
func otherKind(gvk schema.GroupVersionKind) *kind {
	k := &kind{gvk: gvk, status: true, counts: true}
	if servedWithoutSchema[gvk.GroupKind()] {
		k.scope = scopeCluster
	}
	if t, ok := objects.TypeOf(gvk); ok {
		_, k.status = t.FieldByName("Status")
	}
	k.prepare()
	return k
}

func noMatch(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}
