package memory

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// rules are what an API server checks of one kind beyond its types.
type rules struct {
	// name describes what is wrong with a name; nil means a DNS subdomain.
	name func(name string, prefix bool) []string
	// valid judges the object, without its metadata.
	valid func(node)
	// update judges what became of the stored object.
	update func(old, new node)
}

// rulesOf has the rules by kind, in any version.
var rulesOf = map[schema.GroupKind]rules{
	{Kind: "Namespace"}:             {name: apivalidation.NameIsDNSLabel},
	{Kind: "ConfigMap"}:             {valid: validConfigMap, update: updatedConfigMap},
	{Kind: "Secret"}:                {valid: validSecret, update: updatedSecret},
	{Kind: "Service"}:               {name: apivalidation.NameIsDNSLabel, valid: validService, update: updatedService},
	{Kind: "Pod"}:                   {valid: func(n node) { n.get("spec").pod() }, update: updatedPod},
	{Kind: "Node"}:                  {valid: validNode, update: updatedNode},
	{Kind: "PersistentVolumeClaim"}: {valid: validClaim},
	{Kind: "ReplicationController"}: {valid: func(n node) { n.get("spec").notNegative("replicas", "minReadySeconds") }},

	{Group: "apps", Kind: "Deployment"}:  {valid: validDeployment, update: sameSelector},
	{Group: "apps", Kind: "DaemonSet"}:   {valid: validDaemonSet, update: sameSelector},
	{Group: "apps", Kind: "ReplicaSet"}:  {valid: validReplicaSet, update: sameSelector},
	{Group: "apps", Kind: "StatefulSet"}: {name: apivalidation.NameIsDNSLabel, valid: validStatefulSet, update: updatedStatefulSet},

	{Group: "batch", Kind: "Job"}:     {valid: func(n node) { n.get("spec").job() }, update: updatedJob},
	{Group: "batch", Kind: "CronJob"}: {valid: validCronJob},

	{Group: "policy", Kind: "PodDisruptionBudget"}: {valid: validBudget},

	{Group: rbacGroup, Kind: "Role"}:               {name: segment, valid: func(n node) { validRole(n, true) }},
	{Group: rbacGroup, Kind: "ClusterRole"}:        {name: segment, valid: func(n node) { validRole(n, false) }},
	{Group: rbacGroup, Kind: "RoleBinding"}:        {name: segment, valid: func(n node) { validBinding(n, true) }, update: updatedBinding},
	{Group: rbacGroup, Kind: "ClusterRoleBinding"}: {name: segment, valid: func(n node) { validBinding(n, false) }, update: updatedBinding},

	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {valid: validWebhooks},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {valid: validWebhooks},

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: {valid: validPriorityClass, update: updatedPriorityClass},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:     {valid: validStorageClass, update: updatedStorageClass},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: {valid: validNetworkPolicy},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}: {
		valid:  func(n node) { n.get("handler").label() },
		update: func(old, n node) { immutable(old, n, "handler") },
	},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}: {valid: validFlowSchema},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: {
		name:  segment,
		valid: func(n node) { n.get("spec", "type").needsOneOf("Exempt", "Limited") },
	},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: {name: segment},

	definitionKind: {valid: validDefinition, update: updatedDefinition},
}

// judge explains why the API server would refuse to store obj in place of old (nil
// for none). Fields that were stored already are not judged: it may have come from
// Load. subresource is the one that is written.
func (k *kind) judge(old, obj *unstructured.Unstructured, statusOnly bool) error {
	var errs field.ErrorList
	if !statusOnly {
		errs = k.judgeMetadata(old, obj)
	}
	r := k.rules
	if r.valid != nil && (old == nil || !sameButMetadata(old.Object, obj.Object)) {
		found := collect(r.valid, obj)
		if len(found) > 0 && old != nil {
			found = without(found, collect(r.valid, old))
		}
		errs = append(errs, found...)
	}
	if r.update != nil && old != nil && !statusOnly {
		n := root(obj)
		r.update(root(old), n)
		if len(*n.errs) > 0 && !sameMeaning(r.update, old, obj) {
			errs = append(errs, *n.errs...)
		}
	}
	if k.custom != nil {
		errs = append(errs, k.custom.judge(old, obj)...)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), errs)
}

// sameMeaning reports that an update changes nothing that must not change once the
// defaults are written out on both sides: a server compares what it has decoded.
func sameMeaning(update func(old, n node), old, obj *unstructured.Unstructured) bool {
	n := root(meaningOf(obj))
	update(root(meaningOf(old)), n)
	return len(*n.errs) == 0
}

func meaningOf(obj *unstructured.Unstructured) *unstructured.Unstructured {
	content, _ := withoutEmpty(apiserver.Fill(obj).Object).(map[string]any)
	return &unstructured.Unstructured{Object: content}
}

// withoutEmpty returns a copy of a value without the empty maps and lists in
// it. What is left of an empty one is empty.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			e = withoutEmpty(e)
			switch e := e.(type) {
			case map[string]any:
				if len(e) == 0 {
					continue
				}
			case []any:
				if len(e) == 0 {
					continue
				}
			}
			out[key] = e
		}
		return out
	case []any:
		out := make([]any, len(v)) // elements keep their places
		for i := range v {
			out[i] = withoutEmpty(v[i])
		}
		return out
	}
	return v
}

func sameButMetadata(a, b map[string]any) bool {
	for _, m := range []map[string]any{a, b} {
		for name := range m {
			if name != "metadata" && !objects.Equal(a[name], b[name]) {
				return false
			}
		}
	}
	return true
}

func collect(valid func(node), obj *unstructured.Unstructured) field.ErrorList {
	n := root(obj)
	valid(n)
	return *n.errs
}

var index = regexp.MustCompile(`\[\d+\]`)

// without returns the errors that known lacks. The index of an element of a list does
// not count.
func without(errs, known field.ErrorList) field.ErrorList {
	if len(known) == 0 {
		return errs
	}
	key := func(e *field.Error) string {
		return string(e.Type) + "\x00" + index.ReplaceAllString(e.Field, "[]") + "\x00" + e.Detail + "\x00" + fmt.Sprint(e.BadValue)
	}
	seen := make(map[string]bool, len(known))
	for _, e := range known {
		seen[key(e)] = true
	}
	return slices.DeleteFunc(errs, func(e *field.Error) bool { return seen[key(e)] })
}

// node is one place in an object.
type node struct {
	v    any
	errs *field.ErrorList
	// Where it is: below a path, nil for the whole object, the first few of
	// names. Few paths are asked for.
	above *field.Path
	names [3]string
	few   int
}

func root(obj *unstructured.Unstructured) node {
	return node{v: obj.Object, errs: new(field.ErrorList)}
}

func (n node) get(names ...string) node {
	for _, name := range names {
		m, _ := n.v.(map[string]any)
		n.v = m[name]
		if n.few == len(n.names) {
			n.above, n.few = n.path(), 0
		}
		n.names[n.few] = name
		n.few++
	}
	return n
}

// path is where the node is; nil for the whole object.
func (n node) path() *field.Path {
	p := n.above
	for _, name := range n.names[:n.few] {
		p = child(p, name)
	}
	return p
}

func child(p *field.Path, name string) *field.Path {
	if p == nil {
		return field.NewPath(name)
	}
	return p.Child(name)
}

func (n node) set() bool { return n.v != nil }

func (n node) text() string {
	s, _ := n.v.(string)
	return s
}

func (n node) number() (int64, bool) {
	i, ok := n.v.(int64)
	return i, ok
}

func (n node) yes() bool { return n.v == true }

// items are the elements of a list.
func (n node) items() []node {
	l, _ := n.v.([]any)
	if len(l) == 0 {
		return nil
	}
	out, p := make([]node, len(l)), n.path()
	for i, e := range l {
		out[i] = node{v: e, errs: n.errs, above: p.Index(i)}
	}
	return out
}

func (n node) texts() []string {
	l, _ := n.v.([]any)
	out := make([]string, len(l))
	for i, e := range l {
		out[i], _ = e.(string)
	}
	return out
}

// keys are those of a map, in order.
func (n node) keys() []string {
	m, _ := n.v.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

func (n node) size() int {
	switch v := n.v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

func (n node) fail(e *field.Error) { *n.errs = append(*n.errs, e) }

// shown is a value as errors show it: what is absent is empty text.
func (n node) shown() any {
	if n.v == nil {
		return ""
	}
	return n.v
}

func (n node) invalid(detail string)   { n.fail(field.Invalid(n.path(), n.shown(), detail)) }
func (n node) required(detail string)  { n.fail(field.Required(n.path(), detail)) }
func (n node) forbidden(detail string) { n.fail(field.Forbidden(n.path(), detail)) }

// filled demands a text that is not empty, and reports whether it is there.
func (n node) filled() bool {
	if n.text() == "" {
		n.required("")
		return false
	}
	return true
}

// each adds an error for each message.
func (n node) each(messages []string) {
	for _, m := range messages {
		n.invalid(m)
	}
}

// oneOf demands one of some texts, if one is given.
func (n node) oneOf(allowed ...string) {
	if s := n.text(); s != "" && !slices.Contains(allowed, s) {
		n.notSupported(allowed...)
	}
}

// needsOneOf demands one of some texts.
func (n node) needsOneOf(allowed ...string) {
	if !slices.Contains(allowed, n.text()) {
		n.notSupported(allowed...)
	}
}

// selects judges a map of labels.
func (n node) selects() {
	for _, key := range n.keys() {
		value := n.get(key).text()
		for _, msg := range validation.IsQualifiedName(key) {
			n.fail(field.Invalid(n.path(), key, msg))
		}
		for _, msg := range validation.IsValidLabelValue(value) {
			n.fail(field.Invalid(n.path(), value, msg))
		}
	}
}

func (n node) notSupported(allowed ...string) {
	n.fail(field.NotSupported(n.path(), n.text(), allowed))
}

// notNegative judges numbers.
func (n node) notNegative(names ...string) {
	for _, name := range names {
		f := n.get(name)
		if i, ok := f.number(); ok && i < 0 {
			f.invalid("must be greater than or equal to 0")
		}
	}
}

// between judges a number, if one is given.
func (n node) between(low, high int64) {
	if i, ok := n.number(); ok && (i < low || i > high) {
		n.invalid(validation.InclusiveRangeError(int(low), int(high)))
	}
}

// immutable demands that a field has not changed.
func immutable(old, new node, names ...string) {
	for _, name := range names {
		if !objects.Equal(old.get(name).v, new.get(name).v) {
			new.get(name).invalid("field is immutable")
		}
	}
}

// intOrPercent demands a number that is not negative, or a percentage.
func (n node) intOrPercent() {
	switch v := n.v.(type) {
	case string:
		n.each(validation.IsValidPercent(v))
		if p, err := strconv.Atoi(strings.TrimSuffix(v, "%")); err == nil && p > 100 {
			n.fail(field.Invalid(n.path(), intstr.FromString(v), "must not be greater than 100%"))
		}
	case int64:
		if v < 0 {
			n.invalid("must be greater than or equal to 0")
		}
	}
}

// subdomain and label are DNS names.
func (n node) subdomain() { n.each(validation.IsDNS1123Subdomain(n.text())) }
func (n node) label()     { n.each(validation.IsDNS1123Label(n.text())) }

// unique demands that the named field differs between elements.
func (n node) unique(name string) {
	seen := make(map[string]bool)
	for _, e := range n.items() {
		f := e.get(name)
		if s := f.text(); s != "" && seen[s] {
			f.fail(field.Duplicate(f.path(), s))
		}
		seen[f.text()] = true
	}
}
